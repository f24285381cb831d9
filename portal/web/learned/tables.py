"""A verdict as tables: against every other order, and fairness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.display.csv import Table
from portal.display.format import hmin, number
from portal.web.learned.words import BOUNDS
from scheduling.models import LearnedOrder
from scheduling.services.learned import orders, rivals
from scheduling.services.learned.verdicts import TRACE_KIND

TITLE = "A learned order against every other"
MARK_ROOM = 0.9
"""Of half of a small multiple, so that whiskers stay inside."""


@dataclass(frozen=True, slots=True)
class Head:
    """One window."""

    kind: str
    trace: str
    """Name of another recording; empty of the cluster's own past."""
    begin: datetime
    end: datetime
    workloads: int
    mine_s: float


@dataclass(frozen=True, slots=True)
class Cell:
    """One order on one window; ``change`` is v's wait less its own, in minutes. ``at``, ``low`` and ``width``
    are percent of a line whose middle is no difference."""

    theirs_s: float
    verdict: str
    change: str
    at: float
    low: float
    width: float


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    says: str
    cells: Sequence[Cell | None]


@dataclass(frozen=True, slots=True)
class BoundCell:
    now: str
    mine: str
    most: str
    is_kept: bool


@dataclass(frozen=True, slots=True)
class BoundRow:
    name: str
    unit: str
    cells: Sequence[BoundCell]


@dataclass(frozen=True, slots=True)
class Verdicts:
    heads: Sequence[Head]
    rows: Sequence[Row]
    bounds: Sequence[BoundRow]
    comparisons: int

    @property
    def has_trace(self) -> bool:
        return any(head.trace for head in self.heads)

    @property
    def own_heads(self) -> list[Head]:
        """Of the windows of the cluster's own past, whose bounds count."""
        return [head for head in self.heads if not head.trace]


def verdicts(order: LearnedOrder) -> Verdicts | None:
    """None where nothing is judged yet."""
    windows = [one for one in order.verdict.get("windows", []) if one["kind"] != "drift"]
    if not windows:
        return None
    own = [one for one in windows if one["kind"] != TRACE_KIND]
    cells = [cell for one in windows for cell in one["against"]]
    most = max([1.0, *(abs(c["difference_s"]) + (c["half_s"] or 0) for c in cells)])
    keys = {cell["name"]: cell["order"] for cell in cells}
    return Verdicts(
        heads=[_head(one) for one in windows],
        rows=[Row(n, _says(key), [_cell(w, n, most) for w in windows]) for n, key in keys.items()],
        bounds=[_bound(name, own) for name in BOUNDS],
        comparisons=order.verdict["comparisons"],
    )


def _says(key: str) -> str:
    return "decides now" if key == orders.NOW else rivals.SAYS.get(key, "hand-written")


def _head(one: dict[str, Any]) -> Head:
    begin, end = (datetime.fromisoformat(one[name]) for name in ("begin", "end"))
    return Head(one["kind"], one.get("trace", ""), begin, end, one["workloads"], one["mine_s"])


def _cell(window: dict[str, Any], name: str, most: float) -> Cell | None:
    one = next((cell for cell in window["against"] if cell["name"] == name), None)
    if one is None:
        return None
    mean, half = one["difference_s"], one["half_s"] or 0.0
    low = 50 + 50 * MARK_ROOM * (mean - half) / most
    return Cell(
        theirs_s=one["theirs_s"],
        verdict=one["verdict"],
        change=minutes(mean, half),
        at=round(50 + 50 * MARK_ROOM * mean / most, 2),
        low=round(low, 2),
        width=round(100 * MARK_ROOM * half / most, 2),
    )


def minutes(mean_s: float, half_s: float) -> str:
    """'−8 ± 2', with a decimal where both are small."""
    digits = 0 if max(abs(mean_s), half_s) >= 600 else 1
    sign = "−" if mean_s < 0 else "+"
    return f"{sign}{number(abs(mean_s) / 60, digits)} ± {number(half_s / 60, digits)}"


def _bound(name: str, windows: Sequence[dict[str, Any]]) -> BoundRow:
    title, unit = BOUNDS[name]
    found = [next(b for b in one["bounds"] if b["figure"] == name) for one in windows]
    return BoundRow(title, unit, [_bound_cell(name, one) for one in found])


def _bound_cell(name: str, one: dict[str, Any]) -> BoundCell:
    now, mine, most = (_told(name, one[key]) for key in ("now", "mine", "most"))
    return BoundCell(now, mine, most, one["is_kept"])


def _told(name: str, value: float) -> str:
    if name.endswith("_s"):
        return hmin(value)
    return number(value, 0 if value == int(value) else 3 if value < 1 else 2)


def table(order: LearnedOrder | None) -> Table:
    """Against every other order, window by window, for CSV."""
    columns = (
        "version", "window", "begin", "end", "workloads", "order", "learned_wait_s", "other_wait_s",
        "difference_s", "half_s", "verdict",
    )  # fmt: skip
    if order is None:
        return Table("learned-order", TITLE, columns, [])
    rows = [
        (
            order.version, one["kind"], one["begin"], one["end"], one["workloads"], cell["name"],
            one["mine_s"], cell["theirs_s"], cell["difference_s"], cell["half_s"], cell["verdict"],
        )
        for one in order.verdict.get("windows", [])
        for cell in one["against"]
    ]  # fmt: skip
    return Table("learned-order", TITLE, columns, rows)
