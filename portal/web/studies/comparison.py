"""An experiment as its page shows it: the finding, one small multiple a figure, variants, queues."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from portal.display.format import counted, duration, hmin, money, number
from portal.web.studies.asking import differs
from scheduling.models import Study, StudyState, Variant
from scheduling.models.studies import OPEN
from scheduling.services.studies.experiments.figures import FIGURES, StudyFigure
from scheduling.services.studies.experiments.promoting import conditions
from scheduling.services.studies.experiments.results import (
    LEAST_WAIT_S,
    Cell,
    FigureRow,
    QueueCell,
    QueueRow,
    Results,
    Verdict,
    results,
)

UNITS = {"wait": "h:min", "%": "%", "GPU-hours": "GPU-hours", "": "", "money": ""}
OF = {"utilization_pct": "% of ready"}
LEAST_MULTIPLE, MOST_MULTIPLE = 0.4, 4.0
TICKS = ((0.5, "½"), (1.0, "A"), (2.0, "2×"), (3.0, "3×"))
QUIET = ("", Verdict.NOISE, Verdict.TOO_FEW)


@dataclass(frozen=True, slots=True)
class FigureHead:
    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class WhiskerMark:
    """Dot and whiskers, per cent of a small axis on which ``base`` is where A is."""

    base: float
    at: float
    low: float
    width: float
    filled: bool


@dataclass(frozen=True, slots=True)
class FigureCell:
    """One cell: ``mean`` is empty and ``mark`` None where there are too few replays."""

    verdict: str
    mean: str
    change: str
    mark: WhiskerMark | None
    head: str


@dataclass(frozen=True, slots=True)
class VariantRow:
    variant: Variant
    done: int
    of: int
    differs: str
    took: str
    cells: tuple[FigureCell, ...]
    is_open: bool
    left: str
    is_best: bool

    @property
    def percent(self) -> int:
        return 100 * self.done // self.of if self.of else 0


@dataclass(frozen=True, slots=True)
class QueueMark:
    letter: str
    mark: WhiskerMark
    text: str
    verdict: str
    y: int


@dataclass(frozen=True, slots=True)
class QueueLine:
    queue: str
    jobs: int
    p90: str
    words: str
    marks: tuple[QueueMark, ...]
    height: int
    row: QueueRow


@dataclass(frozen=True, slots=True)
class Speaks:
    """Of a variant that may be promoted: what it does, and the conditions that it lacks."""

    does: str
    lead: str
    lacks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparedPage:
    heads: tuple[FigureHead, ...]
    rows: tuple[VariantRow, ...]
    queues: tuple[QueueLine, ...]
    ticks: tuple[tuple[float, str], ...]
    finding: str
    finding_rest: str
    comparisons: int
    recorded: str
    is_open: bool
    promotable: tuple[tuple[Variant, Speaks], ...]
    found: Results


def page(study: Study) -> ComparedPage:
    found = results(study)
    best = _best(found)
    spans = [_span(found, figure) for figure in FIGURES if figure.drawn]
    rows = tuple(_row(study, row, spans, best) for row in found.rows)
    bold, rest = _finding(study, found, best, is_open=any(row.is_open for row in rows))
    return ComparedPage(
        heads=tuple(FigureHead(f.name, OF.get(f.key, UNITS[f.unit])) for f in FIGURES if f.drawn),
        rows=rows,
        queues=tuple(_queue(row) for row in found.queues),
        ticks=tuple((multiple_x(at), text) for at, text in TICKS),
        finding=bold,
        finding_rest=rest,
        comparisons=found.comparisons,
        recorded=_recorded(study, found),
        is_open=any(row.is_open for row in rows),
        promotable=tuple((row.variant, _speaks(study, row, found)) for row in _promotable(found)),
        found=found,
    )


def _row(
    study: Study, row: FigureRow, spans: Sequence[tuple[float, float]], best: FigureRow | None
) -> VariantRow:
    drawn = [cell for cell in row.cells if cell.figure.drawn]
    of = len(study.seeds)
    return VariantRow(
        variant=row.variant,
        done=row.done,
        of=of,
        differs=differs({"changes": row.variant.changes}),
        took=duration(row.cpu_s) if row.done else "",
        cells=tuple(
            _cell(cell, row, span, once=not study.is_drawn)
            for cell, span in zip(drawn, spans, strict=True)
        ),
        is_open=row.variant.state in OPEN,
        left=_time_left(row, of),
        is_best=best is row,
    )


def _time_left(row: FigureRow, of: int) -> str:
    if row.variant.state != StudyState.RUNNING or not row.done:
        return ""
    return f"about {duration(row.cpu_s / row.done * (of - row.done))} left"


def as_text(figure: StudyFigure, value: float) -> str:
    """A figure in its own form: h:min, one decimal, or a whole number."""
    if figure.unit == "wait":
        return hmin(value)
    if figure.unit == "money":
        return money(value)
    return number(value, 1 if figure.unit == "%" else 0)


def _difference(figure: StudyFigure, mean: float, half: float | None) -> str:
    """'−8 ± 2': minutes of waits, else the figure's own unit."""
    scale, digits = (60.0, 0) if figure.unit == "wait" else (1.0, 1 if figure.unit == "%" else 0)
    if figure.unit == "wait" and abs(mean) < 600 and (half or 0) < 600:
        digits = 1
    sign = "+" if mean > 0 else "−" if mean < 0 else ""
    unit = " min" if figure.unit == "wait" else ""
    around = "" if half is None else f" ± {number(half / scale, digits)}"
    return f"{sign}{number(abs(mean) / scale, digits)}{around}{unit}"


