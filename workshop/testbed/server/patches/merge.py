"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902)."""

from __future__ import annotations

from typing import Any

from workshop.testbed.server.kinds.errors import ApiError, bad_request
from workshop.testbed.server.kinds.resources import Json


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` with `patch` merged into it; null removes."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(target: Json, operations: Any) -> Json:
    """Return `target` after `operations`, all or none.

    Raises ApiError: 400 for something that is no JSON patch, 422 if it cannot be applied.
    """
    if not isinstance(operations, list):
        raise bad_request("cannot unmarshal object into Go value of type jsonpatch.Patch")
    result: Any = target
    for operation in operations:
        result = _apply(result, operation)
    return dict(result)


def _failed(message: str) -> ApiError:
    return ApiError(422, "Invalid", message)


def _apply(document: Any, operation: Json) -> Any:
    """One operation; as on a real server, `replace` of a key that is not there adds it."""
    kind, path = operation.get("op"), _pointer(operation.get("path", ""))
    if kind == "test":
        if _look_up(document, path) != operation.get("value"):
            raise _failed(f"testing value {operation.get('path')} failed: test failed")
        return document
    if kind in ("add", "replace"):
        return _put(document, path, operation.get("value"), insert=kind == "add")
    if kind == "remove":
        return _take(document, path)
    if kind in ("move", "copy"):
        source = _pointer(operation.get("from", ""))
        value = _look_up(document, source)
        rest = _take(document, source) if kind == "move" else document
        return _put(rest, path, value, insert=True)
    raise _failed(f"Unexpected kind: {kind}")


def _pointer(text: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(items: list[Any], part: str, *, end: int) -> int:
    if part == "-":
        return end
    if not part.isdigit() or int(part) > end:
        raise _failed(f"Unable to access invalid index: {part}")
    return int(part)


def _look_up(document: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(document, list):
            document = document[_index(document, part, end=len(document) - 1)]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            raise _failed(f"the path /{'/'.join(path)} does not exist: missing value")
    return document


def _put(document: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    part, rest = path[0], path[1:]
    if isinstance(document, list):
        items = list(document)
        index = _index(items, part, end=len(items) if insert and not rest else len(items) - 1)
        if rest:
            items[index] = _put(items[index], rest, value, insert=insert)
        else:
            items[index : index if insert else index + 1] = [value]
        return items
    if not isinstance(document, dict) or (rest and part not in document):
        raise _failed(f"the path /{'/'.join(path)} does not exist: missing value")
    new = _put(document[part], rest, value, insert=insert) if rest else value
    return {**document, part: new}


def _take(document: Any, path: list[str]) -> Any:
    _look_up(document, path)
    part, rest = path[0], path[1:]
    if isinstance(document, list):
        index = int(part)
        element = [_take(document[index], rest)] if rest else []
        return document[:index] + element + document[index + 1 :]
    if rest:
        return {**document, part: _take(document[part], rest)}
    return {key: value for key, value in document.items() if key != part}
