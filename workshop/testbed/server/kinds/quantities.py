"""Kubernetes quantities ("500m", "2Gi", 4) as exact integers of thousandths."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

_FORM = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(|[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)$")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


@lru_cache(maxsize=4096)
def milli(quantity: str | int | float) -> int:
    """Return `quantity` in thousandths of its unit, rounded up.

    Raises ValueError if it is no quantity.
    """
    match = _FORM.match(str(quantity))
    if match is None:
        raise ValueError(f"{quantity!r} is no quantity")
    number, suffix = Decimal(match[1]), match[2]
    if suffix in _BINARY:
        scaled = number * 1024 ** _BINARY[suffix]
    elif suffix in _DECIMAL:
        scaled = number.scaleb(_DECIMAL[suffix])
    else:
        scaled = number.scaleb(int(suffix[1:]))
    return -int(-scaled * 1000 // 1)


def render_binary(thousandths: int) -> str:
    """Return whole numbers with the largest binary suffix that leaves them whole, others as `render`."""
    number, rest = divmod(thousandths, 1000)
    fitting = [s for s, power in _BINARY.items() if number and not number % 1024**power]
    if rest or not fitting:
        return render(thousandths)
    return f"{number // 1024 ** _BINARY[fitting[-1]]}{fitting[-1]}"


def render(thousandths: int) -> str:
    """Return the shortest decimal form: whole numbers plain, others in milli."""
    whole, rest = divmod(thousandths, 1000)
    return f"{thousandths}m" if rest else str(whole)