def _cell(cell: Cell, row: FigureRow, span: tuple[float, float], *, once: bool) -> FigureCell:
    """Of a period that is lived once there are means alone."""
    head, base = cell.figure.name, _x(0.0, span)
    if cell.mean is None or (cell.difference is None and row.variant.letter != "A"):
        return FigureCell("", "", "", None, head)
    if not once and not row.is_told:
        return FigureCell(str(Verdict.TOO_FEW), "", "", None, head)
    line = WhiskerMark(base, base, base, 0, filled=False)
    if cell.difference is None or once:
        return FigureCell("", as_text(cell.figure, cell.mean), "", line, head)
    if cell.verdict == Verdict.TOO_FEW:
        return FigureCell(str(Verdict.TOO_FEW), "", "", None, head)
    half = cell.difference.half or 0.0
    low, high = (_x(cell.difference.mean + side, span) for side in (-half, half))
    mark = WhiskerMark(
        base, _x(cell.difference.mean, span), low, round(high - low, 2), cell.verdict not in QUIET
    )
    change = _difference(cell.figure, cell.difference.mean, cell.difference.half)
    return FigureCell(cell.verdict, as_text(cell.figure, cell.mean), change, mark, head)


def _span(found: Results, figure: StudyFigure) -> tuple[float, float]:
    """The differences that a column has to hold, A's 0 among them."""
    ends = [0.0]
    for row in found.rows:
        difference = row.cell(figure.key).difference
        if difference is not None and row.is_told:
            half = difference.half or 0.0
            ends += [difference.mean - half, difference.mean + half]
    low, high = min(ends), max(ends)
    return (low, high) if high > low else (-1.0, 1.0)


def _x(value: float, span: tuple[float, float]) -> float:
    """Per cent, between 4 and 96."""
    low, high = span
    return round(4 + 92 * (value - low) / (high - low), 2)


def multiple_x(multiple: float) -> float:
    """Per cent of the axis from less than a half to four times A, logarithmic."""
    low, high = math.log(LEAST_MULTIPLE), math.log(MOST_MULTIPLE)
    at = math.log(min(MOST_MULTIPLE, max(LEAST_MULTIPLE, multiple)))
    return round(100 * (at - low) / (high - low), 2)


def _queue(row: QueueRow) -> QueueLine:
    marks = tuple(_queue_mark(cell, 8 + 14 * place) for place, cell in enumerate(row.cells))
    return QueueLine(
        row.queue, row.jobs, hmin(row.p90_s), _queue_words(row), marks, 14 * len(marks) + 4, row
    )


def _queue_mark(cell: QueueCell, y: int) -> QueueMark:
    base, at = multiple_x(1.0), multiple_x(cell.multiple)
    low, high = multiple_x(cell.low), multiple_x(cell.high)
    speaks = cell.verdict not in QUIET
    text = f"{cell.letter}: {hmin(cell.p90_s)}, {number(cell.multiple, 2)} times A"
    is_judged = cell.verdict != Verdict.TOO_FEW
    width = round(high - low, 2) if is_judged else 0.0
    return QueueMark(cell.letter, WhiskerMark(base, at, low, width, speaks), text, cell.verdict, y)


def _queue_words(row: QueueRow) -> str:
    parts = []
    for verdict in (Verdict.BETTER, Verdict.WORSE):
        letters = [cell.letter for cell in row.cells if cell.verdict == verdict]
        if letters:
            parts.append(f"{', '.join(letters)} {verdict}")
    if parts:
        return "; ".join(parts)
    is_judged = any(cell.verdict == Verdict.NOISE for cell in row.cells)
    return "all noise" if is_judged else "after 5 replays"


