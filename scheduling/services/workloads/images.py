"""References of container images, as the OCI distribution specification writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from scheduling.services.errors import ServiceError

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
