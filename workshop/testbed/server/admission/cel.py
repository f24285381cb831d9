"""The part of the Common Expression Language that admission policies use.

Source of the rules: the CEL language definition (google/cel-spec, doc/langdef.md). There are literals,
lists, maps, objects of named types (which are maps here), selection, indexing, arithmetic on ``+``, ``-``
and ``*``, comparisons, ``in``, ``!``, ``&&``, ``||``, ``?:``, the macros ``has``, ``exists``, ``all``,
``filter`` and ``map``, and the functions of ``functions``. A selected field that is absent is an error;
``&&`` and ``||`` swallow the error of one side when the other side decides. Types are checked while
evaluating, not before.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from .functions import FUNCTIONS, METHODS, added, multiplied, subtracted

Scope = Mapping[str, Any]
Node = Callable[[Scope], Any]


class CelError(Exception):
    """An expression that cannot be parsed, or has no value on this object."""


_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<number>\d+)
    |(?P<name>[A-Za-z_]\w*)|(?P<sign>&&|\|\||==|!=|<=|>=|[-+*!<>?:.,()\[\]{}]))""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}


def _orderly(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def checked(a: Any, b: Any) -> bool:
        if isinstance(a, bool) or isinstance(b, bool) or type(a) is not type(b):
            raise CelError("no such overload")
        return compare(a, b)

    return checked


def _contains(item: Any, holder: Any) -> bool:
    if not isinstance(holder, (list, tuple, Mapping)):
        raise CelError("no such overload: in")
    return item in holder


_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "in": _contains,
    "<": _orderly(operator.lt), "<=": _orderly(operator.le),
    ">": _orderly(operator.gt), ">=": _orderly(operator.ge),
}  # fmt: skip
_SUMS: dict[str, Callable[[Any, Any], Any]] = {"+": added, "-": subtracted}


@lru_cache(maxsize=256)
def compile_cel(source: str) -> Node:
    """Return what evaluates `source` in a scope of variables. Raises CelError if it is malformed."""
    parser = _Parser(source)
    node = parser.ternary()
    if parser.peek():
        raise CelError(f"unexpected {parser.peek()!r} in {source!r}")
    return node


def evaluate(source: str, scope: Scope) -> Any:
    """Return the value of `source`. Raises CelError if it has none."""
    return compile_cel(source)(scope)


def _tokens(source: str) -> Iterable[str]:
    at = 0
    while at < len(source.rstrip()):
        match = _TOKEN.match(source, at)
        if match is None:
            raise CelError(f"cannot read {source[at : at + 20]!r}")
        yield match.group().strip()
        at = match.end()


class _Parser:
    """Recursive descent: one method for each level of precedence, loosest first."""

    def __init__(self, source: str) -> None:
        self._tokens = list(_tokens(source))
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self, *wanted: str) -> str:
        """The next token if it is one of `wanted`, else nothing."""
        token = self.peek()
        if token and token in wanted:
            self._at += 1
            return token
        return ""

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise CelError(f"expected {token!r} before {self.peek()!r}")

    def ternary(self) -> Node:
        condition = self._either()
        if not self.take("?"):
            return condition
        yes = self.ternary()
        self.expect(":")
        no = self.ternary()
        return lambda scope: yes(scope) if _truth(condition(scope)) else no(scope)

    def _either(self) -> Node:
        node = self._both()
        while self.take("||"):
            node = _logic(node, self._both(), decides=True)
        return node

    def _both(self) -> Node:
        node = self._relation()
        while self.take("&&"):
            node = _logic(node, self._relation(), decides=False)
        return node

    def _relation(self) -> Node:
        node = self._sum()
        while sign := self.take(*_RELATIONS):
            node = _binary(_RELATIONS[sign], node, self._sum())
        return node

    def _sum(self) -> Node:
        node = self._product()
        while sign := self.take(*_SUMS):
            node = _binary(_SUMS[sign], node, self._product())
        return node

    def _product(self) -> Node:
        node = self._unary()
        while self.take("*"):
            node = _binary(multiplied, node, self._unary())
        return node

    def _unary(self) -> Node:
        if self.take("!"):
            inner = self._unary()
            return lambda scope: not _truth(inner(scope))
        if self.take("-"):
            number = self._unary()
            return lambda scope: -number(scope)
        return self._member()

    def _member(self) -> Node:
        node = self._primary()
        while sign := self.take(".", "[", "{"):
            if sign == "{":
                node = self._fields(named=True)
                continue
            if sign == "[":
                node = _binary(_index, node, self.ternary())
                self.expect("]")
                continue
            name = self._name()
            node = self._method(node, name) if self.take("(") else _select(node, name)
        return node

    def _method(self, target: Node, name: str) -> Node:
        if name in _MACROS:
            variable = self._name()
            self.expect(",")
            body = self.ternary()
            self.expect(")")
            return _MACROS[name](target, variable, body)
        if name not in METHODS:
            raise CelError(f"no such function: {name}")
        return _call(METHODS[name], [target, *self._arguments()])

    def _arguments(self, end: str = ")") -> list[Node]:
        found: list[Node] = []
        while not self.take(end):
            found.append(self.ternary())
            if not self.take(","):
                self.expect(end)
                break
        return found

    def _fields(self, *, named: bool) -> Node:
        """A map after its opening brace, or, ``named``, an object, whose fields are plain names."""
        pairs: list[tuple[Node, Node]] = []
        while not self.take("}"):
            key = _constant(self._name()) if named else self.ternary()
            self.expect(":")
            pairs.append((key, self.ternary()))
            if not self.take(","):
                self.expect("}")
                break
        return lambda scope: {key(scope): value(scope) for key, value in pairs}

    def _primary(self) -> Node:
        if self.take("("):
            node = self.ternary()
            self.expect(")")
            return node
        if self.take("["):
            items = self._arguments("]")
            return lambda scope: [item(scope) for item in items]
        if self.take("{"):
            return self._fields(named=False)
        token = self.peek()
        self._at += 1
        if token[:1] in ("'", '"'):
            text = re.sub(r"\\(.)", _escaped, token[1:-1])
            return lambda scope: text
        if token.isdigit():
            number = int(token)
            return lambda scope: number
        return self._word(token)

    def _word(self, token: str) -> Node:
        if not token.isidentifier():
            raise CelError(f"unexpected {token!r}")
        if token in _WORDS:
            return lambda scope: _WORDS[token]
        if token == "has" and self.take("("):  # noqa: S105 - a word of the language
            return self._has()
        if self.take("("):
            if token not in FUNCTIONS:
                raise CelError(f"no such function: {token}")
            return _call(FUNCTIONS[token], self._arguments())
        return lambda scope: _index(scope, token)

    def _has(self) -> Node:
        target = self._primary()
        name = ""
        while sign := self.take(".", "["):
            target = _select(target, name) if name else target
            name = ""
            if sign == "[":
                target = _binary(_index, target, self.ternary())
                self.expect("]")
            else:
                name = self._name()
        self.expect(")")
        return _binary(operator.contains, target, lambda scope: name)

    def _name(self) -> str:
        token = self.peek()
        if not token.isidentifier():
            raise CelError(f"expected a name before {token!r}")
        self._at += 1
        return token


def _escaped(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[1], found[1])


def _constant(value: Any) -> Node:
    return lambda scope: value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError("no such overload: a condition must be a bool")
    return value


def _logic(left: Node, right: Node, *, decides: bool) -> Node:
    """`||` (`decides` true) or `&&`: a side that decides outweighs the other side's error."""

    def value(scope: Scope) -> bool:
        try:
            if _truth(left(scope)) is decides:
                return decides
        except CelError:
            if _truth(right(scope)) is decides:
                return decides
            raise
        return _truth(right(scope))

    return value


