"""One sentence for each reason, naming both parties, with numbers and units.

Queues are written from the top.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduling.engine.act_sentences import ACTS
from scheduling.engine.arrays import BOUND
from scheduling.engine.facts import Facts
from scheduling.engine.model import MILLI, Reason
from scheduling.engine.wording import amount, are, clock, first_up, gib, gpus_in_words, plural, span


def _gang(f: Facts) -> str:
    """How many GPUs it needs at once: "16 on 2 members" only for gangs."""
    need = amount(f.gpus * f.least)
    return f"{need} at once" if f.least * f.gpus > MILLI else need


def _this(f: Facts) -> str:
    return "this gang" if f.least > 1 or f.gpus > MILLI else "this workload"


def _parts(f: Facts) -> str:
    return f" in {f.least} parts of {amount(f.gpus)}" if f.least > 1 else ""


GONE = "when what already leaves is gone"


def _awaits(f: Facts) -> str:
    kept, victims = f.figures[0], f.figures[4]
    have = "has" if victims == 1 else "have"
    when = f"once {plural(victims, 'workload')} {have} made room" if victims else GONE
    return f"{amount(kept)} {f.gpu_class} {are(kept)} kept for {_this(f)}; it starts {when}."


def _reserved(f: Facts) -> str:
    free, need = f.figures[:2]
    return (
        f"{_this(f).capitalize()} of {f.queue} needs {amount(need)} {f.gpu_class}{_parts(f)};"
        f" {amount(free)} {are(free)} free, of which {amount(f.figures[4])} {are(f.figures[4])} kept for it"
        " until the rest ends"
        f"{f', expected {clock(f.until)}' if f.until else ''}."
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
    if f.figures[5]:
        return _never_on_its_nodes(f)
    where = f" in one {f.wanted}" if f.wanted else ""
    each = gpus_in_words(f.gpus) + (f" with {f.beside}" if f.beside else "")
    gang = f"{plural(f.least, 'member')} of {each}{where}, even when empty"
    return f"The nodes of {f.gpu_class} never take {gang}; the cluster has {gpus_in_words(most)}."


CONSTRAINTS = "node selector, node affinity, tolerations and runtime class"


def _its_nodes(f: Facts) -> str:
    return f"Its {CONSTRAINTS} let it run on {f.figures[4]:.0f} of {f.figures[5]:.0f} nodes of {f.gpu_class}"


def _never_on_its_nodes(f: Facts) -> str:
    if not f.figures[4]:
        every = plural(f.figures[5], "node")
        return f"Its {CONSTRAINTS} let it run on none of the {every} of {f.gpu_class}."
    where = f" in one {f.wanted}" if f.wanted else ""
    each = gpus_in_words(f.gpus) + (f" with {f.beside}" if f.beside else "")
    return f"{_its_nodes(f)}, which never take {plural(f.least, 'member')} of {each}{where}, even when empty."


def _no_room_on_its_nodes(f: Facts) -> str:
    free, need, _, slots = f.figures[:4]
    room = f": they take {slots:.0f} of {f.least} members" if free >= need and f.least > 1 else ""
    room = room or (": none has as much for one member" if free >= need else "")
    return (
        f"{_its_nodes(f)}: {amount(free)} {are(free)} free there, and {_this(f)} needs"
        f" {amount(need)}{_parts(f)}{room}."
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


def _hours_spent(f: Facts) -> str:
    used, budget = f.figures[:2]
    until = f"; the next period begins {clock(f.until)}" if f.until else ""
    return (
        f"{f.blame} has used {used:,.0f} of its {budget:,.0f} GPU-hours of {f.gpu_class} in this period,"
        f" so nothing more starts{until}."
    )


def _queue_at_job_limit(f: Facts) -> str:
    running, most = f.figures[:2]
    return (
        f"{f.blame} runs {running:.0f} of at most {plural(most, 'workload')} at once; {_this(f)} starts when"
        " one ends."
    )


def _user_at_limit(f: Facts) -> str:
    running, most, held, most_gpus = f.figures[:4]
    if running >= most:
        return (
            f"Its user runs {running:.0f} of at most {plural(most, 'workload')} at once in {f.blame};"
            f" {_this(f)} starts when one ends."
        )
    return (
        f"Its user holds {amount(held)} of at most {gpus_in_words(most_gpus)} in {f.blame}, and {_this(f)}"
        f" needs {_gang(f)}."
    )


def _worn(f: Facts) -> str:
    held, fair, need = f.figures[:3]
    often = "once" if f.figures[5] == 1 else f"{f.figures[5]:.0f} times"
    return (
        f"It was evicted {often}, so it starts again only inside fair share: {f.blame} holds"
        f" {amount(held)} of {amount(fair)} {f.gpu_class}, and {_this(f)} needs {amount(need)}."
    )


def _above(f: Facts) -> str:
    held, fair, _, free = f.figures[:4]
    if f.figures[5]:
        return _worn(f)
    return (
        f"{f.blame} holds {amount(held)} {f.gpu_class}, {amount(held - fair)} above its fair share of"
        f" {amount(fair)}, so it may take only what no queue below its share can use:"
        f" {amount(free)} {are(free)} free and {_this(f)} needs {_gang(f)}."
    )


def _waits_for_quota(f: Facts) -> str:
    held, fair, need, free = f.figures[:4]
    if f.figures[5]:
        return _worn(f)
    kept = f.figures[4]
    left = (
        f"of {amount(free)} free, {amount(kept)} {are(kept)} kept back"
        if kept
        else f"{amount(free)} {are(free)} free"
    )
    make = "makes" if amount(need) == "1" else "make"
    little = "too little" if free > kept else "nothing"
    why = f"{little} is left to borrow: {left}"
    if free >= need and not kept:
        why = f"though {left}, what runs beyond what its nodes offer still counts"
    return (
        f"{f.blame} holds {amount(held)} of a fair share of {amount(fair)} {f.gpu_class};"
        f" {amount(need)} more {make} {amount(held + need)}, and {why}."
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
        f"{f.opening} goes first in {f.queue}: it needs {amount(need)} {f.gpu_class}, and the queue holds"
        f" {amount(held)} of its fair share of {amount(fair)}{_soon('; its turn comes', f.figures[3])}."
    )


def _soon(what: str, seconds: float) -> str:
    """When the predictions of running work let one expect it; nothing without any."""
    return f"{what} in {span(seconds)}, as predicted" if seconds else ""


def _no_room(f: Facts) -> str:
    together = int(f.figures[4])
    free = f.figures[0]
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free, but no {f.wanted} has room for all {f.least}"
        f" members of {amount(f.gpus)}; the best takes {together}.{_bound(f)}"
    )


def _fragmented(f: Facts) -> str:
    free, need, nodes, slots = f.figures[:4]
    room = (
        f"they take {slots:.0f} of {f.least} members"
        if f.least > 1
        else "no node has as much for one member"
    )
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free on {plural(nodes, 'node')}, and {_this(f)} needs"
        f" {amount(need)}{_parts(f)}: {room}.{_bound(f)}"
    )


def _bound(f: Facts) -> str:
    """That a search was left undone, if one was."""
    if f.figures[BOUND] == 0:
        return ""
    return f" No wider search for room was made: this cycle had made its {f.figures[BOUND]:.0f} before."


def _no_free_cpus(f: Facts) -> str:
    each, most = f.figures[4:6]
    return _short_beside(f, f"{amount(each)} CPUs", amount(most))


def _no_free_memory(f: Facts) -> str:
    each, most = f.figures[4:6]
    return _short_beside(f, f"{gib(each)} of memory", gib(most))


def _short_beside(f: Facts, each: str, most: str) -> str:
    free, need, _, slots = f.figures[:4]
    a_member = "each of its members" if f.least > 1 else "it"
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free and {_this(f)} needs {amount(need)}, but"
        f" {a_member} needs {each} as well: the nodes with free GPUs that lack them have at most {most} left,"
        f" and {slots:.0f} of {f.least} fit{'s' * (f.least == 1)}."
    )


def _no_free(f: Facts) -> str:
    free, need = f.figures[:2]
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free and {_this(f)} of {f.queue} needs {amount(need)};"
        " it is entitled to them, and not enough of what others hold above their fair shares can be taken"
        f" back for it.{_bound(f)}"
    )


def _reserved_for_other(f: Facts) -> str:
    return (
        f"The free {f.gpu_class} that {_this(f)} could use are kept for {f.other},"
        f" which goes first{_soon(' and starts', f.figures[4])}; {_others(f.figures[0])} free and"
        f" it needs {amount(f.figures[1])}."
    )


def _others(free: float) -> str:
    return "1 other is" if amount(free) == "1" else f"{amount(free)} others are"


def _kept_for_short(f: Facts) -> str:
    free, need, kept, expected = f.figures[:4]
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free, of which {amount(kept)} are kept for short work;"
        f" {_this(f)} needs {amount(need)} and is expected to take {expected / 3600:.0f} GPU-hours."
    )


PROTECTIONS = {1: "the grace of its lowered quota", 2: "the cooldown after its own eviction"}


def _of_blamed(f: Facts, rival: str) -> str:
    return f"{rival} of {f.blame}" if f.rival_queue else rival


def _protected(f: Facts) -> str:
    held, fair, need, gone = f.figures[:4]
    if not f.figures[4]:
        return (
            f"{_of_blamed(f, f.opening)} would leave for it, but {_this(f)} may displace others only after"
            f" waiting until {clock(f.until)}; it needs {amount(need)} {f.gpu_class}."
        )
    what = PROTECTIONS.get(int(f.figures[5]), "min run time")
    if not f.blame:
        return (
            f"{first_up(what)} protects the {amount(gone)} {f.gpu_class} of {f.holder} that would leave"
            f" for {_this(f)} until {clock(f.until)}."
        )
    return (
        f"{f.blame} holds {amount(held)} {f.gpu_class}, its fair share is {amount(fair)};"
        f" {what} protects the {amount(gone)} that would leave for {_this(f)} until {clock(f.until)}."
    )


def _budget(f: Facts) -> str:
    till = f" until {clock(f.until)}" if f.until else ""
    left = f.figures[5]
    # How much is left of a budget is a figure of its queue.
    known = left and f.blame
    budget = f"only {amount(left)} {are(left)} left of its eviction budget" if known else ""
    spent = (
        "its eviction budget is spent"
        if f.blame or not left
        else "its eviction budget is too small"
    )
    return (
        f"{amount(f.figures[3])} {f.gpu_class} of {f.holder} would have to leave for {_this(f)}, and"
        f" {budget or spent}{till}; it needs {amount(f.figures[2])}."
    )


def _cap(f: Facts) -> str:
    return (
        f"{amount(f.figures[3])} {f.gpu_class} would have to leave, {_of_blamed(f, f.rival)} among them,"
        f" for the {amount(f.figures[2])} that {_this(f)} needs: the policy's eviction cap allows"
        f" {amount(f.figures[5])}."
    )


def _held(f: Facts) -> str:
    if f.held_by_user:
        return "Its owner put it on hold; release it to let it wait for GPUs again."
    if f.draining:
        return f"{f.blame} is being drained: nothing starts in it and what runs leaves."
    return f"{f.blame} is on hold: what runs goes on, nothing new starts."


def _misrouted(f: Facts) -> str:
    return (
        f"The label names the queue {f.wanted!r}, and no queue that takes workloads has that name."
    )


def _no_such_class(f: Facts) -> str:
    name = "with any of these names" if "," in f.wanted else "of that name"
    return f"It asks for {f.wanted}, and the cluster has no GPU class {name}."


def _incomplete(f: Facts) -> str:
    exist = "exists" if f.members == 1 else "exist"
    return f"{f.members} of at least {f.least} members {exist}; the gang starts when they are all there."


def _not_allowed(f: Facts) -> str:
    return f"{f.blame} does not run it as it stands for its owner."


def _run_time_over(f: Facts) -> str:
    return "It ran for its run-time limit; release it to queue it again."


SENTENCES: dict[Reason, Callable[[Facts], str]] = {
    **ACTS,
    Reason.AWAITS_VICTIMS: _awaits,
    Reason.RESERVED: _reserved,
    Reason.NEVER_FITS: _never_fits,
    Reason.AT_LIMIT: _at_limit,
    Reason.HOURS_SPENT: _hours_spent,
    Reason.QUEUE_AT_JOB_LIMIT: _queue_at_job_limit,
    Reason.USER_AT_LIMIT: _user_at_limit,
    Reason.ABOVE_FAIR_SHARE: _above,
    Reason.NON_PREEMPTIBLE_OVER_NOMINAL: _non_preemptible,
    Reason.WAITS_FOR_QUOTA: _waits_for_quota,
    Reason.WAITS_FOR_TURN: _turn,
    Reason.NO_ROOM_IN_TOPOLOGY: _no_room,
    Reason.FRAGMENTED: _fragmented,
    Reason.NO_FREE_GPUS: _no_free,
    Reason.NO_FREE_CPUS: _no_free_cpus,
    Reason.NO_FREE_MEMORY: _no_free_memory,
    Reason.NO_ROOM_ON_ITS_NODES: _no_room_on_its_nodes,
    Reason.RESERVED_FOR_OTHER: _reserved_for_other,
    Reason.KEPT_FOR_SHORT: _kept_for_short,
    Reason.VICTIMS_PROTECTED: _protected,
    Reason.BUDGET_SPENT: _budget,
    Reason.EVICTION_CAP: _cap,
    Reason.GANG_INCOMPLETE: _incomplete,
    Reason.HELD: _held,
    Reason.MISROUTED: _misrouted,
    Reason.NO_SUCH_CLASS: _no_such_class,
    Reason.NOT_ALLOWED: _not_allowed,
    Reason.RUN_TIME_OVER: _run_time_over,
}
