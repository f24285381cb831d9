"""What an attacker types, and a way to learn which parameters an address reads."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from django.http import QueryDict

TEXTS: dict[str, str] = {
    "nul": "a\x00b",
    "control": "a\x1b[31m\r\nSet-Cookie: b",
    "bidi": "a\u202eb\u2066",
    "empty": "",
    "256 characters": "x" * 256,
    "60,000 characters": "x" * 60_000,
    "past 32 bits": str(2**31),
    "past 64 bits": str(2**63),
    "below 64 bits": str(-(2**63) - 1),
    "400 digits": "9" * 400,
    "5,000 digits": "9" * 5000,
    "arabic digits": "\u0663\u0663",
    "superscript": "\u00b2",
    "infinite": "inf",
    "no number": "nan",
    "1e400": "1e400",
    "1e999999": "1e999999",
    "year 1 east": "0001-01-01T00:00:00+14:00",
    "year 1": "0001-01-01",
    "year 9999 west": "9999-12-31T23:59:59-12:00",
    "year 9999": "9999-12-31",
    "year 0": "0000-00-00T00:00:00Z",
    "no offset": "2026-01-01T00:00:00+99:99",
    "no such day": "2026-02-30",
    "no such address": "//[",
    "no such name": "nowhere",
    "climbing": "../../../x?y#z",
    "like": "%_\\'\"",
    "template": "{0.__class__}%(x)s%s",
    "json": '{"a": [1',
    "emoji": "\U0001f9e8" * 40,
}
"""Name -> text, for every parameter of a query, a form, a path or a JSON body."""

SURROGATES: dict[str, Any] = {"lone surrogate": "a\ud800b", "half a pair": "\udfff"}
SHAPES: dict[str, Any] = {
    "null": None, "true": True, "negative": -1, "past 64 bits": 2**63, "30 digits": 10**30, "fraction": 1.5,
    "huge": 1e308, "list": [], "list of lists": [[[]]], "list of null": [None], "map": {},
    "map of maps": {"a": {"b": {}}}, "list of 10,000": ["x"] * 10_000,
}  # fmt: skip
"""What only JSON can say."""

RAW_JSON: dict[str, bytes] = {
    "100,000 lists": b"[" * 100_000,
    "closed lists": b"[" * 2_000 + b"]" * 2_000,
    "100,000 maps": b'{"a":' * 100_000,
    "deep in a field": b'{"name": ' + b"[" * 500 + b"]" * 500 + b"}",
    "NaN": b'{"name": NaN}',
    "infinity": b'{"name": -Infinity}',
    "1e400": b'{"name": 1e400}',
    "5,000 digits": b'{"name": ' + b"9" * 5000 + b"}",
    "no UTF-8": b'{"name": "\xff\xfe"}',
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"name": "x"}',
    "a word": b"word",
    "a string": b'"x"',
    "a number": b"1",
    "null": b"null",
    "a list": b"[1]",
    "nothing": b"",
    "a key twice": b'{"name": "x", "name": {}}',
    "NUL in a key": b'{"na\\u0000me": "x"}',
    "surrogate in a key": b'{"na\\ud800me": "x"}',
    "surrogate in a value": b'{"name": "\\ud800"}',
    "two megabytes": b'{"name": "' + b"x" * 2_000_000 + b'"}',
}
"""Bodies, byte for byte."""

YAML: dict[str, str] = {
    "integer keys": "1: 2",
    "null key": "~: 2",
    "boolean key": "yes: 2",
    "list as key": "[1]: 2",
    "binary": "a: !!binary aGVsbG8=",
    "set": "a: !!set {b, c}",
    "omap": "a: !!omap [b: 1]",
    "timestamp": "a: 2026-01-01",
    "year 9999": "a: 9999-12-31T23:59:59-12:00",
    "no such day": "a: 2026-02-30",
    "python": "a: !!python/object/apply:os.system [x]",
    "own tag": "a: !x 1",
    "bad int": "a: !!int x",
    "infinite": "a: .inf",
    "no number": "a: .nan",
    "5,000 digits": "a: " + "9" * 5000,
    "hexadecimal": "a: 0x" + "f" * 5000,
    "surrogate": 'a: "\\ud800"',
    "NUL": 'a: "\\0"',
    "NUL itself": "a: b\x00c",
    "alias": "a: &a [1]\nb: *a",
    "alias of itself": "a: &a [*a]",
    "merge": "a: {<<: {b: 1}}",
    "merge of text": "a: {<<: x}",
    "key twice": "a: 1\na: 2",
    "10,000 lists": "a: " + "[" * 10_000,
    "300 lists": "a: " + "[" * 300 + "]" * 300,
    "300 maps": "\n".join(" " * i + "a:" for i in range(300)),
    "two documents": "a: 1\n---\nb: 2",
    "directive": "%YAML 9.9\n---\na: 1",
    "tag directive": "%TAG ! tag:x,2000:\n---\na: !b 1",
    "tab": "a:\n\t- b",
    "bell": "a: \x07",
    "text": "word",
    "nothing": "",
}
"""Pasted manifests."""


@contextmanager
def reading() -> Iterator[set[str]]:
    """Which names of queries and forms are asked for inside; so no new parameter goes untried."""
    names: set[str] = set()

    def noted(method: str) -> Any:
        original = getattr(QueryDict, method)

        def note(self: QueryDict, key: Any, *args: Any, **kwargs: Any) -> Any:
            names.add(str(key))
            return original(self, key, *args, **kwargs)

        return patch.object(QueryDict, method, note)

    with noted("get"), noted("getlist"), noted("__getitem__"), noted("__contains__"):
        yield names


def paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of a JSON value but the whole."""
    below = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in below:
        yield (*above, key)
        if isinstance(part, (dict, list)):
            yield from paths(part, (*above, key))


def replaced(value: Any, path: tuple[Any, ...], part: Any) -> Any:
    """A copy of ``value`` with ``part`` at ``path``."""
    new = copy.deepcopy(value)
    place = new
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = part
    return new
