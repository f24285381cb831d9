"""What people read of a reason: a headline, one sentence, and the numbers by name.

``headline`` is the two to four words in bold before the sentence.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from scheduling.engine.arrays import UNLIMITED
from scheduling.engine.facts import Facts
from scheduling.engine.model import MILLI, Reason
from scheduling.engine.sentences import SENTENCES

Number = float | int | str | None

HEADLINES = {
    Reason.FITS_NOMINAL: "Fits its quota",
    Reason.BORROWS: "Borrows idle GPUs",
    Reason.RECLAIMED: "Reclaimed",
    Reason.PREEMPTED: "Preempted",
    Reason.GIVES_WAY: "Gives way",
    Reason.STALE_GANG: "Stale gang",
    Reason.DRAINED: "Queue drained",
    Reason.AWAITS_VICTIMS: "GPUs come free",
    Reason.RESERVED: "Next in line",
    Reason.GROWS: "Grows",
    Reason.SHRINKS: "Shrinks",
    Reason.CONSOLIDATES: "Moves together",
    Reason.NEVER_FITS: "Can never start",
    Reason.AT_LIMIT: "At its limit",
    Reason.HOURS_SPENT: "GPU-hours spent",
    Reason.QUEUE_AT_JOB_LIMIT: "Queue runs enough",
    Reason.USER_AT_LIMIT: "User at a limit",
    Reason.ABOVE_FAIR_SHARE: "Above fair share",
    Reason.NON_PREEMPTIBLE_OVER_NOMINAL: "Past its nominal quota",
    Reason.WAITS_FOR_QUOTA: "Would pass fair share",
    Reason.WAITS_FOR_TURN: "Waits its turn",
    Reason.NO_ROOM_IN_TOPOLOGY: "No room together",
    Reason.FRAGMENTED: "Fragmented",
    Reason.NO_FREE_GPUS: "Not enough free",
    Reason.NO_FREE_CPUS: "Too few CPUs",
    Reason.NO_FREE_MEMORY: "Too little memory",
    Reason.NO_ROOM_ON_ITS_NODES: "No room on its nodes",
    Reason.RESERVED_FOR_OTHER: "Reserved for another",
    Reason.KEPT_FOR_SHORT: "Kept for short work",
    Reason.VICTIMS_PROTECTED: "Reclaim is on its way",
    Reason.BUDGET_SPENT: "Eviction budget spent",
    Reason.EVICTION_CAP: "Would evict too much",
    Reason.GANG_INCOMPLETE: "Gang incomplete",
    Reason.HELD: "On hold",
    Reason.MISROUTED: "No such queue",
    Reason.NO_SUCH_CLASS: "No such GPU class",
    Reason.NOT_ALLOWED: "Not allowed here",
    Reason.RUN_TIME_OVER: "Ran for its limit",
}


def headline(reason: Reason | str) -> str:
    """The cause of ``reason`` in two to four words."""
    return HEADLINES[Reason(reason)]


def number(milli: float) -> float | int:
    """GPUs of milli-GPU: whole where they are."""
    gpus = round(milli / MILLI, 3)
    return int(gpus) if gpus == int(gpus) else gpus


NAMES: dict[Reason, tuple[str, ...]] = {
    Reason.FITS_NOMINAL: ("holds", "nominal", "fair_share"),
    Reason.BORROWS: ("holds", "nominal", "fair_share"),
    Reason.GROWS: ("members", "members_after", "members_max", "holds"),
    Reason.RECLAIMED: ("held", "fair_share", "keeps", "requested"),
    Reason.PREEMPTED: ("held", "fair_share", "keeps", "requested"),
    Reason.GIVES_WAY: ("ahead_s", "expected_gpu_s", "other_expected_gpu_s", "requested"),
    Reason.SHRINKS: ("held", "fair_share", "keeps", "requested", "gives_members"),
    Reason.CONSOLIDATES: ("moves", "requested", "workloads"),
    Reason.STALE_GANG: ("members", "min_members", "stale_s", "gives_back"),
    Reason.DRAINED: ("members", "min_members", "", "gives_back"),
    Reason.AWAITS_VICTIMS: ("needs", "coming", "holds", "fair_share", "victims"),
    Reason.RESERVED: ("free", "needs", "nodes", "fits_members", "kept_for_it"),
    Reason.NEVER_FITS: (
        "needs", "most", "min_members", "per_member", "?nodes_allowed", "?nodes_in_class",
    ),
    Reason.AT_LIMIT: ("holds", "limit", "needs"),
    Reason.HOURS_SPENT: ("used_gpu_hours", "budget_gpu_hours"),
    Reason.QUEUE_AT_JOB_LIMIT: ("running", "max_running"),
    Reason.USER_AT_LIMIT: ("running", "max_running", "holds", "max_gpus"),
    Reason.ABOVE_FAIR_SHARE: ("holds", "fair_share", "needs", "free", "kept_back", "?evictions"),
    Reason.NON_PREEMPTIBLE_OVER_NOMINAL: ("holds", "nominal", "needs", "fair_share"),
    Reason.WAITS_FOR_QUOTA: ("holds", "fair_share", "needs", "free", "kept_back", "?evictions"),
    Reason.WAITS_FOR_TURN: ("holds", "fair_share", "first_needs", "?turn_in_s"),
    Reason.NO_ROOM_IN_TOPOLOGY: ("free", "needs", "nodes", "fits_members", "fits_together", "?searches"),
    Reason.FRAGMENTED: ("free", "needs", "nodes", "fits_members", "", "?searches"),
    Reason.NO_FREE_GPUS: ("free", "needs", "nodes", "fits_members", "", "?searches"),
    Reason.NO_FREE_CPUS: ("free", "needs", "nodes", "fits_members", "member_cpus", "most_cpus"),
    Reason.NO_FREE_MEMORY: ("free", "needs", "nodes", "fits_members", "member_mib", "most_mib"),
    Reason.NO_ROOM_ON_ITS_NODES: (
        "free", "needs", "nodes", "fits_members", "nodes_allowed", "nodes_in_class",
    ),
    Reason.RESERVED_FOR_OTHER: ("free", "needs", "nodes", "fits_members", "?starts_in_s"),
    Reason.KEPT_FOR_SHORT: ("free", "needs", "kept_free", "expected_gpu_s"),
    Reason.VICTIMS_PROTECTED: ("holds", "fair_share", "needs", "would_leave"),
    Reason.BUDGET_SPENT: ("holds", "fair_share", "needs", "would_leave", "", "budget_left"),
    Reason.EVICTION_CAP: ("holds", "fair_share", "needs", "would_leave", "", "may_leave"),
}  # fmt: skip
"""What the figures of a reason are called; an empty name is not shown, one with a ``?`` unless it is 0."""

COUNTS = {
    "members", "members_after", "members_max", "min_members", "stale_s", "nodes", "fits_members",
    "fits_together", "victims", "evictions", "gives_members", "workloads", "running",
    "max_running", "used_gpu_hours", "budget_gpu_hours", "member_mib", "most_mib",
    "turn_in_s", "starts_in_s", "searches", "nodes_allowed", "nodes_in_class", "expected_gpu_s",
    "other_expected_gpu_s", "ahead_s",
}  # fmt: skip
"""Figures that are not GPUs."""


def sentence(facts: Facts) -> str:
    """One sentence for people."""
    return SENTENCES[facts.reason](facts)


def sealed_sentence(facts: Facts) -> str:
    """The same for who may not read of others' work; empty where ``sentence`` names none."""
    sealed = facts.sealed()
    return "" if sealed is facts else sentence(sealed)


def numbers(facts: Facts) -> dict[str, Number]:
    """The figures by name, GPUs as numbers of GPUs; the blamed queue and the rival beside them."""
    named: dict[str, Number] = {}
    for known, figure in zip(NAMES.get(facts.reason, ()), facts.figures, strict=False):
        name = known.lstrip("?") if figure or known[:1] != "?" else ""
        if name in COUNTS:
            named[name] = None if figure >= UNLIMITED else round(figure)
        elif name:
            named[name] = None if figure >= UNLIMITED else number(figure)
    if facts.blame and facts.blame != facts.queue:
        named["queue"] = facts.blame
    if facts.rival:
        named["workload"] = facts.rival
        named["workload_queue"] = facts.rival_queue
    return named


def since(now: datetime, seconds: float) -> datetime:
    """The instant ``seconds`` after the epoch, in the time zone of ``now``."""
    return datetime(1970, 1, 1, tzinfo=UTC).astimezone(now.tzinfo) + timedelta(seconds=seconds)
