"""Ownership of fields (managedFields) and server-side apply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workshop.testbed.server.kinds.errors import ApiError
from workshop.testbed.server.kinds.resources import Json, Resource

from .fields import (
    changed,
    children,
    common,
    fields_of,
    item_path,
    leaves,
    minus,
    owned_part,
    removed,
    union,
)
from .schema import APPLY_KEYS, APPLY_SETS, ATOMIC


@dataclass(frozen=True, slots=True)
class Manager:
    """The writer, how, and when."""

    name: str
    operation: str
    """`Update` or `Apply`."""
    subresource: str
    time: str

    def owns(self, entry: Json) -> bool:
        """Return whether `entry` of managedFields is this manager's."""
        return (entry["manager"], entry["operation"], entry.get("subresource", "")) == (
            self.name,
            self.operation,
            self.subresource,
        )

    def entry(self, resource: Resource, fields: Json) -> Json:
        """Return the entry of managedFields for `fields`."""
        entry = {
            "manager": self.name, "operation": self.operation,
            "apiVersion": resource.group_version, "time": self.time,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        }  # fmt: skip
        return {**entry, "subresource": self.subresource} if self.subresource else entry


def note_update(resource: Resource, manager: Manager, new: Json, old: Json | None) -> list[Json]:
    """Return managedFields after a write that is no apply: what changed belongs to its writer."""
    entries: list[Json] = (old or {}).get("metadata", {}).get("managedFields") or []
    ours = owned_part(new, manager.subresource, resource.has_status)
    if old is None:
        return [manager.entry(resource, fields_of(ours))]
    theirs = owned_part(old, manager.subresource, resource.has_status)
    written, lost = changed(ours, theirs), removed(ours, theirs)
    if not written and not lost:
        return entries
    mine: Json = next((e["fieldsV1"] for e in entries if manager.owns(e)), {})
    others = [e for e in entries if not manager.owns(e)]
    remaining = _without(others, union(written, lost))
    fields = minus(union(mine, written), lost)
    return [*remaining, manager.entry(resource, fields)] if fields else remaining


def _without(entries: list[Json], fields: Json) -> list[Json]:
    """Return `entries` after their managers lost `fields`; nobody keeps an empty entry."""
    left = [{**entry, "fieldsV1": minus(entry["fieldsV1"], fields)} for entry in entries]
    return [entry for entry in left if entry["fieldsV1"]]


def apply(
    resource: Resource, manager: Manager, config: Json, live: Json, *, force: bool
) -> tuple[Json, list[Json]]:
    """Return the object after `config` was applied to `live`, and its managedFields.

    Raises ApiError (409) if another manager owns a field that `config` would change, unless
    `force` takes it over.
    """
    entries: list[Json] = live.get("metadata", {}).get("managedFields") or []
    part = _pruned(owned_part(config, manager.subresource, resource.has_status))
    wanted = fields_of(part)
    others = [e for e in entries if not manager.owns(e)]
    contested = common(wanted, changed(part, live))
    disputes = [(e, both) for e in others if (both := common(e["fieldsV1"], contested))]
    if disputes and not force:
        raise _conflict(disputes)
    others = _without(others, contested)
    before: Json = next((e["fieldsV1"] for e in entries if manager.owns(e)), {})
    given_up = minus(before, wanted)
    for entry in others:
        given_up = minus(given_up, entry["fieldsV1"])
    merged = _drop(_merge(live, part, ""), given_up, "")
    return merged, [*others, manager.entry(resource, wanted)]


def _conflict(disputes: list[tuple[Json, Json]]) -> ApiError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{entry["manager"]}" using {entry["apiVersion"]}',
            "field": path,
        }
        for entry, fields in disputes
        for path in leaves(fields)
    ]
    listed = "\n".join(f"- {cause['message']}: {cause['field']}" for cause in causes)
    plural = "s" if len(causes) > 1 else ""
    message = f"Apply failed with {len(causes)} conflict{plural}: {listed}"
    return ApiError(409, "Conflict", message, {"causes": causes})


def _pruned(value: Any) -> Any:
    """Return `value` without nulls: an applied null is a field left out."""
    if isinstance(value, dict):
        return {key: _pruned(child) for key, child in value.items() if child is not None}
    return [_pruned(item) for item in value] if isinstance(value, list) else value


def _merge(live: Any, config: Any, name: str) -> Any:
    if isinstance(config, dict) and isinstance(live, dict) and name not in ATOMIC:
        merged = {key: _merge(live.get(key), value, key) for key, value in config.items()}
        return {**live, **merged}
    if isinstance(config, list) and isinstance(live, list) and name in APPLY_KEYS:
        return _merge_items(live, config, name)
    if isinstance(config, list) and isinstance(live, list) and name in APPLY_SETS:
        return live + [item for item in config if item not in live]
    return config


def _merge_items(live: list[Json], config: list[Json], name: str) -> list[Json]:
    wanted = {item_path(name, item): item for item in config}
    result = []
    for item in live:
        match = wanted.pop(item_path(name, item), None)
        result.append(item if match is None else _merge(item, match, ""))
    return result + list(wanted.values())


def _drop(value: Any, fields: Json, name: str) -> Any:
    """Return `value` without `fields`; what is emptied by that goes as well."""
    if not fields or not isinstance(value, (dict, list)):
        return value  # a plain value has taken the place of what had parts
    if isinstance(value, dict):
        result = dict(value)
        for path, field, child in children(value, name):
            if path in fields:
                left = _drop(child, fields[path], field) if fields[path] else None
                result[field] = left
                if left is None or left in ({}, []):
                    del result[field]
        return result
    items = []
    for path, _, item in children(value, name):
        rest = fields.get(path)
        if rest is None:
            items.append(item)
        elif rest and "." not in rest:
            items.append(_drop(item, rest, ""))
    if name in APPLY_SETS:
        return [item for item in value if f"v:{_quoted(item)}" not in fields]
    return items


def _quoted(item: object) -> str:
    return f'"{item}"' if isinstance(item, str) else str(item)
