"""The functions of CEL that admission policies call, on the values of ``cel``.

Strings and lists are those of the language and of Kubernetes' own libraries; so are quantities, of which
thousandths are the finest that are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from workshop.testbed.server.kinds.quantities import milli

from .authorizer import Authorizer

_INT64 = 2**63
_DURATION = re.compile(r"(\d+)([hms])")
_SECONDS = {"h": 3600, "m": 60, "s": 1}


class Quantity:
    """What ``quantity()`` makes of a text."""

    def __init__(self, text: str) -> None:
        self.amount = milli(text)

    def as_integer(self) -> int:
        if self.amount % 1000:
            raise ValueError("cannot convert value to integer")
        return whole(self.amount // 1000)


class Duration:
    """What `duration()` makes of a text such as ``1h30m``."""

    def __init__(self, text: str) -> None:
        parts = _DURATION.findall(text)
        if not parts or "".join(n + u for n, u in parts) != text:
            raise ValueError("invalid duration")
        self.seconds = sum(int(n) * _SECONDS[u] for n, u in parts)

    def get_seconds(self) -> int:
        return self.seconds


def whole(number: Any) -> Any:
    """`number`, which must be one of 64 bits if it is an integer."""
    if isinstance(number, int) and not -_INT64 <= number < _INT64:
        raise ValueError("integer overflow")
    return number


def added(a: Any, b: Any) -> Any:
    return whole(_alike(a, b) + b)


def subtracted(a: Any, b: Any) -> Any:
    return whole(_alike(a, b) - b)


def multiplied(a: Any, b: Any) -> Any:
    if isinstance(a, (str, list)) or isinstance(b, (str, list)):
        raise TypeError("_*_")
    return whole(_alike(a, b) * b)


def _alike(a: Any, b: Any) -> Any:
    if isinstance(a, bool) or type(a) is not type(b):
        raise TypeError("operands of different types")
    return a


def _int(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError("int(bool)")
    return int(whole(int(value)))


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (str, int, float)):
        raise TypeError("string()")
    return str(value)


def _split(text: str, by: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    return text.split(by, limit - 1 if limit > 0 else -1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise ValueError("index out of range")
    return text[start:end]


def _sum(numbers: Sequence[Any]) -> Any:
    return whole(sum(numbers))


METHODS: dict[str, Callable[..., Any]] = {
    "startsWith": str.startswith, "endsWith": str.endswith,
    "contains": lambda text, part: part in text,
    "indexOf": str.find, "substring": _substring, "split": _split,
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
    "size": len, "sum": _sum, "max": max, "min": min,
    "join": lambda items, by="": by.join(items),
    "asInteger": Quantity.as_integer, "getSeconds": Duration.get_seconds, "trim": str.strip,
    "group": Authorizer.group, "resource": Authorizer.resource, "check": Authorizer.check,
    "allowed": Authorizer.allowed,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "size": len, "string": _string, "int": _int, "quantity": Quantity,
    "duration": Duration,
}  # fmt: skip
