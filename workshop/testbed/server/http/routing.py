"""From a path to what it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workshop.testbed.server.kinds.errors import unknown_path
from workshop.testbed.server.kinds.resources import BY_PATH, NAMESPACES, Resource


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names: a collection (no name), an object, or a subresource of it."""

    resource: Resource
    namespace: str | None
    """None: all namespaces, or a resource without namespaces."""
    name: str = ""
    subresource: str = ""


Custom = Callable[[str, str, str], Resource | None]
"""The custom resource of a group, version and plural, if there is one."""


def parse_path(path: str, custom: Custom = lambda *_: None) -> Target:
    """Return what `/api/v1/...` or `/apis/GROUP/VERSION/...` names.

    Raises ApiError (404) if nothing is served there.
    """
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise unknown_path()
    return _target(group, version, rest, custom)


def _target(group: str, version: str, rest: list[str], custom: Custom) -> Target:
    namespace: str | None = None
    own = NAMESPACES.subresources
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in own):
        namespace, rest = rest[1], rest[2:]
    resource = BY_PATH.get((group, version, rest[0])) or custom(group, version, rest[0])
    if resource is None or len(rest) > 3 or (namespace is not None and not resource.namespaced):
        raise unknown_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in resource.subresources:
        raise unknown_path()
    if name and resource.namespaced and namespace is None:
        raise unknown_path()
    return Target(resource, namespace, name, subresource)
