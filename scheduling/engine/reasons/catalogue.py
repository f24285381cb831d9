"""Every reason, declared once: headline, figures, sentence, and what it means.

Kernels write the figures, ``decode`` reads them; the API, pages, help and docs/reasons.md read this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from scheduling.engine.model import MILLI, UNLIMITED, Reason
from scheduling.engine.reasons import acts, no_room, rules, waits
from scheduling.engine.reasons import figures as of
from scheduling.engine.reasons.facts import OTHERS_WORK, Facts

Number = float | int | str | None


@dataclass(frozen=True, slots=True)
class ReasonEntry:
    """What is known of a reason."""

    headline: str
    """The cause in two to four words, in bold before the sentence."""
    figures: Any
    """Which figures it quotes, a kind of ``figures``."""
    sentence: Callable[[Facts], str]
    means: str
    """For the documentation: what is so when this is the reason."""
    general: str = ""
    """The sentence without a name or a figure, where it names others' work."""
    searches: bool = False
    """Whether it tells of a search for room that was not made any more."""
    outside: bool = False
    """Found outside the engine, which knows neither pods nor people."""


ACTS: Final[Mapping[Reason, ReasonEntry]] = {
    Reason.FITS_NOMINAL: ReasonEntry(
        "Fits its quota", of.Start, acts.fits_nominal,
        "it starts inside the nominal quota of its queue",
    ),
    Reason.BORROWS: ReasonEntry(
        "Borrows idle GPUs", of.Start, acts.borrows,
        "it starts on GPUs that their owners leave idle",
    ),
    Reason.RECLAIMED: ReasonEntry(
        "Reclaimed", of.Departure, acts.reclaimed,
        "its queue held more than its fair share, and another is entitled to it",
        general=f"Its GPUs went back to {OTHERS_WORK}, which is entitled to them.",
    ),
    Reason.PREEMPTED: ReasonEntry(
        "Preempted", of.Departure, acts.preempted,
        "higher priority of its own queue needs its GPUs",
        general="A workload of higher priority took its place.",
    ),
    Reason.GIVES_WAY: ReasonEntry(
        "Gives way", of.Yield, acts.gives_way,
        "its subtree shares by promise or throughput, and another goes first: it is well ahead of its own"
        " quota, or expected to take far longer",
        general=f"It made way for {OTHERS_WORK}, which goes first.",
    ),
    Reason.STALE_GANG: ReasonEntry(
        "Stale gang", of.StaleGang, acts.stale_gang,
        "fewer than its least members have been running for longer than the grace",
    ),
    Reason.DRAINED: ReasonEntry(
        "Queue drained", of.Drain, acts.drained,
        "its queue, or one above it, is being drained",
    ),
    Reason.GROWS: ReasonEntry(
        "Grows", of.Growth, acts.grows,
        "it is elastic, and nobody who waits can use the free GPUs",
    ),
    Reason.SHRINKS: ReasonEntry(
        "Shrinks", of.Shrunk, acts.shrinks,
        "it is elastic, and another is entitled to members that it can do without",
        general=f"It gave members that it can do without to {OTHERS_WORK}.",
    ),
    Reason.CONSOLIDATES: ReasonEntry(
        "Moves together", of.Move, acts.consolidates,
        "it moves so that free GPUs lie side by side for another",
        general=f"It moved so that {OTHERS_WORK} finds room.",
    ),
}  # fmt: skip
"""Of decisions that change something."""

