"""One sentence for each wait, naming both parties, with numbers and units.

Queues are written from the top.
"""

from __future__ import annotations

from scheduling.engine.model import MILLI
from scheduling.engine.reasons.facts import Facts
from scheduling.engine.reasons.figures import COOLDOWN, GRACE, MIN_RUN_TIME
from scheduling.engine.reasons.wording import (
    above,
    amount,
    are,
    clock,
    first_up,
    gib,
    gpus_in_words,
    plural,
    share,
    span,
)


def _gang(f: Facts) -> str:
    """How many GPUs it needs at once: "16 on 2 members" only for gangs."""
    need = amount(f.gpus * f.least)
    return f"{need} at once" if f.least * f.gpus > MILLI else need


def _this(f: Facts) -> str:
    return "this gang" if f.least > 1 or f.gpus > MILLI else "this workload"


def _parts(f: Facts) -> str:
    if f.roles:
        (many, gpus), *others = f.roles
        rest = "".join(f" and {more} of {amount(each)}" for more, each in others)
        return f" in {plural(many, 'part')} of {amount(gpus)}{rest}"
    return f" in {f.least} parts of {amount(f.gpus)}" if f.least > 1 else ""


def _members(f: Facts) -> str:
    """All that have to start together, each with what it takes."""
    beside = f" with {f.beside}" if f.beside else ""
    (many, gpus), *others = f.roles or ((f.least, f.gpus),)
    rest = "".join(f" and {more} of {gpus_in_words(each)}" for more, each in others)
    return f"{plural(many, 'member')} of {gpus_in_words(gpus)}{beside}{rest}"


def _together(f: Facts) -> str:
    """In which domains all of them, and every segment, have to be."""
    size, level = f.segment
    together = f" in one {f.wanted}" if f.wanted else ""
    return f"{together}, every {size} in one {level}" if size else together


GONE = "when what already leaves is gone"


def awaits_victims(f: Facts) -> str:
    kept, victims = f.figures.needs, f.figures.victims
    have = "has" if victims == 1 else "have"
    when = f"once {plural(victims, 'workload')} {have} made room" if victims else GONE
    return f"{amount(kept)} {f.gpu_class} {are(kept)} kept for {_this(f)}; it starts {when}."


def reserved(f: Facts) -> str:
    expected = f", predicted by {clock(f.until)}" if f.until else ""
    return (
        f"{_this(f).capitalize()} of {f.queue} needs {amount(f.figures.needs)} {f.gpu_class}{_parts(f)};"
        f" {_kept(f)}{expected}."
    )


def _kept(f: Facts) -> str:
    """What of the free GPUs is kept for it, and why the others are of no use to it."""
    free, need, kept = f.figures.free, f.figures.needs, f.figures.kept_for_it
    if not kept:
        are_free = f"{amount(free)} {are(free)} free" if free else "none is free"
        return f"{are_free}, and it starts on nodes that are kept for it once what runs there ends"
    others = " and the others do not take what is left of it" if free >= need else ""
    return (
        f"{amount(free)} {are(free)} free, of which {amount(kept)} {are(kept)} kept for it{others}"
        " until the rest ends"
    )


NOT_ALL = "they do not take all of its members"
"""Of the nodes and a gang of unlike members."""


def never_fits(f: Facts) -> str:
    need, most = f.figures.needs, f.figures.most
    if f.blame:
        return (
            f"{_this(f).capitalize()} needs {amount(need)} {f.gpu_class} at once, and {f.blame} may"
            f" hold at most {amount(most)}."
        )
    if need > most:
        what = _this(f).capitalize()
        return f"{what} needs {amount(need)} {f.gpu_class}, and the cluster has {amount(most)}."
    if f.figures.nodes_in_class:
        return _never_on_its_nodes(f)
    where = _together(f)
    gang = f"{_members(f)}{where}, even when empty"
    return f"The nodes of {f.gpu_class} never take {gang}; the cluster has {gpus_in_words(most)}."


def nodes_out(f: Facts) -> str:
    need, most = f.figures.needs, f.figures.most
    if need > most:
        return (
            f"{_this(f).capitalize()} needs {amount(need)} {f.gpu_class}, and the nodes that are up have"
            f" {amount(most)}."
        )
    where = _together(f)
    return f"Those of its nodes that are up do not take {_members(f)}{where}."


CONSTRAINTS = "node selector, node affinity, tolerations, runtime class and devices beside GPUs"


