"""What an experiment shows: every variant against A, replay by replay, and which differences are no noise.

Means are over a variant's own replays; differences over the seeds that A lived as well. Intervals hold at
95 % for all comparisons of a table together (``scheduling.simulation.replications``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.models import Result, Study, Variant
from scheduling.services.studies.experiments.figures import FIGURES, StudyFigure
from scheduling.services.studies.kinds import EXPERIMENTS
from scheduling.simulation.replications import LEAST, Difference, Verdict, compare

__all__ = [
    "Cell",
    "FigureRow",
    "QueueCell",
    "QueueRow",
    "Results",
    "Verdict",
    "document",
    "resolution_s",
    "results",
]  # fmt: skip

BASE = "A"
LEAST_WAIT_S = 60.0
"""A P90 below it is compared as if it were so long: a multiple of nothing says nothing."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of a variant: its mean, and how it differs from A. ``difference`` is None of A itself, and
    where too few replays are done of both."""

    figure: StudyFigure
    mean: float | None
    difference: Difference | None

    @property
    def verdict(self) -> str:
        return "" if self.difference is None else str(self.difference.verdict)


@dataclass(frozen=True, slots=True)
class FigureRow:
    variant: Variant
    done: int
    cells: tuple[Cell, ...]
    cpu_s: float

    @property
    def is_told(self) -> bool:
        return self.done >= LEAST

    def cell(self, key: str) -> Cell:
        return next(cell for cell in self.cells if cell.figure.key == key)

    def keys(self, verdict: Verdict) -> list[str]:
        return [
            cell.figure.key for cell in self.cells if cell.verdict == verdict and cell.figure.drawn
        ]


@dataclass(frozen=True, slots=True)
class QueueCell:
    """P90 wait of a queue under a variant: seconds, and as a multiple of A's with its interval."""

    letter: str
    p90_s: float
    multiple: float
    low: float
    high: float
    verdict: str
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QueueRow:
    queue: str
    jobs: int
    p90_s: float
    """Of A."""
    cells: tuple[QueueCell, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """``comparisons`` are those that the intervals over all are widened for, ``by_queue`` the others."""

    rows: tuple[FigureRow, ...]
    queues: tuple[QueueRow, ...]
    comparisons: int
    queue_comparisons: int

    def row(self, letter: str) -> FigureRow | None:
        return next((row for row in self.rows if row.variant.letter == letter), None)

    @property
    def base(self) -> FigureRow:
        return self.rows[0]


Lives = Mapping[int, Result]


def results(study: Study) -> Results:
    """Of what is done so far. Two queries."""
    variants = list(study.variants.all())
    lives: dict[int, dict[int, Result]] = {variant.pk: {} for variant in variants}
    done = Result.objects.filter(variant__in=variants).exclude(done_at=None)
    for one in done.order_by("seed"):
        lives[one.variant_id][one.seed] = one
    base = lives[variants[0].pk] if variants else {}
    others = max(1, len(variants) - 1)
    comparisons = others * len(FIGURES)
    names = _queues(base)
    by_queue = others * max(1, len(names))
    return Results(
        rows=tuple(_row(one, lives[one.pk], base, comparisons) for one in variants),
        queues=tuple(_queue(name, variants, lives, base, by_queue) for name in names),
        comparisons=comparisons,
        queue_comparisons=by_queue,
    )


def _row(variant: Variant, mine: Lives, base: Lives, comparisons: int) -> FigureRow:
    return FigureRow(
        variant,
        len(mine),
        tuple(_cell(figure, variant, mine, base, comparisons) for figure in FIGURES),
        sum(one.took_s for one in mine.values()),
    )


def _cell(
    figure: StudyFigure, variant: Variant, mine: Lives, base: Lives, comparisons: int
) -> Cell:
    own = [one.figures[figure.key] for one in mine.values()]
    mean = sum(own) / len(own) if own else None
    pairs = sorted(mine.keys() & base.keys())
    if variant.letter == BASE or not pairs:
        return Cell(figure, mean, None)
    before, after = ([side[seed].figures[figure.key] for seed in pairs] for side in (base, mine))
    difference = compare(before, after, comparisons, lower_is_better=figure.lower_is_better)
    return Cell(figure, mean, difference)


def _queues(base: Lives) -> list[str]:
    """Those that submitted something, the longest P90 under A first."""
    waits: dict[str, list[float]] = {}
    for one in base.values():
        for name, row in one.queues.items():
            if row.get("jobs"):
                waits.setdefault(name, []).append(row["p90_wait_s"])
    return sorted(waits, key=lambda name: (-sum(waits[name]) / len(waits[name]), name))


def _queue(
    name: str,
    variants: Sequence[Variant],
    lives: Mapping[int, Lives],
    base: Lives,
    comparisons: int,
) -> QueueRow:
    rows = [one.queues[name] for one in base.values() if name in one.queues]
    p90_s = sum(row["p90_wait_s"] for row in rows) / len(rows)
    cells = [_queue_cell(name, one, lives[one.pk], base, comparisons) for one in variants]
    return QueueRow(name, int(rows[0]["jobs"]), p90_s, tuple(cell for cell in cells if cell))


def _queue_cell(
    name: str, variant: Variant, mine: Lives, base: Lives, comparisons: int
) -> QueueCell | None:
    """None where nothing is lived yet."""
    pairs = [
        s
        for s in sorted(mine.keys() & base.keys())
        if name in mine[s].queues and name in base[s].queues
    ]
    if not pairs:
        return None
    rows = [mine[seed].queues[name] for seed in pairs]
    before = [base[seed].queues[name]["p90_wait_s"] for seed in pairs]
    after = [row["p90_wait_s"] for row in rows]
    difference = compare(before, after, comparisons)
    unit = max(LEAST_WAIT_S, sum(before) / len(before))
    at, half = 1 + difference.mean / unit, (difference.half or 0.0) / unit
    return QueueCell(
        letter=variant.letter,
        p90_s=sum(after) / len(after),
        multiple=at,
        low=max(0.0, at - half),
        high=at + half,
        verdict="" if variant.letter == BASE else str(difference.verdict),
        figures={key: sum(float(row[key]) for row in rows) / len(rows) for key in rows[0]},
    )


def resolution_s(cluster_id: int, replays: int) -> float | None:
    """The least difference of the average wait that so many replays can show, in seconds, as the newest
    experiment spread; None where none has two variants with enough replays."""
    newest = Study.objects.filter(cluster_id=cluster_id, kind__in=EXPERIMENTS)
    for study in newest.defer("world", "work")[:5]:
        spread = _spread_s(results(study))
        if spread is not None:
            return _least_seen(spread, replays)
    return None


def _spread_s(found: Results) -> float | None:
    """Half an interval of the average wait, times the root of the replays it rests on."""
    for row in found.rows[1:]:
        difference = row.cell("avg_wait_s").difference
        if difference is not None and difference.half and row.done >= LEAST:
            return difference.half * float(row.done**0.5)
    return None


def _least_seen(spread: float, replays: int) -> float | None:
    return spread / float(replays**0.5) if replays >= LEAST else None


def document(study: Study, found: Results) -> Json:
    """Figures as the API tells them: waits in seconds."""
    return {
        "comparisons": found.comparisons,
        "variants": [_variant_document(row) for row in found.rows],
        "queues": [
            {
                "queue": row.queue,
                "jobs": row.jobs,
                "p90_wait_s": round(row.p90_s, 1),
                "variants": [_queue_document(cell) for cell in row.cells],
            }
            for row in found.queues
        ],
        "queue_comparisons": found.queue_comparisons,
        "recorded": study.basis.get("recorded", {}),
    }


def _variant_document(row: FigureRow) -> Json:
    return {
        "letter": row.variant.letter,
        "done": row.done,
        "cpu_s": round(row.cpu_s, 2),
        "figures": {cell.figure.key: _cell_document(cell) for cell in row.cells}
        if row.done
        else {},
    }


def _figure(value: float) -> float:
    """To four digits. Means of such figures often lie between two: the last bits of a sum, in which versions
    of Python differ, decide none."""
    return round(round(value, 9), 4)


def _cell_document(cell: Cell) -> Json:
    """Of fewer replays than are judged no difference is told."""
    difference = cell.difference if cell.verdict != Verdict.TOO_FEW else None
    return {
        "mean": None if cell.mean is None else _figure(cell.mean),
        "difference": _figure(difference.mean) if difference else None,
        "half": _figure(difference.half) if difference and difference.half is not None else None,
        "verdict": cell.verdict,
    }


def _queue_document(cell: QueueCell) -> Json:
    return {
        "letter": cell.letter,
        "multiple": _figure(cell.multiple),
        "low": _figure(cell.low),
        "high": _figure(cell.high),
        "verdict": cell.verdict,
        **{key: _figure(value) for key, value in cell.figures.items()},
    }
