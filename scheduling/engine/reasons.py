"""Sentences for people: one for each reason, naming both parties, with numbers and units.

``headline`` is the two to four words in bold before the sentence. Queues are written from the top.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from scheduling.engine.arrays import UNLIMITED
from scheduling.engine.model import MILLI, Reason

Number = float | int | str | None

HEADLINES = {
    Reason.FITS_NOMINAL: "Fits its quota",
    Reason.BORROWS: "Borrows idle GPUs",
    Reason.RECLAIMED: "Reclaimed",
    Reason.PREEMPTED: "Preempted",
    Reason.STALE_GANG: "Stale gang",
    Reason.DRAINED: "Queue drained",
    Reason.AWAITS_VICTIMS: "GPUs come free",
    Reason.RESERVED: "Next in line",
    Reason.GROWS: "Grows",
    Reason.SHRINKS: "Shrinks",
    Reason.CONSOLIDATES: "Moves together",
    Reason.NEVER_FITS: "Can never start",
    Reason.AT_LIMIT: "At its limit",
    Reason.ABOVE_FAIR_SHARE: "Above fair share",
    Reason.NON_PREEMPTIBLE_OVER_NOMINAL: "Past its nominal quota",
    Reason.WAITS_FOR_QUOTA: "Would pass fair share",
    Reason.WAITS_FOR_TURN: "Waits its turn",
    Reason.NO_ROOM_IN_TOPOLOGY: "No room together",
    Reason.FRAGMENTED: "Fragmented",
    Reason.NO_FREE_GPUS: "Not enough free",
    Reason.RESERVED_FOR_OTHER: "Reserved for another",
    Reason.VICTIMS_PROTECTED: "Reclaim is on its way",
    Reason.BUDGET_SPENT: "Eviction budget spent",
    Reason.EVICTION_CAP: "Would evict too much",
    Reason.GANG_INCOMPLETE: "Gang incomplete",
    Reason.HELD: "On hold",
    Reason.MISROUTED: "No such queue",
    Reason.NO_SUCH_CLASS: "No such GPU class",
}


def headline(reason: Reason | str) -> str:
    """The cause of ``reason`` in two to four words."""
    return HEADLINES[Reason(reason)]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a sentence may quote. ``figures`` are milli-GPU unless a sentence reads them otherwise."""

    reason: Reason
    queue: str
    blame: str
    gpu_class: str
    figures: tuple[float, ...]
    gpus: int = MILLI
    least: int = 1
    members: int = 0
    rival: str = ""
    rival_queue: str = ""
    until: datetime | None = None
    lost_gpu_s: float = 0.0
    wanted: str = ""
    """What the user asked for by name: the queue label, the GPU classes, the topology level."""
    held_by_user: bool = False


def amount(milli: float) -> str:
    """GPUs as people read them: at most one decimal, shares of one GPU at most three."""
    gpus = milli / MILLI
    digits = 3 if 0 < abs(gpus) < 1 else 1
    return f"{gpus:.{digits}f}".rstrip("0").rstrip(".") if gpus % 1 else f"{gpus:.0f}"


def number(milli: float) -> float | int:
    """GPUs of milli-GPU: whole where they are."""
    gpus = round(milli / MILLI, 3)
    return int(gpus) if gpus == int(gpus) else gpus


def clock(instant: datetime | None) -> str:
    return "unknown" if instant is None else f"{instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def span(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{rest} s"


def _gang(f: Facts) -> str:
    """How many GPUs it needs at once: "16 on 2 members" only for gangs."""
    need = amount(f.gpus * f.least)
    return f"{need} at once" if f.least * f.gpus > MILLI else need


def _this(f: Facts) -> str:
    return "this gang" if f.least > 1 or f.gpus > MILLI else "this workload"


def _parts(f: Facts) -> str:
    return f" in {f.least} parts of {amount(f.gpus)}" if f.least > 1 else ""


def _fits_nominal(f: Facts) -> str:
    held, nominal = f.figures[:2]
    return f"{f.queue} now holds {amount(held)} of its nominal {amount(nominal)} {f.gpu_class}."


