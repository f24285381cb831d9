"""Merge patches made by editing a copy: what differs is the patch, and lists are replaced whole."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

Json = dict[str, Any]


def edited(obj: Json, edit: Callable[[Json], None]) -> Json:
    """The merge patch that makes of ``obj`` what ``edit`` makes of a copy of its parts that people write.

    An annotation that is set to None goes.
    """
    meta = obj["metadata"]
    old = {
        "metadata": {"annotations": dict(meta.get("annotations") or {})},
        "spec": obj.get("spec") or {},
    }
    new = {**obj, "metadata": {**meta, "annotations": dict(old["metadata"]["annotations"])}}
    new["spec"] = deepcopy(old["spec"])
    edit(new)
    notes = {k: v for k, v in new["metadata"]["annotations"].items() if v is not None}
    return difference(old, {"metadata": {"annotations": notes}, "spec": new["spec"]})


def merged(obj: Json, patch: Json) -> Json:
    """``obj`` with a merge patch (RFC 7386) applied; neither is changed, and untouched parts are shared."""
    new = dict(obj)
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, dict):
            before = new.get(key)
            new[key] = merged(before if isinstance(before, dict) else {}, value)
        else:
            new[key] = value
    return new


def difference(old: Json, new: Json) -> Json:
    """The merge patch (RFC 7386) that turns ``old`` into ``new``; empty when they are alike."""
    patch: Json = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := difference(before, value):
                patch[key] = inner
        elif key not in old or value != before:
            patch[key] = value
    return patch
