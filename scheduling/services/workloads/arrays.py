"""One submission, many members, each a workload of its own: the same manifest, told apart by its number."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from scheduling.cluster.adapters.turns import LONGEST_ARRAY
from scheduling.cluster.vocabulary import labels
from scheduling.services.errors import ServiceError

Json = dict[str, Any]
MOST = 200
"""Members of one submission: each costs the cluster a call while somebody waits for the answer."""
LONGEST_NAME = LONGEST_ARRAY - len(f"-{MOST}")
INDEX = "WEIR_ARRAY_INDEX"
"""The variable that tells a container which member it is, from 0 on."""


def members(manifest: Mapping[str, Any], count: int, at_once: int | None) -> Iterator[Json]:
    """Raises ServiceError with the field at fault."""
    if not 1 < count <= MOST:
        raise ServiceError(
            "bad_array",
            f"{count} is no number of members.",
            f"An array has 2 to {MOST} members.",
            field="array",
        )
    meta = manifest.get("metadata")
    name = str(meta.get("name") or "") if isinstance(meta, Mapping) else ""
    if not 0 < len(name) <= LONGEST_NAME:
        raise ServiceError(
            "bad_name",
            "The members of an array are named after it and numbered.",
            f"Give it a name of at most {LONGEST_NAME} characters.",
            field="name",
        )
    for index in range(count):
        yield _member(manifest, name, index, at_once)


def _member(manifest: Mapping[str, Any], name: str, index: int, at_once: int | None) -> Json:
    body = copy.deepcopy(dict(manifest))
    notes = {**(body["metadata"].get("annotations") or {}), labels.ARRAY: name}
    notes[labels.ARRAY_INDEX] = str(index)
    if at_once:
        notes[labels.ARRAY_AT_ONCE] = str(at_once)
    body["metadata"] |= {"name": f"{name}-{index}", "annotations": notes}
    for container in _containers(body.get("spec")):
        variables = [one for one in container.get("env") or [] if one.get("name") != INDEX]
        container["env"] = [*variables, {"name": INDEX, "value": str(index)}]
    return body


def _containers(part: Any) -> Iterator[Json]:
    """Wherever its pods are described."""
    for inner in (
        part if isinstance(part, list) else part.values() if isinstance(part, dict) else ()
    ):
        yield from _containers(inner)
    if isinstance(part, dict) and isinstance(part.get("containers"), list):
        yield from (one for one in part["containers"] if isinstance(one, dict))
