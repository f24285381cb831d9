"""An edit that holds again: every day or week at the same time of the clock, so many times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from scheduling.services.queues.save import EditFault

EVERY = {"day": timedelta(days=1), "week": timedelta(weeks=1)}
MOST = 60
FIELD = "repeat"

Span = tuple[datetime, datetime]


def repeated(
    every: str, times: str, span: tuple[datetime | None, datetime | None], local: ZoneInfo
) -> list[Span] | EditFault:
    """From when until when it holds the second time and on; ``span`` is the first."""
    start, end = span
    step = EVERY.get(every)
    if step is None:
        return EditFault("no_step", FIELD, "It repeats every day or every week.", "Choose one.")
    if start is None or end is None:
        return EditFault(
            "no_span", FIELD, "An edit that repeats begins and ends each time.",
            "Write from when until when it holds the first time.",
        )  # fmt: skip
    if end - start > step:
        return EditFault(
            "overlaps", FIELD, f"It would hold for longer than a {every}, and begin again before.",
            "Let it end sooner, or repeat it less often.",
        )  # fmt: skip
    if not times.isascii() or not times.isdigit() or not 2 <= int(times[:4]) <= MOST:
        return EditFault(
            "bad_times", FIELD, f"“{times[:10]}” is no number of times.", f"Write 2 to {MOST}."
        )
    return list(_again(start, end, step, int(times), local))


def _again(
    start: datetime, end: datetime, step: timedelta, times: int, local: ZoneInfo
) -> Iterator[Span]:
    first, last = start.astimezone(local), end.astimezone(local)
    for number in range(1, times):
        # Local times move by the clock, so 18:00 stays 18:00 where summer time begins between.
        moved = (one + number * step for one in (first, last))
        begins, ends = (one.astimezone(UTC) for one in moved)
        yield begins, ends
