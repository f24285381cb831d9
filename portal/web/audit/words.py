"""How a changed field and its values read: no name of a column, no bare seconds, no machine's instant."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from portal.display.format import NONE, duration, number, utc

IN_SECONDS = "_s"
"""How the names of fields end that hold durations."""
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


def name_of(field: str) -> str:
    """'inference, h100-80gb, borrowing_limit' -> 'inference, h100-80gb, borrowing limit'."""
    return field.removesuffix(IN_SECONDS).replace("_", " ")


def words_of(field: str, value: Any) -> str:
    if value is None or value in ("", [], {}):
        return NONE
    if isinstance(value, list):
        return ", ".join(words_of(field, one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return duration(value) if field.endswith(IN_SECONDS) else number(value, 3)
    return _instant(value) if isinstance(value, str) and INSTANT.match(value) else str(value)


def _instant(text: str) -> str:
    try:
        return utc(datetime.fromisoformat(text))
    except ValueError:
        return text
