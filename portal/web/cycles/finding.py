"""What a cycle did, in one sentence that names the queues: who took from whom, who started, who waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from portal.display.format import counted
from portal.display.format import gpus as gpus_of
from portal.display.sentences import and_list
from portal.web.cycles.figures import DecisionLine, Pass
from scheduling.models import Action, Workload
from scheduling.services.words.sentences import Reader, home_of

NAMED = 3
"""Queues that a sentence names; the others are one figure."""
ELSEWHERE = "other queues"
TAKES = (Action.EVICT, Action.SHRINK)


@dataclass(frozen=True, slots=True)
class Finding:
    """``lead`` is the answer, ``rest`` what else there is to say."""

    lead: str
    rest: Sequence[str]


def finding(seen: Pass, reader: Reader) -> Finding:
    """Of ``seen`` as ``reader`` may have it. Counts are of the whole cycle, names of what the reader sees."""
    sentences = [*_evictions_in_words(seen, reader), *_moved(seen, reader), _started(seen, reader)]
    sentences += _waits(seen, reader)
    return Finding(sentences[0], sentences[1:])


def _evictions_in_words(seen: Pass, reader: Reader) -> list[str]:
    """For whom room was made, and which queues it comes from."""
    lines = [line for line in seen.acts if line.decision.action in TAKES]
    takes = [line.decision for line in lines]
    winners = [_queue(act.for_workload, reader) for act in takes if act.for_workload_id]
    given = [
        f"{side.queue.name} gives up {gpus_of(-side.change)} {side.gpu_class.name}"
        for side in seen.sides
        if side.change < 0
    ]
    if takes and given:
        whom = f"Room was made for {and_list(list(dict.fromkeys(winners)))}: " if winners else ""
        return [f"{whom}{and_list(given)}."]
    if takes and winners == [_queue(act.workload, reader) for act in takes]:
        where = _in_queues(lines, len(lines), reader)
        leave = "leaves" if len(lines) == 1 else "leave"
        return [f"{counted(len(lines), 'workload')} {leave} for others of the same queue{where}."]
    many = seen.cycle.evicted
    return [f"It took GPUs back from {counted(many, 'workload')}."] if many else []


def _moved(seen: Pass, reader: Reader) -> list[str]:
    lines = [line for line in seen.acts if line.decision.action == Action.MOVE]
    if not lines:
        return []
    verb = "moves" if len(lines) == 1 else "move"
    where = _in_queues(lines, len(lines), reader)
    return [f"{counted(len(lines), 'workload')} {verb} to other nodes{where}."]


def _started(seen: Pass, reader: Reader) -> str:
    total = seen.cycle.admitted
    if not total:
        return "It started nothing."
    lines = [line for line in seen.acts if line.decision.action == Action.ADMIT]
    return f"It started {counted(total, 'workload')}{_in_queues(lines, total, reader)}."


def _waits(seen: Pass, reader: Reader) -> list[str]:
    total = len(seen.waits)
    if not total:
        return []
    verb = "waits" if total == 1 else "wait"
    return [
        f"{counted(total, 'workload')} {verb} for a new reason{_in_queues(seen.waits, total, reader)}."
    ]


def _in_queues(lines: Sequence[DecisionLine], total: int, reader: Reader) -> str:
    """As ``: 3 in vision, 1 in search and 2 in other queues``; the most first."""
    by_queue = Counter(_queue(line.decision.workload, reader) for line in lines)
    by_queue.pop(ELSEWHERE, None)
    named = by_queue.most_common(NAMED)
    if not named:
        return ""
    left = total - sum(many for _, many in named)
    if len(named) == 1 and not left:
        return f" in {named[0][0]}"
    parts = [f"{many} in {name}" for name, many in named]
    return f": {and_list(parts + ([f'{left} in {ELSEWHERE}'] if left else []))}"


def _queue(work: Workload | None, reader: Reader) -> str:
    home = home_of(work, reader) if work else None
    return home.name if home else ELSEWHERE