def _its_nodes(f: Facts) -> str:
    some, every = f.figures.nodes_allowed, f.figures.nodes_in_class
    let = f"Its {f.constraints or CONSTRAINTS} let it run on"
    return f"{let} {some:.0f} of {every:.0f} nodes of {f.gpu_class}"


def _never_on_its_nodes(f: Facts) -> str:
    if not f.figures.nodes_allowed:
        every = plural(f.figures.nodes_in_class, "node")
        return f"Its {f.constraints or CONSTRAINTS} let it run on none of the {every} of {f.gpu_class}."
    where = _together(f)
    return f"{_its_nodes(f)}, which never take {_members(f)}{where}, even when empty."


def no_room_on_its_nodes(f: Facts) -> str:
    free, need, slots = f.figures.free, f.figures.needs, f.figures.fits_members
    room = f": they take {slots:.0f} of {f.least} members" if free >= need and f.least > 1 else ""
    room = f": {NOT_ALL}" if room and f.roles else room
    room = room or (": none has as much for one member" if free >= need else "")
    return (
        f"{_its_nodes(f)}: {amount(free)} {are(free)} free there, and {_this(f)} needs"
        f" {amount(need)}{_parts(f)}{room}."
    )


def at_limit(f: Facts) -> str:
    held, cap = f.figures.holds, f.figures.limit
    if cap < f.figures.borrowable:
        return (
            f"{f.blame} holds {amount(held)} of its nominal {amount(cap)} {f.gpu_class} and, with weight"
            f" 0, borrows nothing; {_this(f)} needs {_gang(f)}."
        )
    return (
        f"{f.blame} holds {amount(held)} of its limit of {amount(cap)} {f.gpu_class};"
        f" {_this(f)} needs {_gang(f)}."
    )


def hours_spent(f: Facts) -> str:
    used, budget = f.figures.used_gpu_hours, f.figures.budget_gpu_hours
    until = f"; the next period begins {clock(f.until)}" if f.until else ""
    return (
        f"{f.blame} has used {used:,.0f} of its {budget:,.0f} GPU-hours of {f.gpu_class} in this period,"
        f" so nothing more starts{until}."
    )


def queue_at_job_limit(f: Facts) -> str:
    running, most = f.figures.running, f.figures.max_running
    return (
        f"{f.blame} runs {running:.0f} of at most {plural(most, 'workload')} at once; {_this(f)} starts when"
        " one ends."
    )


def user_at_limit(f: Facts) -> str:
    running, most = f.figures.running, f.figures.max_running
    held, most_gpus = f.figures.holds, f.figures.max_gpus
    if running >= most:
        return (
            f"Its user runs {running:.0f} of at most {plural(most, 'workload')} at once in {f.blame};"
            f" {_this(f)} starts when one ends."
        )
    return (
        f"Its user holds {amount(held)} of at most {gpus_in_words(most_gpus)} in {f.blame}, and {_this(f)}"
        f" needs {_gang(f)}."
    )


def _evicted_often(f: Facts) -> str:
    held, fair, need = f.figures.holds, f.figures.fair_share, f.figures.needs
    often = "once" if f.figures.evictions == 1 else f"{f.figures.evictions:.0f} times"
    return (
        f"It was evicted {often}, so it starts again only inside fair share: {f.blame} holds"
        f" {amount(held)} of {share(fair)} {f.gpu_class}, and {_this(f)} needs {amount(need)}."
    )


def above_fair_share(f: Facts) -> str:
    held, fair, free = f.figures.holds, f.figures.fair_share, f.figures.free
    if f.figures.evictions:
        return _evicted_often(f)
    return (
        f"{f.blame} holds {amount(held)} {f.gpu_class}, {above(held, fair)} above its fair share of"
        f" {share(fair)}, so it may take only what no queue below its share can use:"
        f" {amount(free)} {are(free)} free and {_this(f)} needs {_gang(f)}."
    )


def waits_for_quota(f: Facts) -> str:
    held, fair, need = f.figures.holds, f.figures.fair_share, f.figures.needs
    free, kept = f.figures.free, f.figures.kept_back
    if f.figures.evictions:
        return _evicted_often(f)
    left = (
        f"of {amount(free)} free, {amount(kept)} {are(kept)} kept back"
        if kept
        else f"{amount(free)} {are(free)} free"
    )
    make = "makes" if amount(need) == "1" else "make"
    little = "too little" if free > kept else "nothing"
    why = f"{little} is left to borrow: {left}"
    return (
        f"{f.blame} holds {amount(held)} of a fair share of {share(fair)} {f.gpu_class};"
        f" {amount(need)} more {make} {amount(held + need)}, and {why}."
    )