WAITS: Final[Mapping[Reason, ReasonEntry]] = {
    Reason.AWAITS_VICTIMS: ReasonEntry(
        "GPUs come free", of.Promise, waits.awaits_victims,
        "others leave for it, and what they hold is kept for it",
    ),
    Reason.CLAIM_LAPSED: ReasonEntry(
        "Claim lapsed", of.ClaimEnd, rules.claim_lapsed,
        "what was kept for it is kept no longer; its rule says why: `seats_gone`, `taken_away` or `overdue`",
    ),
    Reason.RESERVED: ReasonEntry(
        "Next in line", of.FreeKept, waits.reserved,
        "nodes are kept for it until running work ends",
    ),
    Reason.NEVER_FITS: ReasonEntry(
        "Can never start", of.NeverFits, no_room.never_fits,
        "a limit above it, or the nodes, are too small; the sentence says which",
    ),
    Reason.NODES_OUT: ReasonEntry(
        "Nodes are out", of.NeverFits, no_room.nodes_out,
        "it would fit what is installed, and some of these nodes take no work; the sentence says which",
    ),
    Reason.AT_LIMIT: ReasonEntry(
        "At its limit", of.AtLimit, waits.at_limit,
        "its queue, or one above it, holds as much as nominal and borrowing limit allow",
    ),
    Reason.HOURS_SPENT: ReasonEntry(
        "GPU-hours spent", of.HoursBudget, waits.hours_spent,
        "the GPU-hours of the period are used up; the sentence says until when",
    ),
    Reason.QUEUE_AT_JOB_LIMIT: ReasonEntry(
        "Queue runs enough", of.JobLimit, waits.queue_at_job_limit,
        "its queue, or one above it, runs as many workloads as it may",
    ),
    Reason.USER_AT_LIMIT: ReasonEntry(
        "User at a limit", of.UserLimit, waits.user_at_limit,
        "its user runs, or holds, as much as one user may there",
    ),
    Reason.ABOVE_FAIR_SHARE: ReasonEntry(
        "Above fair share", of.FairShare, waits.above_fair_share,
        "its queue, or one above it, holds more than its fair share",
    ),
    Reason.NON_PREEMPTIBLE_OVER_NOMINAL: ReasonEntry(
        "Past its nominal quota", of.FixedUse, waits.non_preemptible,
        "it cannot be preempted, and would pass nominal or fair share",
    ),
    Reason.WAITS_FOR_QUOTA: ReasonEntry(
        "Would pass fair share", of.FairShare, waits.waits_for_quota,
        "its queue, or one above it, would pass its fair share with it, and nothing is left to borrow",
    ),
    Reason.WAITS_FOR_TURN: ReasonEntry(
        "Waits its turn", of.Turn, waits.waits_for_turn,
        "others of its queue go first",
    ),
    Reason.NO_ROOM_IN_TOPOLOGY: ReasonEntry(
        "No room together", of.FreeTogether, no_room.no_room_in_topology,
        "enough GPUs are free, but not inside one of the domains that it requires",
        searches=True,
    ),
    Reason.NO_ROOM_FOR_SEGMENTS: ReasonEntry(
        "No room by segments", of.FreeBySegments, no_room.no_room_for_segments,
        "enough GPUs are free, but too few of its segments find room inside one domain each",
        searches=True,
    ),
    Reason.FRAGMENTED: ReasonEntry(
        "Fragmented", of.Free, no_room.fragmented,
        "enough GPUs are free, but scattered",
        searches=True,
    ),
    Reason.NO_FREE_GPUS: ReasonEntry(
        "Not enough free", of.Free, no_room.no_free_gpus,
        "it is entitled to GPUs that others hold, and not enough of them can be taken back",
        searches=True,
    ),
    Reason.NO_FREE_CPUS: ReasonEntry(
        "Too few CPUs", of.FreeWithoutCpus, no_room.no_free_cpus,
        "the free GPUs would do, but their nodes lack CPUs",
    ),
    Reason.NO_FREE_MEMORY: ReasonEntry(
        "Too little memory", of.FreeWithoutMemory, no_room.no_free_memory,
        "the free GPUs would do, but their nodes lack memory",
    ),
    Reason.NO_FREE_OTHER: ReasonEntry(
        "Something else is short", of.FreeWithoutOther, no_room.no_free_other,
        "the free GPUs would do, but their nodes lack something else that a member takes: other devices,"
        " local storage, a host port, a place for a pod, a place apart from others",
    ),
    Reason.NO_ROOM_ON_ITS_NODES: ReasonEntry(
        "No room on its nodes", of.FreeOnItsNodes, no_room.no_room_on_its_nodes,
        "too few GPUs are free, or they lie scattered, on the nodes that it may use, which are some only",
    ),
    Reason.RESERVED_FOR_OTHER: ReasonEntry(
        "Reserved for another", of.FreeForOther, waits.reserved_for_other,
        "the free GPUs that it could use are kept for a workload that goes first",
        general=f"The free GPUs that it could use are kept for {OTHERS_WORK}.",
    ),
    Reason.KEPT_FOR_SHORT: ReasonEntry(
        "Kept for short work", of.ShortReserve, waits.kept_for_short,
        "its subtree shares by promise or throughput, and keeps the last free GPUs for who expects less work",
    ),
    Reason.VICTIMS_PROTECTED: ReasonEntry(
        "May not displace yet", of.WouldLeave, waits.victims_protected,
        "what would have to leave is protected, or it has to wait itself; the sentence says until when",
        general="What would have to leave for it is protected for now.",
    ),
    Reason.BUDGET_SPENT: ReasonEntry(
        "Eviction budget spent", of.OverBudget, waits.budget_spent,
        "so much was evicted of late from the queue that would give its GPUs that no more may leave",
        general="An eviction budget protects what would have to leave for it.",
    ),
    Reason.EVICTION_CAP: ReasonEntry(
        "Would evict too much", of.OverCap, waits.eviction_cap,
        "more would have to leave for it than the policy allows for what it asks for",
        general="More would have to leave for it than the eviction cap allows.",
    ),
    Reason.GANG_INCOMPLETE: ReasonEntry(
        "Gang incomplete", of.Nothing, waits.gang_incomplete,
        "its pods are not all there",
        outside=True,
    ),
    Reason.HELD: ReasonEntry(
        "On hold", of.Nothing, waits.on_hold,
        "its owner put it on hold, or its queue is on hold or draining",
    ),
    Reason.MISROUTED: ReasonEntry(
        "No such queue", of.Nothing, waits.misrouted,
        "its label names no queue that takes workloads",
    ),
    Reason.NO_SUCH_CLASS: ReasonEntry(
        "No such GPU class", of.Nothing, waits.no_such_class,
        "it asks for GPU classes that the cluster does not have",
    ),
    Reason.NOT_ALLOWED: ReasonEntry(
        "Not allowed here", of.Nothing, waits.not_allowed,
        "the class of service of its owner does not reach so far",
        outside=True,
    ),
    Reason.RUN_TIME_OVER: ReasonEntry(
        "Ran for its limit", of.Nothing, waits.run_time_over,
        "it ran for its run-time limit, and its owner decides",
        outside=True,
    ),
    Reason.NOT_BEFORE: ReasonEntry(
        "Not before its time", of.Nothing, waits.not_before,
        "its author asks that it starts no sooner than at a time that has not come",
        outside=True,
    ),
    Reason.AFTER_OTHERS: ReasonEntry(
        "After other work", of.Nothing, waits.after_others,
        "its author has it start after other work, which has not ended as it must",
        outside=True,
    ),
    Reason.ARRAY_AT_LIMIT: ReasonEntry(
        "Array at its limit", of.Nothing, waits.array_at_limit,
        "as many members of its array hold GPUs as may at once",
        outside=True,
    ),
}  # fmt: skip
"""Of work that does not start now."""

