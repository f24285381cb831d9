"""What every manifest looks like, whatever its kind: maps where maps belong, lists where lists do.

The API server checks the schema of what it is sent. This comes before: reading and marking a manifest
needs its shape, and a namespace that is a path would lead elsewhere. Images are references
as the OCI distribution specification writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn

from scheduling.services.errors import ServiceError

MAPS: Final = frozenset(
    {"metadata", "spec", "template", "labels", "annotations", "resources", "limits", "requests"}
    | {"nodeSelector", "matchLabels", "headGroupSpec", "rayClusterSpec"}
)  # fmt: skip
LISTS: Final = frozenset(
    {"containers", "initContainers", "env", "tolerations", "volumes", "volumeMounts", "resourceClaims"}
    | {"replicatedJobs", "workerGroupSpecs", "matchExpressions", "topologySpreadConstraints"}
)  # fmt: skip
"""Lists of maps."""
NOTES: Final = frozenset({"labels", "annotations"})
"""Maps of text to text, whose keys mean nothing here."""
AMOUNTS: Final = frozenset({"limits", "requests"})
MOST: Final = 2**31 - 1
COUNTS: Final = frozenset(
    {"parallelism", "completions", "replicas", "minReplicas", "maxReplicas", "backoffLimit"}
    | {"numOfHosts", "numNodes"}
)  # fmt: skip
NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""Of a namespace."""
DEEPEST: Final = 64


def check(manifest: Mapping[str, Any]) -> None:
    """Raises ServiceError(code='invalid') whose field is the path of the first part of a wrong shape."""
    if not isinstance(manifest.get("metadata"), dict):
        _refuse("metadata", "The manifest has no metadata.", "Give it a name and a queue.")
    namespace = manifest["metadata"].get("namespace")
    if namespace and not (isinstance(namespace, str) and NAME.fullmatch(namespace)):
        _refuse(
            "metadata.namespace",
            f"{str(namespace)[:60]!r} is no name of a namespace.",
            "Use lower-case letters, digits and '-', or leave it out.",
        )
    for path, key, part in _parts(manifest):
        if part is None:
            continue
        for applies, wanted, good in RULES:
            if key in applies and not good(part):
                _refuse(path, f"{path} is {_name_of(part)}, not {wanted}.", "Correct the manifest.")


def _parts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """(path, key, part) of everything that stands under a key, without going into notes and amounts."""
    left: list[tuple[str, Any, int]] = [("", manifest, 0)]
    while left:
        above, whole, depth = left.pop()
        if depth > DEEPEST:
            _refuse(above[:200], "The manifest nests too deeply.", f"Use at most {DEEPEST} levels.")
        if isinstance(whole, list):
            left += [(f"{above}[{i}]", part, depth + 1) for i, part in enumerate(whole)]
            continue
        for key, part in whole.items() if isinstance(whole, dict) else ():
            path = f"{above}.{key}".lstrip(".")
            if not isinstance(key, str):
                _refuse(path, f"The key {str(key)[:60]!r} is no text.", "Quote it.")
            yield path, key, part
            if key not in NOTES | AMOUNTS:
                left.append((path, part, depth + 1))


def _is_map(part: Any) -> bool:
    return isinstance(part, dict)


def _is_list_of_maps(part: Any) -> bool:
    return isinstance(part, list) and all(isinstance(one, dict) for one in part)


def _is_text_to_text(part: Any) -> bool:
    return isinstance(part, dict) and all(
        isinstance(key, str) and (value is None or isinstance(value, str))
        for key, value in part.items()
    )


def _is_amounts(part: Any) -> bool:
    return isinstance(part, dict) and all(
        isinstance(key, str)
        and isinstance(value, (str, int, float))
        and not isinstance(value, bool)
        for key, value in part.items()
    )


def _is_count(part: Any) -> bool:
    return isinstance(part, int) and not isinstance(part, bool) and -MOST <= part <= MOST


RULES: Final[tuple[tuple[frozenset[str], str, Callable[[Any], bool]], ...]] = (
    (MAPS, "a map", _is_map),
    (LISTS, "a list of maps", _is_list_of_maps),
    (NOTES, "a map of texts (quote its values)", _is_text_to_text),
    (AMOUNTS, "a map of quantities", _is_amounts),
    (COUNTS, f"a whole number up to {MOST}", _is_count),
)


def _name_of(part: Any) -> str:
    if isinstance(part, bool):
        return "true or false"
    if isinstance(part, (int, float)):
        return str(part)[:30]
    names: dict[type, str] = {str: "a text", list: "a list", dict: "a map"}
    return names.get(type(part), f"of type {type(part).__name__}")


def _refuse(path: str, sentence: str, remedy: str) -> NoReturn:
    raise ServiceError("invalid", sentence, remedy, field=path)


LONGEST_NAME = 255
"""Of registry and repository together."""
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
REFERENCE = re.compile(
    rf"(?P<name>(?:{_HOST}(?::[0-9]+)?/)?{_PART}(?:/{_PART})*)(?::{_TAG})?(?:@{_DIGEST})?"
)
REMEDY = (
    "Write [registry/]name[:tag][@digest], such as registry.example.org/team/train:1.2, the name in lower"
    " case and without spaces."
)


def fault_of(image: str) -> ServiceError | None:
    """What is wrong with the reference ``image``; None if nothing is."""
    found = REFERENCE.fullmatch(image) if len(image) <= 2 * LONGEST_NAME + 128 else None
    if found is not None and len(found["name"]) <= LONGEST_NAME:
        return None
    return ServiceError(
        "invalid_image", f"'{image[:80]}' is no reference of an image.", REMEDY, field="image"
    )


def faults_of(manifest: Mapping[str, Any]) -> Iterator[ServiceError]:
    """One fault for each container of ``manifest``, wherever its pods are described, whose image is none."""
    left: list[Any] = [manifest.get("spec")]
    while left:
        part = left.pop()
        if isinstance(part, list):
            left += reversed(part)
        elif isinstance(part, dict):
            left += reversed(list(part.values()))
            for kind in ("initContainers", "containers"):
                yield from _of_containers(part.get(kind))


def _of_containers(containers: Any) -> Iterator[ServiceError]:
    for one in containers if isinstance(containers, list) else ():
        image = one.get("image") if isinstance(one, dict) else None
        if isinstance(image, str) and (fault := fault_of(image)):
            yield fault