def non_preemptible(f: Facts) -> str:
    held, nominal = f.figures.holds, f.figures.nominal
    need, fair = f.figures.needs, f.figures.fair_share
    inside, bound = ("nominal", amount(nominal)) if nominal <= fair else ("fair share", share(fair))
    return (
        f"Work that cannot be preempted runs only inside nominal: {f.blame} holds {amount(held)} of"
        f" its {inside} {bound} {f.gpu_class} that way, and {amount(need)} more would pass it."
    )


def waits_for_turn(f: Facts) -> str:
    held, fair, need = f.figures.holds, f.figures.fair_share, f.figures.first_needs
    soon = _soon("; its turn comes", f.figures.turn_in_s)
    return (
        f"{f.opening} goes first in {f.queue}: it needs {amount(need)} {f.gpu_class}, and the queue holds"
        f" {amount(held)} of its fair share of {share(fair)}{soon}."
    )


def _soon(what: str, seconds: float) -> str:
    """When the predictions of running work let one expect it; nothing without any."""
    return f"{what} in {span(seconds)}, as predicted" if seconds else ""


def no_room_in_topology(f: Facts) -> str:
    free, together = f.figures.free, int(f.figures.fits_together)
    if f.roles:
        return (
            f"{amount(free)} {f.gpu_class} {are(free)} free, but no {f.wanted} has room for all of"
            f" {_members(f)}.{_bound(f)}"
        )
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free, but no {f.wanted} has room for all {f.least}"
        f" members of {amount(f.gpus)}; the best takes {together}.{_bound(f)}"
    )


def no_room_for_segments(f: Facts) -> str:
    free, size, level = f.figures.free, max(1, int(f.figures.segment)), f.segment[1]
    needs, fit = f.least // size, int(f.figures.fits_together) // size
    room = f"one {f.wanted} has room for" if f.wanted else "there is room for"
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free, but {room} {fit} of its"
        f" {plural(needs, 'segment')} of {size} members of {amount(f.gpus)}, each in one {level}.{_bound(f)}"
    )


def fragmented(f: Facts) -> str:
    free, need = f.figures.free, f.figures.needs
    nodes, slots = f.figures.nodes, f.figures.fits_members
    room = (
        f"they take {slots:.0f} of {f.least} members"
        if f.least > 1
        else "no node has as much for one member"
    )
    room = NOT_ALL if f.roles else room
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free on {plural(nodes, 'node')}, and {_this(f)} needs"
        f" {amount(need)}{_parts(f)}: {room}.{_bound(f)}"
    )


def _bound(f: Facts) -> str:
    """That a search was left undone, if one was."""
    if f.searches == 0:
        return ""
    return f" No wider search for room was made: this cycle had made its {f.searches} before."


def no_free_cpus(f: Facts) -> str:
    each, most = f.figures.member_cpus, f.figures.most_cpus
    return _short_beside(f, f"{amount(each)} CPUs", amount(most))


def no_free_memory(f: Facts) -> str:
    each, most = f.figures.member_mib, f.figures.most_mib
    return _short_beside(f, f"{gib(each)} of memory", gib(most))


def no_free_other(f: Facts) -> str:
    each, most = f.figures.member_amount, f.figures.most_amount
    return _short_beside(f, f"{each:.0f} × {f.wanted}", f"{most:.0f}")


def _short_beside(f: Facts, each: str, most: str) -> str:
    free, need, slots = f.figures.free, f.figures.needs, f.figures.fits_members
    a_member = "each of its members" if f.least > 1 else "it"
    a_member = "one of its members" if f.roles else a_member
    fit = NOT_ALL if f.roles else f"{slots:.0f} of {f.least} fit{'s' * (f.least == 1)}"
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free and {_this(f)} needs {amount(need)}, but"
        f" {a_member} needs {each} as well: the nodes with free GPUs that lack them have at most {most} left,"
        f" and {fit}."
    )


def no_free_gpus(f: Facts) -> str:
    free, need = f.figures.free, f.figures.needs
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free and {_this(f)} of {f.queue} needs {amount(need)};"
        " it is entitled to them, and not enough of what others hold above their fair shares can be taken"
        f" back for it.{_bound(f)}"
    )