def _binary(act: Callable[[Any, Any], Any], left: Node, right: Node) -> Node:
    return _call(act, [left, right])


def _call(act: Callable[..., Any], arguments: list[Node]) -> Node:
    def value(scope: Scope) -> Any:
        given = [argument(scope) for argument in arguments]
        try:
            return act(*given)
        except (TypeError, ValueError, AttributeError) as error:
            raise CelError(f"no such overload: {error}") from error

    return value


def _select(target: Node, name: str) -> Node:
    return lambda scope: _index(target(scope), name)


def _index(holder: Any, key: Any) -> Any:
    try:
        return holder[key]
    except (KeyError, IndexError, TypeError) as error:
        raise CelError(f"no such key: {key}") from error


def _each(target: Node, variable: str, body: Node) -> Callable[[Scope], Iterable[tuple[Any, Any]]]:
    """Pairs of an item (of a map: its key) and the value of `body` with `variable` as that item."""

    def pairs(scope: Scope) -> Iterable[tuple[Any, Any]]:
        items = target(scope)
        if not isinstance(items, (list, Mapping)):
            raise CelError("no such overload: not a list or map")
        return ((item, body({**scope, variable: item})) for item in items)

    return pairs


def _exists(target: Node, variable: str, body: Node) -> Node:
    each = _each(target, variable, body)
    return lambda scope: any(_truth(value) for _, value in each(scope))


def _all(target: Node, variable: str, body: Node) -> Node:
    each = _each(target, variable, body)
    return lambda scope: all(_truth(value) for _, value in each(scope))


def _filter(target: Node, variable: str, body: Node) -> Node:
    each = _each(target, variable, body)
    return lambda scope: [item for item, value in each(scope) if _truth(value)]


def _map(target: Node, variable: str, body: Node) -> Node:
    each = _each(target, variable, body)
    return lambda scope: [value for _, value in each(scope)]


_MACROS: dict[str, Callable[[Node, str, Node], Node]] = {
    "exists": _exists, "all": _all, "filter": _filter, "map": _map,
}  # fmt: skip
