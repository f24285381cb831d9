"""Who holds GPUs, by queue: kept from cycle to cycle as the line is.

Whoever started is put in, whoever does not run any more falls out.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.order.shapes import note_kind
from scheduling.engine.state.input import Work
from scheduling.engine.state.order import FRESH, LISTED, OUT, SHORT, STARTED, UNKNOWN, Line, Memo
from scheduling.engine.state.units import RUNNING


@inner
def muster(line: Line, memo: Memo, work: Work) -> None:
    """Bring the list up to date; who never waited here is told its kind."""
    kept = _drop(line, work)
    if line.count[STARTED] * (kept + line.count[STARTED]) < work.phase.size:
        for k in range(line.count[STARTED]):
            kept = _put_in(line, work, line.started[k], kept)
        line.count[2] = kept
    else:
        _list_all(line, work)
    for k in range(line.count[STARTED]):
        w = line.started[k]
        if line.berth[w] == LISTED and memo.of[w] == UNKNOWN:
            note_kind(memo, work, w)
    line.count[STARTED] = 0
    _sum_up(line, work)


@once
def _drop(line: Line, work: Work) -> int:
    """Close the gaps of those that left; returns how many stay."""
    running, berth, phase, kept = line.running, line.berth, work.phase, 0
    for k in range(line.count[2]):
        w = running[k]
        if berth[w] != LISTED:
            continue
        if phase[w] == RUNNING:
            running[kept] = w
            kept += 1
        else:
            berth[w] = OUT
    return kept


@once
def _put_in(line: Line, work: Work, w: int, size: int) -> int:
    if work.phase[w] != RUNNING:
        line.berth[w] = OUT
        return size
    line.berth[w] = LISTED
    k, q = size, work.queue[w]
    while k > 0:
        v = line.running[k - 1]
        if work.queue[v] < q or (work.queue[v] == q and v < w):
            break
        line.running[k] = v
        k -= 1
    line.running[k] = w
    return size + 1


@inner
def _list_all(line: Line, work: Work) -> None:
    """Counting sort by queue."""
    runs = line.runs
    for q in range(runs.size):
        runs[q] = 0
    for w in range(work.phase.size):
        if work.phase[w] == RUNNING:
            runs[work.queue[w] + 2] += 1
            line.berth[w] = LISTED
        elif line.berth[w] == FRESH:
            line.berth[w] = OUT
    for q in range(2, runs.size):
        runs[q] += runs[q - 1]
    line.count[2] = runs[runs.size - 1]
    for w in range(work.phase.size):
        if work.phase[w] == RUNNING:
            line.running[runs[work.queue[w] + 1]] = w
            runs[work.queue[w] + 1] += 1


@once
def _sum_up(line: Line, work: Work) -> None:
    """Where each queue begins, and what is known of those that run. Arrays are looked up once."""
    running, runs, foretold, queue = line.running, line.runs, line.foretold, work.queue
    p90, elastic, members, least = work.predicted_p90, work.elastic, work.members, work.least
    begun, known, flexible, short = 0, 0, 0, 0
    for q in range(foretold.size):
        foretold[q] = 0
    for k in range(line.count[2]):
        w = running[k]
        q = queue[w]
        while begun <= q + 1:
            runs[begun] = k
            begun += 1
        if p90[w] < np.inf:
            known += 1
            if q >= 0:
                foretold[q] += 1
        flexible += elastic[w]
        short += members[w] < least[w]
    for i in range(begun, runs.size):
        runs[i] = line.count[2]
    line.count[4], line.count[5], line.count[SHORT] = known, flexible, short
