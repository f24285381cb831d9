"""Sets of fields as managedFields writes them (FieldsV1): who owns what.

A set is a tree of dicts: `f:name` descends into a field, `k:{...}` into the list item with that
key, `v:value` names an item of a set, `.` the item itself; an empty dict is an owned leaf.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from workshop.testbed.server.kinds.resources import Json

from .schema import APPLY_KEYS, APPLY_SETS, ATOMIC

_KEY_DEFAULTS = {"protocol": "TCP"}
_IDENTITY = ("apiVersion", "kind")
_SYSTEM = frozenset(
    {
        "name", "namespace", "uid", "creationTimestamp", "generation", "resourceVersion",
        "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
    }
)  # fmt: skip


def owned_part(body: Json, subresource: str, has_status: bool) -> Json:
    """Return the part of `body` that a write to `subresource` ("" = the object) may own."""
    part = {key: value for key, value in body.items() if key not in _IDENTITY}
    metadata = {k: v for k, v in body.get("metadata", {}).items() if k not in _SYSTEM}
    part["metadata"] = metadata
    if subresource == "status":
        part = {"status": part.get("status"), "metadata": metadata}
    elif has_status:
        part.pop("status", None)
    return {key: value for key, value in part.items() if value not in (None, {})}


def fields_of(value: Any, name: str = "") -> Json:
    """Return the set of all fields in `value`, which stands in a field called `name`."""
    if isinstance(value, dict):
        if name in ATOMIC:
            return {}
        # Most values are plain; not descending into them halves the cost of a create.
        return {
            f"f:{key}": fields_of(child, key) if isinstance(child, (dict, list)) else {}
            for key, child in value.items()
        }
    return {
        path: {**({".": {}} if path[0] == "k" else {}), **fields_of(child, field)}
        for path, field, child in children(value, name)
    }


def children(value: Any, name: str) -> Iterator[tuple[str, str, Any]]:
    """Yield (path element, field name, value) of each part that is owned on its own."""
    if isinstance(value, dict) and name not in ATOMIC:
        for key, child in value.items():
            yield f"f:{key}", key, child
    elif isinstance(value, list) and name in APPLY_KEYS:
        for item in value:
            yield item_path(name, item), "", item
    elif isinstance(value, list) and name in APPLY_SETS:
        for item in value:
            yield f"v:{json.dumps(item)}", "", None


def removed(new: Any, old: Any, name: str = "") -> Json:
    """Return the set of fields that `old` has and `new` has not."""
    if new is old:
        return {}
    after = {path: child for path, _, child in children(new, name)}
    result: Json = {}
    for path, field, child in children(old, name):
        if path not in after:
            item: Json = {".": {}} if path[0] == "k" else {}
            result[path] = {**item, **fields_of(child, field)}
        elif after[path] is not child and (part := removed(after[path], child, field)):
            result[path] = part
    return result


def _divides(value: Any, name: str) -> bool:
    """Return whether the parts of `value` are owned one by one; then it only lost some."""
    if isinstance(value, dict):
        return name not in ATOMIC
    return isinstance(value, list) and (name in APPLY_KEYS or name in APPLY_SETS)


def item_path(name: str, item: Json) -> str:
    """Return the path element of an item of the keyed list `name`."""
    keys = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in APPLY_KEYS[name]}
    return f"k:{json.dumps(keys, separators=(',', ':'))}"


def changed(new: Any, old: Any, name: str = "") -> Json:
    """Return the set of fields of `new` that `old` has not, or has with another value."""
    before = {path: child for path, _, child in children(old, name)}
    result: Json = {}
    for path, field, child in children(new, name):
        if path not in before:
            item: Json = {".": {}} if path[0] == "k" else {}
            result[path] = {**item, **fields_of(child, field)}
        elif child is not before[path] and child != before[path]:
            part = changed(child, before[path], field)
            if part or not _divides(child, field):
                result[path] = part
    return result


def union(one: Json, other: Json) -> Json:
    """Return the fields in either set."""
    result = dict(one)
    for path, rest in other.items():
        result[path] = union(result[path], rest) if path in result else rest
    return result


def minus(one: Json, other: Json) -> Json:
    """Return the fields of `one` that are not in `other`.

    A leaf stands for itself, not for what may be below it: owning an empty map is not owning
    what others put into it.
    """
    result: Json = {}
    for path, rest in one.items():
        if path not in other:
            result[path] = rest
        elif rest:
            left = minus(rest, other[path]) if other[path] else rest
            if left:
                result[path] = left
    return result


def common(one: Json, other: Json) -> Json:
    """Return the fields in both sets."""
    result: Json = {}
    for path in one.keys() & other.keys():
        mine, theirs = one[path], other[path]
        if not mine and not theirs:
            result[path] = {}
        elif mine and theirs and (both := common(mine, theirs)):
            result[path] = both
    return result


def leaves(fields: Json, prefix: str = "") -> Iterator[str]:
    """Yield every owned field as a path for people: `.spec.containers[name="a"].image`."""
    for path, rest in fields.items():
        if path == ".":
            continue
        here = prefix + _shown(path)
        if any(child != "." for child in rest):
            yield from leaves(rest, here)
        else:
            yield here


def _shown(path: str) -> str:
    if path.startswith("f:"):
        return f".{path[2:]}"
    if path.startswith("k:"):
        keys = json.loads(path[2:])
        return "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in keys.items()) + "]"
    return f"[{path[2:]}]"