def _borrows(f: Facts) -> str:
    held, nominal = f.figures[:2]
    return (
        f"{f.queue} now holds {amount(held)} {f.gpu_class}, {amount(held - nominal)} above its nominal"
        f" {amount(nominal)}: idle GPUs that their owners can take back."
    )


def _reclaimed(f: Facts) -> str:
    held, fair, after = f.figures[:3]
    return (
        f"{f.blame} held {amount(held)} {f.gpu_class}, {amount(held - fair)} above its fair share of"
        f" {amount(fair)}; {f.rival} of {f.rival_queue} is entitled to them. {_loss(f)}"
        f" {f.blame} keeps {amount(after)}."
    )


def _loss(f: Facts) -> str:
    return f"Work lost: {f.lost_gpu_s / 3600:.1f} GPU-hours."


def _preempted(f: Facts) -> str:
    return (
        f"{f.rival} has a higher priority in {f.queue} and needs {amount(f.figures[3])}"
        f" {f.gpu_class}. {_loss(f)}"
    )


def _stale_gang(f: Facts) -> str:
    running, least, age = f.figures[:3]
    return (
        f"{running:.0f} of at least {least:.0f} members run since {span(age)}, longer than the grace;"
        f" {f.queue} gets its {amount(f.figures[3])} {f.gpu_class} back."
    )


def _drained(f: Facts) -> str:
    return f"{f.queue} is being drained: nothing starts in it and what runs leaves."


def _awaits(f: Facts) -> str:
    victims = int(f.figures[4])
    who = (
        f"{victims} workload{'s' * (victims != 1)} it displaced"
        if victims
        else "what already leaves"
    )
    return f"{amount(f.figures[0])} {f.gpu_class} are kept for {_this(f)}; it starts when {who} is gone."


def _reserved(f: Facts) -> str:
    free, need = f.figures[:2]
    return (
        f"{_this(f).capitalize()} of {f.queue} needs {amount(need)} {f.gpu_class}{_parts(f)};"
        f" {amount(free)} are free, of which {amount(f.figures[4])} are kept for it until the rest ends."
    )


def _never_fits(f: Facts) -> str:
    need, most = f.figures[:2]
    if f.blame:
        return (
            f"{_this(f).capitalize()} needs {amount(need)} {f.gpu_class} at once, and {f.blame} may"
            f" hold at most {amount(most)}."
        )
    if need > most:
        what = _this(f).capitalize()
        return f"{what} needs {amount(need)} {f.gpu_class}, and the cluster has {amount(most)}."
    where = f" in one {f.wanted}" if f.wanted else ""
    return (
        f"The nodes of {f.gpu_class} never take {f.least} members of {amount(f.gpus)} GPUs{where},"
        f" even when empty; the cluster has {amount(most)} GPUs."
    )


def _at_limit(f: Facts) -> str:
    held, cap, _, limit = f.figures[:4]
    if cap < limit:
        return (
            f"{f.blame} holds {amount(held)} of its nominal {amount(cap)} {f.gpu_class} and, with weight"
            f" 0, borrows nothing; {_this(f)} needs {_gang(f)}."
        )
    return (
        f"{f.blame} holds {amount(held)} of its limit of {amount(cap)} {f.gpu_class};"
        f" {_this(f)} needs {_gang(f)}."
    )


def _above(f: Facts) -> str:
    held, fair, _, free = f.figures[:4]
    return (
        f"{f.blame} holds {amount(held)} {f.gpu_class}, {amount(held - fair)} above its fair share of"
        f" {amount(fair)}, so it may take only what no queue below its share can use:"
        f" {amount(free)} are free and {_this(f)} needs {_gang(f)}."
    )


def _waits_for_quota(f: Facts) -> str:
    held, fair, need, free = f.figures[:4]
    kept = f.figures[4]
    left = (
        f"of {amount(free)} free, {amount(kept)} are kept back"
        if kept
        else f"{amount(free)} are free"
    )
    return (
        f"{f.blame} holds {amount(held)} of a fair share of {amount(fair)} {f.gpu_class};"
        f" {amount(need)} more make {amount(held + need)}, and nothing is left to borrow: {left}."
    )