def reserved_for_other(f: Facts) -> str:
    return (
        f"The free {f.gpu_class} that {_this(f)} could use are kept for {f.other},"
        f" which goes first{_soon(' and starts', f.figures.starts_in_s)}; {_others(f.figures.free)} free and"
        f" it needs {amount(f.figures.needs)}."
    )


def _others(free: float) -> str:
    return "1 other is" if amount(free) == "1" else f"{amount(free)} others are"


def kept_for_short(f: Facts) -> str:
    free, need, kept = f.figures.free, f.figures.needs, f.figures.kept_free
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free, of which {amount(kept)} {are(kept)} kept for short"
        f" work; {_this(f)} needs {amount(need)} and is expected to take"
        f" {f.figures.expected_gpu_s / 3600:.0f} GPU-hours."
    )


PROTECTIONS = {
    MIN_RUN_TIME: "min run time",
    GRACE: "the grace of its lowered quota",
    COOLDOWN: "the cooldown after its own eviction",
}


def _of_blamed(f: Facts, rival: str) -> str:
    return f"{rival} of {f.blame}" if f.rival_queue else rival


def victims_protected(f: Facts) -> str:
    held, fair = f.figures.holds, f.figures.fair_share
    need, gone = f.figures.needs, f.figures.would_leave
    if f.figures.waits_itself:
        return (
            f"{_of_blamed(f, f.opening)} would leave for it, but {_this(f)} may displace others only after"
            f" waiting until {clock(f.until)}; it needs {amount(need)} {f.gpu_class}."
        )
    what = PROTECTIONS[int(f.figures.protection)]
    if not f.blame:
        return (
            f"{first_up(what)} protects the {amount(gone)} {f.gpu_class} of {f.holder} that would leave"
            f" for {_this(f)} until {clock(f.until)}."
        )
    return (
        f"{f.blame} holds {amount(held)} {f.gpu_class}, its fair share is {share(fair)};"
        f" {what} protects the {amount(gone)} that would leave for {_this(f)} until {clock(f.until)}."
    )


def budget_spent(f: Facts) -> str:
    till = f" until {clock(f.until)}" if f.until else ""
    left = f.figures.budget_left
    # How much is left of a budget is a figure of its queue.
    known = left and f.blame
    budget = f"only {amount(left)} {are(left)} left of its eviction budget" if known else ""
    spent = (
        "its eviction budget is spent"
        if f.blame or not left
        else "its eviction budget is too small"
    )
    return (
        f"{amount(f.figures.would_leave)} {f.gpu_class} of {f.holder} would have to leave for {_this(f)}, and"
        f" {budget or spent}{till}; it needs {amount(f.figures.needs)}."
    )


def eviction_cap(f: Facts) -> str:
    return (
        f"{amount(f.figures.would_leave)} {f.gpu_class} would have to leave, {_of_blamed(f, f.rival)} among"
        f" them, for the {amount(f.figures.needs)} that {_this(f)} needs: the policy's eviction cap allows"
        f" {amount(f.figures.may_leave)}."
    )


def held(f: Facts) -> str:
    if f.held_by_user:
        return "Its owner put it on hold; release it to let it wait for GPUs again."
    if f.draining:
        return f"{f.blame} is being drained: nothing starts in it and what runs leaves."
    return f"{f.blame} is on hold: what runs goes on, nothing new starts."


def misrouted(f: Facts) -> str:
    return (
        f"The label names the queue {f.wanted!r}, and no queue that takes workloads has that name."
    )


def no_such_class(f: Facts) -> str:
    name = "with any of these names" if "," in f.wanted else "of that name"
    return f"It asks for {f.wanted}, and the cluster has no GPU class {name}."


def gang_incomplete(f: Facts) -> str:
    exist = "exists" if f.members == 1 else "exist"
    return f"{f.members} of at least {f.least} members {exist}; the gang starts when they are all there."


def not_allowed(f: Facts) -> str:
    return f"{f.blame} does not run it as it stands for its owner."


def run_time_over(f: Facts) -> str:
    return "It ran for its run-time limit; release it to queue it again."


def not_before(f: Facts) -> str:
    return "Its author asks that it starts no sooner than at a later time."


def after_others(f: Facts) -> str:
    return "Its author has it start after other work."


def array_at_limit(f: Facts) -> str:
    return "As many members of its array hold GPUs as may at once."
