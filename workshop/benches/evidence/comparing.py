"""Then and now: what the page of evidence says of each figure, beside what was measured since."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from workshop.benches.evidence.claims import CLAIMS, Goal, Line
from workshop.benches.evidence.rendering import BLOCK, Report

WORSE = 1.15
"""A figure may be so many times as bad as before; what lies below is what a machine does by itself."""
SPENT = re.compile(r"^([\d,]+) CPU-s, ", re.MULTILINE)
ALL = "the whole bench, CPU-s"
Page = Mapping[str, Mapping[str, float]]
"""Figures by bench and by how each reads."""


@dataclass(frozen=True, slots=True)
class Change:
    """Of one figure; ``times`` is how many times as bad it is now, None where neither way is bad."""

    bench: str
    said: str
    then: float
    now: float
    times: float | None

    @property
    def is_worse(self) -> bool:
        return self.times is not None and self.times > WORSE

    def __str__(self) -> str:
        verdict = "  WORSE" if self.is_worse else ""
        return f"{self.bench}: {self.said}: {self.then:g} then, {self.now:g} now{verdict}"


def figures_of(page: str) -> Page:
    """What the tables of ``page`` say."""
    return {
        match["name"]: dict(_rows(match.group()))
        for match in BLOCK.finditer(page)
        if match["name"] in CLAIMS
    }


def _rows(block: str) -> Iterator[tuple[str, float]]:
    for line in block.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 4 and (value := _number(cells[1])) is not None:
            yield cells[0], value
    if spent := SPENT.search(block):
        yield ALL, float(spent[1].replace(",", ""))


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def changes(then: Page, reports: Mapping[str, Report]) -> Iterator[Change]:
    """Of each figure of ``reports`` that stood on the page before."""
    for bench, claim in CLAIMS.items():
        report, before = reports.get(bench, {}), then.get(bench, {})
        if "measured" not in report:
            continue
        for line in claim.lines:
            now = report["measured"].get(line.name)
            if now is not None and line.said in before:
                was = before[line.said]
                yield Change(bench, line.said, was, now, _times(line, was, now))
        if ALL in before:
            yield Change(
                bench, ALL, before[ALL], report["cpu_s"], _over(report["cpu_s"], before[ALL])
            )


def _times(line: Line, was: float, now: float) -> float | None:
    """How many times as bad: more of a cost, or less of what is to be at least so much."""
    if line.goal in (Goal.AT_LEAST, Goal.EQUAL):
        return _over(was, now)
    if line.goal == Goal.AT_MOST or "CPU-" in line.said:
        return _over(now, was)
    return None


def _over(more: float, less: float) -> float:
    """A rounded zero beside something is no ratio."""
    return more / less if less > 0 else 1.0


def in_words(found: list[Change]) -> Iterator[str]:
    """Then and now, then what got worse, in lines."""
    yield from map(str, found)
    worse = [change for change in found if change.is_worse]
    yield f"{len(worse)} of {len(found)} figures are worse than before by more than {WORSE - 1:.0%}."
    for change in worse:
        yield f"  {change.bench}: {change.said}: {change.times:.2f} times as bad"
