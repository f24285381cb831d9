"""What kubectl and generated clients ask first: versions, groups, resources, OpenAPI."""

from __future__ import annotations

from collections.abc import Sequence

from workshop.testbed.server.kinds.resources import GROUPS, RESOURCES, Json, Resource

VERSION: Json = {
    "major": "1", "minor": "36", "gitVersion": "v1.36.3+weir", "gitCommit": "", "compiler": "",
    "gitTreeState": "clean", "buildDate": "2026-01-05T00:00:00Z", "goVersion": "",
    "platform": "embedded",
}  # fmt: skip
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCE_KINDS = {"binding": ("", "v1", "Binding"), "eviction": ("policy", "v1", "Eviction")}


def is_discovery(path: str) -> bool:
    """Return whether there may be a discovery document at `path`; most requests are for objects."""
    return path.count("/", 1) < 4 or path.startswith("/openapi")


def discover(path: str, custom: Sequence[Resource] = ()) -> Json | None:
    """Return the discovery document at `path`, or None if there is none.

    `custom` are the resources that definitions have added.
    """
    return _builtin(path, custom) or _added(path, custom)


def _added(path: str, custom: Sequence[Resource]) -> Json | None:
    match [part for part in path.split("/") if part]:
        case ["apis", group] if any(r.group == group for r in custom):
            return {"kind": "APIGroup", "apiVersion": "v1", **_custom_group(group, custom)}
        case ["apis", group, version]:
            return _listed([r for r in custom if (r.group, r.version) == (group, version)])
        case ["openapi", "v3", "apis", group, version]:
            return _described([r for r in custom if (r.group, r.version) == (group, version)])
    return None


def _custom_group(group: str, custom: Sequence[Resource]) -> Json:
    names = dict.fromkeys(r.version for r in custom if r.group == group)
    versions = [{"groupVersion": f"{group}/{name}", "version": name} for name in names]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _builtin(path: str, custom: Sequence[Resource]) -> Json | None:  # noqa: PLR0911 (one line a document)
    added = dict.fromkeys(r.group for r in custom)
    match [part for part in path.split("/") if part]:
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [*map(_group, GROUPS), *(_custom_group(g, custom) for g in added)]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["api", "v1"]:
            return _resources("")
        case ["apis", group] if group in GROUPS:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}
        case ["apis", group, version] if GROUPS.get(group) == version:
            return _resources(group)
        case ["openapi", "v3"]:
            roots = [*map(_root, ["", *GROUPS]), *(f"apis/{r.group_version}" for r in custom)]
            return {"paths": {r: {"serverRelativeURL": f"/openapi/v3/{r}"} for r in roots}}
        case ["openapi", "v3", "api", "v1"]:
            return _openapi("")
        case ["openapi", "v3", "apis", group, version] if GROUPS.get(group) == version:
            return _openapi(group)
        case ["openapi", "v2"]:
            return {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": {}}
    return None


_INFO: Json = {"title": "Kubernetes", "version": "v1.36.3"}


def _root(group: str) -> str:
    return f"apis/{group}/{GROUPS[group]}" if group else "api/v1"


def _group(group: str) -> Json:
    version = {"groupVersion": f"{group}/{GROUPS[group]}", "version": GROUPS[group]}
    return {"name": group, "versions": [version], "preferredVersion": version}


def _resources(group: str) -> Json | None:
    return _listed([r for r in RESOURCES if r.group == group])


def _listed(served: Sequence[Resource]) -> Json | None:
    if not served:
        return None
    entries = [entry for resource in served for entry in _entries(resource)]
    name = served[0].group_version
    return {
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": entries
    }  # fmt: skip


def _entries(resource: Resource) -> list[Json]:
    entry: Json = {
        "name": resource.plural, "singularName": resource.singular,
        "namespaced": resource.namespaced, "kind": resource.kind,
        "verbs": _VERBS if resource.stored else ["create"],
    }  # fmt: skip
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    return [entry, *(_subentry(resource, name) for name in resource.subresources)]


def _subentry(resource: Resource, name: str) -> Json:
    entry: Json = {
        "name": f"{resource.plural}/{name}", "singularName": "", "kind": resource.kind,
        "namespaced": resource.namespaced,
        "verbs": ["get"] if name == "log" else ["get", "patch", "update"],
    }  # fmt: skip
    if name in _SUBRESOURCE_KINDS:
        group, version, kind = _SUBRESOURCE_KINDS[name]
        entry |= {"group": group, "version": version, "kind": kind, "verbs": ["create"]}
    return entry


def _openapi(group: str) -> Json | None:
    return _described([r for r in RESOURCES if r.group == group])


def _described(served: Sequence[Resource]) -> Json | None:
    """Return just enough for kubectl to know that the server checks fields and dry runs itself."""
    if not served:
        return None
    group = served[0].group
    root = f"apis/{served[0].group_version}" if group else "api/v1"
    paths = {
        f"/{root}/{'namespaces/{namespace}/' if r.namespaced else ''}{r.plural}/{{name}}": {
            "patch": _operation(r)
        }
        for r in served
    }
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": {}}}


def _operation(resource: Resource) -> Json:
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    return {
        "operationId": f"patch{resource.kind}",
        "parameters": [{"name": n, "in": "query", "schema": {"type": "string"}} for n in names],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": kind,
    }
