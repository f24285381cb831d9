"""Kinds that a CustomResourceDefinition adds: served as long as the definition stands."""

from __future__ import annotations

from functools import cache

from workshop.testbed.server.kinds.resources import DEFINITIONS, Json, Resource

from .store import Store


def find(store: Store, group: str, version: str, plural: str) -> Resource | None:
    """Return the custom resource at that path, or None if no definition serves it."""
    definition = store.get(DEFINITIONS, "", f"{plural}.{group}")
    return described(definition.body, version) if definition is not None else None


def served(store: Store) -> list[Resource]:
    """Return every custom resource there is, by group, version and plural."""
    found = (
        described(definition.body, version["name"])
        for definition in store.listing(DEFINITIONS)
        for version in definition.body["spec"].get("versions") or ()
    )
    return sorted(
        (resource for resource in found if resource is not None),
        key=lambda r: (r.group, r.version, r.plural),
    )


def described(definition: Json, version: str) -> Resource | None:
    """Return what `definition` says of `version`, or None if it does not serve it."""
    spec = definition["spec"]
    for offered in spec.get("versions") or ():
        if offered["name"] == version and offered.get("served"):
            names = spec["names"]
            return _resource(
                spec["group"], version, names["plural"], names["kind"],
                spec.get("scope") == "Namespaced", "status" in (offered.get("subresources") or {}),
                tuple(names.get("shortNames") or ()),
            )  # fmt: skip
    return None


@cache
def _resource(
    group: str, version: str, plural: str, kind: str, namespaced: bool, status: bool,
    short_names: tuple[str, ...],
) -> Resource:  # fmt: skip
    """Return one and the same Resource each time: tables are kept by its identity."""
    return Resource(
        group, version, plural, kind, namespaced=namespaced, short_names=short_names,
        subresources=("status",) if status else (), counts_generation=True,
        unconditional_update=False, returns_deleted=False,
    )  # fmt: skip