DECLARED: Final[Mapping[Reason, ReasonEntry]] = {**ACTS, **WAITS}


def headline(reason: Reason | str) -> str:
    """The cause of ``reason`` in two to four words."""
    return DECLARED[Reason(reason)].headline


def figures_of(reason: Reason, row: Sequence[float]) -> Any:
    """The figures of ``reason`` by name, from the row in which they stand at its ``places``."""
    kind = DECLARED[reason].figures
    return kind(*row[: len(of.names(kind))])


def number(milli: float) -> float | int:
    """GPUs of milli-GPU: whole where they are."""
    gpus = round(milli / MILLI, 3)
    return int(gpus) if gpus == int(gpus) else gpus


FOR_NODES = {
    Reason.NODES_OUT, Reason.NO_FREE_GPUS, Reason.NO_FREE_CPUS, Reason.NO_FREE_MEMORY, Reason.NO_FREE_OTHER,
    Reason.FRAGMENTED,
    Reason.NO_ROOM_ON_ITS_NODES, Reason.NO_ROOM_IN_TOPOLOGY, Reason.RESERVED, Reason.WAITS_FOR_QUOTA,
    Reason.ABOVE_FAIR_SHARE,
}  # fmt: skip
"""Waits that more nodes may end."""


def sentence(facts: Facts) -> str:
    """One sentence for people; one more of the nodes that are out, where these may be what it waits for."""
    said = DECLARED[facts.reason].sentence(facts)
    return f"{said} {facts.outages}" if facts.outages and facts.reason in FOR_NODES else said


def sealed_sentence(facts: Facts) -> str:
    """The same for readers who may not see others' work; empty where ``sentence`` names none."""
    sealed = facts.sealed()
    return "" if sealed is facts else sentence(sealed)


def numbers(facts: Facts) -> dict[str, Number]:
    """The figures by name, GPUs as numbers of GPUs; the class that they are of, the blamed queue and the
    rival beside them."""
    declared = DECLARED[facts.reason]
    named: dict[str, Number] = {}
    for name, (unit, shown) in of.units(declared.figures).items():
        figure = getattr(facts.figures, name)
        if shown is None or (shown is of.Visibility.IF_ANY and figure):
            named[name] = _read(figure, unit)
    if declared.searches and facts.searches:
        named["searches"] = facts.searches
    if named and facts.gpu_class:
        named["gpu_class"] = facts.gpu_class
    if facts.blame and facts.blame != facts.queue:
        named["queue"] = facts.blame
    if facts.rival:
        named["workload"] = facts.rival
        named["workload_queue"] = facts.rival_queue
    return named


def _read(figure: float, unit: of.Unit) -> Number:
    if figure >= UNLIMITED:
        return None
    return number(figure) if unit is of.Unit.MILLI else round(figure)


def since(now: datetime, seconds: float) -> datetime:
    """The instant ``seconds`` after the epoch, in the time zone of ``now``."""
    return datetime(1970, 1, 1, tzinfo=UTC).astimezone(now.tzinfo) + timedelta(seconds=seconds)
