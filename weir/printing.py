"""What a terminal or a script reads: tables for people, JSON or YAML for scripts."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click
import yaml

Row = Mapping[str, Any]
Column = tuple[str, Callable[[Row], Any]]
TABLE, JSON, YAML = "table", "json", "yaml"
GAP = "  "
FIGURE = re.compile(r"–|[\d,]+(\.\d+)?( %)?|\d+ (d|h|min|s)( \d+ (h|min|s))?")
"""What stands to the right of its column: numbers, shares, durations."""


def safe(text: object) -> str:
    """``text`` without what would move the cursor or colour the terminal: names come from other people."""
    return "".join(
        c if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf") else "�" for c in str(text)
    )


def document(data: Any, form: str) -> None:
    """``data`` as the server sent it."""
    if form == JSON:
        click.echo(json.dumps(data, indent=2, ensure_ascii=True))
    else:
        click.echo(yaml.safe_dump(data, sort_keys=False), nl=False)


def table(rows: Sequence[Row], columns: Sequence[Column], empty: str) -> None:
    """One line a row under a line of heads; figures to the right. ``empty`` is said where there are none."""
    if not rows:
        click.echo(empty)
        return
    texts = [[_cell(of(row)) for _, of in columns] for row in rows]
    right = [all(_is_figure(of(row)) for row in rows) for _, of in columns]
    heads = [head for head, _ in columns]
    width = [max(_width(line[i]) for line in [heads, *texts]) for i in range(len(heads))]
    for line in [heads, *texts]:
        parts = [_pad(cell, width[i], right=right[i]) for i, cell in enumerate(line)]
        click.echo(GAP.join(parts).rstrip())


def facts(pairs: Iterable[tuple[str, Any]]) -> None:
    """Name and value a line; what is not known is left out."""
    rows = [(name, value) for name, value in pairs if value not in (None, "")]
    width = max((_width(name) for name, _ in rows), default=0)
    for name, value in rows:
        click.echo(f"{_pad(name, width, right=False)}{GAP}{_cell(value)}")


def counted(count: int, word: str) -> str:
    return f"{count:,} {word if count == 1 else f'{word}s'}"


def number(value: float | None) -> str:
    """GPUs and hours to a tenth, whole ones without it; nothing known is a dash."""
    if value is None:
        return "–"
    return f"{value:,.1f}".removesuffix(".0")


def moment(text: str | None) -> str:
    """An instant of the API in the terminal's time zone."""
    if not text:
        return "–"
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"


def band(start: str | None, end: str | None) -> str:
    """From one instant to another; one alone where both are of one minute."""
    first, last = moment(start), moment(end)
    return first if first == last else f"{first} to {last}"


def ago(text: str | None) -> str:
    """How long an instant of the portal's clock is over: a cluster that runs fast has a time of its own."""
    if not text:
        return "–"
    passed = datetime.now(UTC) - datetime.fromisoformat(text)
    return f"{duration(max(0.0, passed.total_seconds()))} ago"


def duration(seconds: float | None) -> str:
    """The two largest units, as ``2 h 10 min``."""
    if seconds is None:
        return "–"
    left, parts = round(abs(seconds)), list[str]()
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= size or (unit == "s" and not parts):
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2])


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) or FIGURE.fullmatch(str(value)) is not None


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    return safe(value).replace("\n", " ")


def _width(text: str) -> int:
    """Columns of a terminal that ``text`` takes."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def _pad(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space