def _best(found: Results) -> FigureRow | None:
    """Those that are better somewhere and worse nowhere, the shortest average wait among them."""
    good = [
        row
        for row in found.rows[1:]
        if row.is_told and row.keys(Verdict.BETTER) and not row.keys(Verdict.WORSE)
    ]
    return min(good, key=lambda row: row.cell("avg_wait_s").mean or 0.0, default=None)


NAMES = {
    "avg_wait_s": "the average wait",
    "p90_wait_s": "the P90 wait",
    "utilization_pct": "utilization",
    "unfair_pct": "unfair jobs",
    "evictions": "evictions",
    "lost_gpu_hours": "GPU-hours lost",
}


TOO_FEW = {
    True: ("Too few replays yet to say anything.", "Figures come after 5 of them."),
    False: ("It ended with too few replays to say anything.", "5 of each are needed."),
}
"""By whether more come."""


def _finding(
    study: Study, found: Results, best: FigureRow | None, *, is_open: bool
) -> tuple[str, str]:
    """The answer in one sentence, and what the others do."""
    if not study.is_drawn:
        return (
            "The period is lived once, as it came.",
            "Means without intervals: no difference is told from noise.",
        )
    others = found.rows[1:]
    if not others:
        return "Only A is lived: there is nothing to compare it with.", ""
    if not any(row.is_told for row in others):
        return TOO_FEW[is_open]
    if not any(row.keys(verdict) for row in others for verdict in (Verdict.BETTER, Verdict.WORSE)):
        few = " ".join(_short(row) for row in others if not row.is_told)
        return "No variant differs from A by more than noise over all.", few
    rest = " ".join(_short(row) for row in others if row is not best)
    if best is None:
        return (
            "No variant is better somewhere without being worse elsewhere, by more than noise.",
            rest,
        )
    key = best.keys(Verdict.BETTER)[0]
    return (
        f"{best.variant.letter}, {best.variant.name}, {_moves(found, best, key)} and nothing gets worse.",
        rest,
    )


def _moves(found: Results, row: FigureRow, key: str) -> str:
    """'cuts the average wait from 0:44 to 0:36 (−8 ± 2 min)'."""
    cell, base = row.cell(key), found.base.cell(key)
    if cell.difference is None or cell.mean is None or base.mean is None:
        return ""
    word = "raises" if cell.difference.mean > 0 else "cuts"
    change = _difference(cell.figure, cell.difference.mean, cell.difference.half)
    after = base.mean + cell.difference.mean
    was, would_be = as_text(cell.figure, base.mean), as_text(cell.figure, after)
    return f"{word} {NAMES[key]} from {was} to {would_be} ({change})"


def _short(row: FigureRow) -> str:
    letter = row.variant.letter
    if not row.is_told:
        return f"{letter} has too few replays to say."
    better, worse = (_listed(row.keys(verdict)) for verdict in (Verdict.BETTER, Verdict.WORSE))
    if better and worse:
        return f"{letter} is better in {better} and worse in {worse}."
    if better or worse:
        return f"{letter} is {'better' if better else 'worse'} in {better or worse}."
    if all(
        cell.difference and not cell.difference.mean and not cell.difference.half
        for cell in row.cells
    ):
        return f"{letter} is lived exactly as A: what it changes matters to none of this work."
    return f"{letter} shows only noise so far over all."


def _listed(keys: Iterable[str]) -> str:
    names = [NAMES[key] for key in keys]
    return (
        names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
    )


def _promotable(found: Results) -> Sequence[FigureRow]:
    """All beside A, once any of them is lived."""
    others = found.rows[1:]
    return others if any(row.done for row in others) else ()


def _speaks(study: Study, row: FigureRow, found: Results) -> Speaks:
    """What a promotion is told first: what it does, and what still speaks against it."""
    criteria = conditions(study, found, row)
    lacks = tuple(one.sentence for one in criteria if not one.is_met)
    if lacks:
        lead = f"It lacks {len(lacks)} of {counted(len(criteria), 'condition')}."
    else:
        lead = "No queue waits longer by more than noise, and nothing else speaks against it."
    return Speaks(_short(row), lead, lacks)


def _recorded(study: Study, found: Results) -> str:
    """How A, replayed, stands beside what happened."""
    wait, evictions = (found.base.cell(key).mean for key in ("avg_wait_s", "evictions"))
    came: dict[str, Any] = study.basis.get("recorded", {})
    if wait is None or evictions is None or "avg_wait_s" not in came:
        return ""
    waits = f"{hmin(wait)} / {hmin(came['avg_wait_s'])}"
    return (
        f"A replayed against what happened: average wait {waits},"
        f" evictions {number(evictions)} / {number(came['evictions'])}"
    )


FLOOR = f"A P90 below {duration(LEAST_WAIT_S)} counts as that long"