def _non_preemptible(f: Facts) -> str:
    held, nominal, need, fair = f.figures[:4]
    inside, bound = ("nominal", nominal) if nominal <= fair else ("fair share", fair)
    return (
        f"Work that cannot be preempted runs only inside nominal: {f.blame} holds {amount(held)} of"
        f" its {inside} {amount(bound)} {f.gpu_class} that way, and {amount(need)} more would pass it."
    )


def _turn(f: Facts) -> str:
    held, fair, need = f.figures[:3]
    return (
        f"{f.rival} goes first in {f.queue}: it needs {amount(need)} {f.gpu_class}, and the queue holds"
        f" {amount(held)} of its fair share of {amount(fair)}."
    )


def _no_room(f: Facts) -> str:
    together = int(f.figures[4])
    return (
        f"{amount(f.figures[0])} {f.gpu_class} are free, but no {f.wanted} has room for all {f.least}"
        f" members of {amount(f.gpus)}; the best takes {together}."
    )


def _fragmented(f: Facts) -> str:
    free, need, nodes, slots = f.figures[:4]
    return (
        f"{amount(free)} {f.gpu_class} are free on {nodes:.0f} node{'s' * (nodes != 1)}, and {_this(f)}"
        f" needs {amount(need)}{_parts(f)}: they take {slots:.0f} of {f.least} members of {amount(f.gpus)}."
    )


def _no_free(f: Facts) -> str:
    free, need = f.figures[:2]
    return (
        f"{amount(free)} {f.gpu_class} are free and {_this(f)} of {f.queue} needs {amount(need)}; it is"
        " entitled to them, and nothing above its fair share can be taken back for it."
    )


def _reserved_for_other(f: Facts) -> str:
    return (
        f"The free {f.gpu_class} that {_this(f)} could use are kept for {f.rival} of {f.rival_queue},"
        f" which goes first; {amount(f.figures[0])} others are free and it needs {amount(f.figures[1])}."
    )


def _protected(f: Facts) -> str:
    held, fair, need, gone = f.figures[:4]
    if not f.figures[4]:
        return (
            f"{f.rival} of {f.blame} would leave for it, but {_this(f)} may displace others only after"
            f" waiting until {clock(f.until)}; it needs {amount(need)} {f.gpu_class}."
        )
    return (
        f"{f.blame} holds {amount(held)} {f.gpu_class}, its fair share is {amount(fair)};"
        f" min run time protects the {amount(gone)} that would leave for {_this(f)} until {clock(f.until)}."
    )


def _budget(f: Facts) -> str:
    return (
        f"{amount(f.figures[3])} {f.gpu_class} of {f.blame} would have to leave for {_this(f)}, and its"
        f" eviction budget is spent; it needs {amount(f.figures[2])}."
    )


def _cap(f: Facts) -> str:
    return (
        f"{amount(f.figures[3])} {f.gpu_class} would have to leave, {f.rival} of {f.blame} among them,"
        f" for the {amount(f.figures[2])} that {_this(f)} needs: more than the policy's eviction cap allows."
    )


def _held(f: Facts) -> str:
    if f.held_by_user:
        return "Its owner put it on hold; release it to let it wait for GPUs again."
    return f"{f.queue} is on hold: what runs goes on, nothing new starts."


def _misrouted(f: Facts) -> str:
    return (
        f"The label names the queue {f.wanted!r}, and no queue that takes workloads has that name."
    )


def _no_such_class(f: Facts) -> str:
    return f"It asks for {f.wanted}, and the cluster has no GPU class of that name."


def _incomplete(f: Facts) -> str:
    return (
        f"{f.members} of at least {f.least} members exist; the gang starts when they are all there."
    )


