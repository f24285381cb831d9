"""Weir's own ledger as a trace: a ``.ledger.csv`` of work that is over, which ``export-trace`` writes.

Columns: when it was submitted (ISO, UTC), its useful run time with all members in seconds, whole GPUs, queue,
user, and the run time that it asked for (0: none).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import numpy as np

from .lines import LONGEST_S, MOST_GPUS, Faults, read_lines, whole
from .model import Ints, Trace
from .philly import in_window, parse_instant, positions

COLUMNS = ("submitted", "run_s", "gpus", "queue", "user", "asked_s")
LONGEST_NAME = 253


@dataclass(frozen=True, slots=True)
class Spell:
    """One row: all useful work of one workload, in one piece."""

    submitted: datetime
    run_s: int
    gpus: int
    queue: str
    user: str
    asked_s: int = 0


def write_ledger(spells: Iterable[Spell], file: TextIO) -> int:
    """Writes the header and a row each; returns how many. The same spells give the same bytes."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    count = 0
    for spell in spells:
        at = spell.submitted.astimezone(UTC).isoformat(timespec="seconds")
        writer.writerow((at, spell.run_s, spell.gpus, spell.queue, spell.user, spell.asked_s))
        count += 1
    return count


def read_ledger(file: Path, *, begin: datetime | None = None, end: datetime | None = None) -> Trace:
    """The work in ``file`` (``.gz`` or not), only with ``begin <= submitted <= end``, in order of submission.

    Submit times count from the first job kept. Raises TraceError with every fault (up to 20).
    """
    spells = read_spells(file)
    at_s = np.array([int(s.submitted.timestamp()) for s in spells], dtype=np.int64)
    order = np.argsort(at_s, kind="stable")
    order = order[in_window(at_s, begin, end)[order]]
    first_s = int(at_s[order[0]]) if len(order) else 0
    queues = tuple(sorted({spell.queue for spell in spells}))
    users = tuple(sorted({spell.user for spell in spells}))

    def column(values: Iterable[int]) -> Ints:
        return np.array(list(values), dtype=np.int64)[order]

    return Trace(
        name=file.name.partition(".ledger")[0],
        origin=datetime.fromtimestamp(first_s, UTC),
        submit_s=at_s[order] - first_s,
        duration_s=column(s.run_s for s in spells),
        gpus=column(s.gpus for s in spells),
        queue=positions([s.queue for s in spells], queues)[order],
        user=positions([s.user for s in spells], users)[order],
        index=order,
        queues=queues,
        users=users,
        files=(file,),
        left_out=len(spells) - len(order),
        asked_s=column(s.asked_s for s in spells),
    )


def read_spells(file: Path) -> list[Spell]:
    faults = Faults(file)
    lines = read_lines(file, faults)
    number, header = next(lines, (1, ""))
    if header != ",".join(COLUMNS):
        faults.fail(number, repr(header[:200]), f"the header {','.join(COLUMNS)}")
    spells = []
    for number, line in lines:
        cells = next(csv.reader([line]), [])
        if len(cells) != len(COLUMNS):
            faults.add(number, f"{len(cells)} in {line[:60]!r}", f"{len(COLUMNS)} fields")
            continue
        spell = read_spell(cells, number, faults)
        if spell:
            spells.append(spell)
    faults.raise_if_any()
    return spells


def read_spell(cells: list[str], number: int, faults: Faults) -> Spell | None:
    submitted, run, gpus, queue, user, limit = cells
    at_s = parse_instant(submitted)
    if at_s is None:
        faults.add(number, f"submitted {submitted[:60]!r}", "a time such as 2026-01-05T10:00:00")
    run_s = whole(run, 1, LONGEST_S)
    if run_s is None:
        faults.add(number, f"run_s {run[:60]!r}", f"whole seconds from 1 to {LONGEST_S:,}")
    count = whole(gpus, 1, MOST_GPUS)
    if count is None:
        faults.add(number, f"gpus {gpus[:60]!r}", f"whole GPUs from 1 to {MOST_GPUS:,}")
    asked_s = whole(limit, 0, LONGEST_S)
    if asked_s is None:
        faults.add(number, f"asked_s {limit[:60]!r}", f"whole seconds from 0 to {LONGEST_S:,}")
    if not queue.strip() or len(queue) > LONGEST_NAME:
        faults.add(number, f"queue {queue[:60]!r}", "the name of a queue")
    if at_s is None or run_s is None or count is None or asked_s is None:
        return None
    return Spell(datetime.fromtimestamp(at_s, UTC), run_s, count, queue, user, asked_s)
