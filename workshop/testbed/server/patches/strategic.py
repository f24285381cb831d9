"""Strategic merge patch: merge patch that knows which lists merge by key."""

from __future__ import annotations

from typing import Any

from workshop.testbed.server.kinds.errors import bad_request
from workshop.testbed.server.kinds.resources import Json

from .schema import STRATEGIC_KEYS, STRATEGIC_SETS

_DIRECTIVES = ("$patch", "$retainKeys")
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def strategic_patch(target: Json, patch: Json) -> Json:
    """Return `target` with `patch` merged into it.

    Raises ApiError (400) for a list item without its merge key or an unknown directive.
    """
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch must be an object")
    return _merge_map(target, patch)


def _merge_map(target: Json, patch: Json) -> Json:
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    result = dict(target)
    if (retained := patch.get("$retainKeys")) is not None:
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        _merge_entry(result, key, value)
    for key in patch:
        if key.startswith(_ORDER):
            _reorder(result, key.removeprefix(_ORDER), patch[key])
    return result


def _merge_entry(result: Json, key: str, value: Any) -> None:
    if key in _DIRECTIVES or key.startswith(_ORDER):
        return
    if key.startswith(_DELETE):
        name = key.removeprefix(_DELETE)
        result[name] = [item for item in result.get(name) or () if item not in value]
    elif value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        old = result.get(key)
        result[key] = _merge_map(old if isinstance(old, dict) else {}, value)
    elif isinstance(value, list):
        result[key] = _merge_list(key, result.get(key) or [], value)
    else:
        result[key] = value


def _merge_list(name: str, old: list[Any], patch: list[Any]) -> list[Any]:
    if name in STRATEGIC_SETS:
        return old + [item for item in patch if item not in old]
    merge_key = STRATEGIC_KEYS.get(name)
    if merge_key is None or not all(isinstance(item, dict) for item in patch):
        return patch
    if any(item.get("$patch") == "replace" and len(item) == 1 for item in patch):
        return [item for item in patch if "$patch" not in item]
    result = list(old)
    for item in patch:
        _merge_item(name, merge_key, result, item)
    return result


def _merge_item(name: str, merge_key: str, result: list[Any], item: Json) -> None:
    if merge_key not in item:
        raise bad_request(f"map: {item} does not contain declared merge key: {merge_key} in {name}")
    place = next((i for i, o in enumerate(result) if o.get(merge_key) == item[merge_key]), None)
    if item.get("$patch") == "delete":
        if place is not None:
            del result[place]
    elif place is None:
        result.append(_merge_map({}, item))
    else:
        result[place] = _merge_map(result[place], item)


def _reorder(result: Json, name: str, order: list[Any]) -> None:
    """Sort the items named in `order` that way; others keep their place behind them."""
    merge_key = STRATEGIC_KEYS.get(name)
    if not isinstance(result.get(name), list):
        return
    wanted = [item.get(merge_key) if isinstance(item, dict) else item for item in order]

    def rank(item: Any) -> int:
        value = item.get(merge_key) if isinstance(item, dict) else item
        return wanted.index(value) if value in wanted else len(wanted)

    result[name] = sorted(result[name], key=rank)