SENTENCES: dict[Reason, Callable[[Facts], str]] = {
    Reason.FITS_NOMINAL: _fits_nominal,
    Reason.BORROWS: _borrows,
    Reason.RECLAIMED: _reclaimed,
    Reason.PREEMPTED: _preempted,
    Reason.STALE_GANG: _stale_gang,
    Reason.DRAINED: _drained,
    Reason.AWAITS_VICTIMS: _awaits,
    Reason.RESERVED: _reserved,
    Reason.NEVER_FITS: _never_fits,
    Reason.AT_LIMIT: _at_limit,
    Reason.ABOVE_FAIR_SHARE: _above,
    Reason.NON_PREEMPTIBLE_OVER_NOMINAL: _non_preemptible,
    Reason.WAITS_FOR_QUOTA: _waits_for_quota,
    Reason.WAITS_FOR_TURN: _turn,
    Reason.NO_ROOM_IN_TOPOLOGY: _no_room,
    Reason.FRAGMENTED: _fragmented,
    Reason.NO_FREE_GPUS: _no_free,
    Reason.RESERVED_FOR_OTHER: _reserved_for_other,
    Reason.VICTIMS_PROTECTED: _protected,
    Reason.BUDGET_SPENT: _budget,
    Reason.EVICTION_CAP: _cap,
    Reason.GANG_INCOMPLETE: _incomplete,
    Reason.HELD: _held,
    Reason.MISROUTED: _misrouted,
    Reason.NO_SUCH_CLASS: _no_such_class,
}

NAMES: dict[Reason, tuple[str, ...]] = {
    Reason.FITS_NOMINAL: ("holds", "nominal", "fair_share"),
    Reason.BORROWS: ("holds", "nominal", "fair_share"),
    Reason.RECLAIMED: ("held", "fair_share", "keeps", "requested"),
    Reason.PREEMPTED: ("held", "fair_share", "keeps", "requested"),
    Reason.STALE_GANG: ("members", "min_members", "stale_s", "gives_back"),
    Reason.DRAINED: ("members", "min_members", "", "gives_back"),
    Reason.AWAITS_VICTIMS: ("needs", "coming", "holds", "fair_share", "victims"),
    Reason.RESERVED: ("free", "needs", "nodes", "fits_members", "kept_for_it"),
    Reason.NEVER_FITS: ("needs", "most", "min_members", "per_member"),
    Reason.AT_LIMIT: ("holds", "limit", "needs"),
    Reason.ABOVE_FAIR_SHARE: ("holds", "fair_share", "needs", "free", "kept_back"),
    Reason.NON_PREEMPTIBLE_OVER_NOMINAL: ("holds", "nominal", "needs", "fair_share"),
    Reason.WAITS_FOR_QUOTA: ("holds", "fair_share", "needs", "free", "kept_back"),
    Reason.WAITS_FOR_TURN: ("holds", "fair_share", "first_needs"),
    Reason.NO_ROOM_IN_TOPOLOGY: ("free", "needs", "nodes", "fits_members", "fits_together"),
    Reason.FRAGMENTED: ("free", "needs", "nodes", "fits_members"),
    Reason.NO_FREE_GPUS: ("free", "needs", "nodes", "fits_members"),
    Reason.RESERVED_FOR_OTHER: ("free", "needs", "nodes", "fits_members"),
    Reason.VICTIMS_PROTECTED: ("holds", "fair_share", "needs", "would_leave"),
    Reason.BUDGET_SPENT: ("holds", "fair_share", "needs", "would_leave"),
    Reason.EVICTION_CAP: ("holds", "fair_share", "needs", "would_leave"),
}
"""What the figures of a reason are called; an empty name is not shown."""

COUNTS = {"members", "min_members", "stale_s", "nodes", "fits_members", "fits_together", "victims"}
"""Figures that are not GPUs."""


def sentence(facts: Facts) -> str:
    """One sentence for people."""
    return SENTENCES[facts.reason](facts)


def numbers(facts: Facts) -> dict[str, Number]:
    """The figures by name, GPUs as numbers of GPUs; the blamed queue and the rival beside them."""
    named: dict[str, Number] = {}
    for name, figure in zip(NAMES.get(facts.reason, ()), facts.figures, strict=False):
        if name in COUNTS:
            named[name] = int(figure)
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
