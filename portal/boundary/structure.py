"""JSON and YAML of bounded depth that say only what JSON can say.

Both raise MalformedError with a sentence that tells where. YAML is read as kubectl turns it into JSON:
times stay text, and keys are text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Final

import yaml
from django.core.exceptions import ValidationError

from portal.boundary.reading import MOST, readable

DEEPEST: Final = 64
"""Levels of nesting; the deepest field of a Pod stands at about twelve."""
TAG: Final = "tag:yaml.org,2002:"


class MalformedError(ValueError):
    """What was sent is not the JSON or YAML that it should be; ``str()`` is a sentence for people.

    ``path`` names the value at fault, as ``a.b[0]``, where there is one.
    """

    def __init__(self, sentence: str, path: str = "") -> None:
        self.path = path
        super().__init__(f"{path}: {sentence}" if path else sentence)


class _Unfit:
    """Stands where a number stood that nobody reckons with, until the walk knows its path."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence


def from_json(raw: bytes) -> Any:
    """The value that ``raw`` (UTF-8) holds."""
    try:
        found = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_once,
            parse_constant=_no_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except UnicodeDecodeError as error:
        raise MalformedError(f"Byte {error.start} is not UTF-8.") from error
    except json.JSONDecodeError as error:
        raise MalformedError(f"{error.msg}: line {error.lineno} column {error.colno}.") from error
    except RecursionError as error:
        raise MalformedError(_too_deep()) from error
    return checked(found)


def checked(value: Any) -> Any:
    """``value``, no deeper than DEEPEST, its texts readable."""
    for path, depth, part in _parts(value):
        if depth > DEEPEST:
            raise MalformedError(_too_deep())
        if isinstance(part, _Unfit):
            raise MalformedError(part.sentence, path)
        if isinstance(part, str):
            try:
                readable(part)
            except ValidationError as error:
                raise MalformedError(error.messages[0], path or "The text") from error
    return value


def _parts(value: Any) -> Iterator[tuple[str, int, Any]]:
    """(path, depth, part) of every key and value; without recursion, because depth is what is asked."""
    left: list[tuple[str, int, Any]] = [("", 0, value)]
    while left:
        path, depth, part = left.pop()
        yield path, depth, part
        if depth > DEEPEST:
            continue
        if isinstance(part, dict):
            for key, below in part.items():
                yield f"a key of {path or 'the whole'}", depth, key
                left.append((f"{path}.{key}".lstrip("."), depth + 1, below))
        elif isinstance(part, list):
            left += [(f"{path}[{i}]", depth + 1, below) for i, below in enumerate(part)]


def _too_deep() -> str:
    return f"It nests deeper than {DEEPEST} levels."


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise MalformedError(f"The key {twice[:60]!r} stands twice in one map.")
    return found


def _no_constant(text: str) -> Any:
    return _Unfit(f"{text} is no number of JSON.")


def _float(text: str) -> float | _Unfit:
    number = float(text)
    return number if math.isfinite(number) else _Unfit(f"{text[:30]} is too large a number.")


def _int(text: str) -> int | _Unfit:
    if len(text) > 20 or not -MOST - 1 <= int(text) <= MOST:
        return _Unfit(f"{text[:30]} is a whole number of more than 64 bits.")
    return int(text)


def from_yaml(text: str) -> list[Any]:
    """The documents of ``text``, empty ones left out."""
    try:
        found = [d for d in yaml.load_all(text, Loader=_Loader) if d is not None]
    except yaml.MarkedYAMLError as error:
        raise MalformedError(_where(error)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise MalformedError("This is no YAML. Paste what kubectl apply takes.") from error
    for document in found:
        checked(document)
    return found


def _where(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    place = f"Line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{place}{error.problem}. Correct it and submit again."


def _refuse(node: yaml.Node | yaml.Event, problem: str) -> yaml.MarkedYAMLError:
    mark: Any = node.start_mark
    return yaml.MarkedYAMLError(None, None, problem, mark)


class _Loader(yaml.SafeLoader):
    """Safe YAML without anchors (a few nested aliases would unfold to gigabytes) and of JSON's types."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call] # untyped part
            raise _refuse(event, "aliases (*name) are not read")
        self.depth += 1
        if self.depth > DEEPEST:
            event = self.peek_event()  # type: ignore[no-untyped-call] # untyped part
            raise _refuse(event, f"this YAML nests deeper than {DEEPEST} levels")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_json_map(self, node: yaml.MappingNode) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag != f"{TAG}str":
                said = getattr(key_node, "value", "")
                shown = f" ({said[:30]})" if isinstance(said, str) else ""
                raise _refuse(key_node, f"this key{shown} is no text; quote it")
            if key_node.value in found:
                raise _refuse(key_node, f"the key {key_node.value[:60]} stands twice in one map")
            found[key_node.value] = self.construct_object(value_node, deep=True)
        return found

    def construct_json_list(self, node: yaml.SequenceNode) -> list[Any]:
        return [self.construct_object(below, deep=True) for below in node.value]

    def construct_json_number(self, node: yaml.ScalarNode) -> int | float | str:
        if ":" in node.value:
            return str(node.value)  # to kubectl 1:30 is no number
        is_whole = node.tag == f"{TAG}int"
        try:
            made = self.construct_yaml_int(node) if is_whole else self.construct_yaml_float(node)
            fits = -MOST - 1 <= made <= MOST if is_whole else math.isfinite(made)
        except (ValueError, OverflowError):
            fits = False
        if not fits:
            raise _refuse(node, f"{node.value[:30]} is no number that Kubernetes can hold")
        return made

    def refuse_tag(self, node: yaml.Node) -> Any:
        name = node.tag.removeprefix(TAG)
        raise _refuse(node, f"values of the type {name[:60]} are not read, because JSON has none")


_Loader.yaml_constructors = {
    f"{TAG}null": _Loader.construct_yaml_null,
    f"{TAG}bool": _Loader.construct_yaml_bool,
    f"{TAG}int": _Loader.construct_json_number,
    f"{TAG}float": _Loader.construct_json_number,
    f"{TAG}str": _Loader.construct_yaml_str,
    f"{TAG}seq": _Loader.construct_json_list,
    f"{TAG}map": _Loader.construct_json_map,
    None: _Loader.refuse_tag,
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != f"{TAG}timestamp"]
    for first, known in _Loader.yaml_implicit_resolvers.items()
}
