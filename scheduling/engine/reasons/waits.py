"""One sentence for each wait by right or by order, naming both parties, with numbers and units.

Queues are written from the top.
"""

from __future__ import annotations

from scheduling.engine.reasons.facts import Facts, gang, parts, this
from scheduling.engine.reasons.figures import COOLDOWN, GRACE, MIN_RUN_TIME
from scheduling.engine.reasons.wording import (
    above,
    amount,
    are,
    clock,
    first_up,
    gpus_in_words,
    plural,
    share,
    span,
)

GONE = "when what already leaves is gone"


def awaits_victims(f: Facts) -> str:
    need, victims = f.figures.needs, f.figures.victims
    have = "has" if victims == 1 else "have"
    when = f"once {plural(victims, 'workload')} {have} made room" if victims else GONE
    return f"{amount(need)} {f.gpu_class} {are(need)} kept for {this(f)}; it starts {when}."


def reserved(f: Facts) -> str:
    expected = f", expected by {clock(f.until)}" if f.until else ""
    return (
        f"{this(f).capitalize()} of {f.queue} needs {amount(f.figures.needs)} {f.gpu_class}{parts(f)};"
        f" {_free_room(f)}{expected}."
    )


def _free_room(f: Facts) -> str:
    """What of the free GPUs is kept for it, and why the others are of no use to it."""
    free, need, claim = f.figures.free, f.figures.needs, f.figures.kept_for_it
    if not claim:
        are_free = f"{amount(free)} {are(free)} free" if free else "none is free"
        return f"{are_free}, and it starts on nodes that are kept for it once what runs there ends"
    others = " and the others do not take what is left of it" if free >= need else ""
    return (
        f"{amount(free)} {are(free)} free, of which {amount(claim)} {are(claim)} kept for it{others}"
        " until the rest ends"
    )


def at_limit(f: Facts) -> str:
    usage, cap = f.figures.holds, f.figures.limit
    if cap < f.figures.borrowable:
        return (
            f"{f.blame} holds {amount(usage)} of its nominal {amount(cap)} {f.gpu_class} and, with weight"
            f" 0, borrows nothing; {this(f)} needs {gang(f)}."
        )
    return (
        f"{f.blame} holds {amount(usage)} of its limit of {amount(cap)} {f.gpu_class};"
        f" {this(f)} needs {gang(f)}."
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
        f"{f.blame} runs {running:.0f} of at most {plural(most, 'workload')} at once; {this(f)} starts when"
        " one ends."
    )


def user_at_limit(f: Facts) -> str:
    running, most = f.figures.running, f.figures.max_running
    usage, most_gpus = f.figures.holds, f.figures.max_gpus
    if running >= most:
        return (
            f"Its user runs {running:.0f} of at most {plural(most, 'workload')} at once in {f.blame};"
            f" {this(f)} starts when one ends."
        )
    return (
        f"Its user holds {amount(usage)} of at most {gpus_in_words(most_gpus)} in {f.blame}, and {this(f)}"
        f" needs {gang(f)}."
    )


def _evicted_often(f: Facts) -> str:
    usage, fair, need = f.figures.holds, f.figures.fair_share, f.figures.needs
    often = "once" if f.figures.evictions == 1 else f"{f.figures.evictions:.0f} times"
    return (
        f"It was evicted {often}, so it starts again only inside fair share: {f.blame} holds"
        f" {amount(usage)} of {share(fair)} {f.gpu_class}, and {this(f)} needs {amount(need)}."
    )


def above_fair_share(f: Facts) -> str:
    usage, fair, free = f.figures.holds, f.figures.fair_share, f.figures.free
    if f.figures.evictions:
        return _evicted_often(f)
    return (
        f"{f.blame} holds {amount(usage)} {f.gpu_class}, {above(usage, fair)} above its fair share of"
        f" {share(fair)}, so it may take only what no queue below its share can use:"
        f" {amount(free)} {are(free)} free and {this(f)} needs {gang(f)}."
    )


def waits_for_quota(f: Facts) -> str:
    usage, fair, need = f.figures.holds, f.figures.fair_share, f.figures.needs
    free, kept_back = f.figures.free, f.figures.kept_back
    if f.figures.evictions:
        return _evicted_often(f)
    left = (
        f"of {amount(free)} free, {amount(kept_back)} {are(kept_back)} kept back"
        if kept_back
        else f"{amount(free)} {are(free)} free"
    )
    make = "makes" if amount(need) == "1" else "make"
    little = "too little" if free > kept_back else "nothing"
    why = f"{little} is left to borrow: {left}"
    return (
        f"{f.blame} holds {amount(usage)} of a fair share of {share(fair)} {f.gpu_class};"
        f" {amount(need)} more {make} {amount(usage + need)}, and {why}."
    )


def non_preemptible(f: Facts) -> str:
    usage, nominal = f.figures.holds, f.figures.nominal
    need, fair = f.figures.needs, f.figures.fair_share
    inside, bound = ("nominal", amount(nominal)) if nominal <= fair else ("fair share", share(fair))
    return (
        f"Work that cannot be preempted runs only inside nominal: {f.blame} holds {amount(usage)} of"
        f" its {inside} {bound} {f.gpu_class} that way, and {amount(need)} more would pass it."
    )


def waits_for_turn(f: Facts) -> str:
    usage, fair, need = f.figures.holds, f.figures.fair_share, f.figures.first_needs
    soon = _soon("; its turn comes", f.figures.turn_in_s)
    return (
        f"{f.opening} goes first in {f.queue}: it needs {amount(need)} {f.gpu_class}, and the queue holds"
        f" {amount(usage)} of its fair share of {share(fair)}{soon}."
    )


def _soon(what: str, seconds: float) -> str:
    """When it comes if running work ends when it is predicted to; nothing without any such word."""
    return f"{what} in {span(seconds)} if what runs ends as expected" if seconds else ""


def reserved_for_other(f: Facts) -> str:
    return (
        f"The free {f.gpu_class} that {this(f)} could use are kept for {f.other},"
        f" which goes first{_soon(' and starts', f.figures.starts_in_s)}; {_others(f.figures.free)} free and"
        f" it needs {amount(f.figures.needs)}."
    )


def _others(free: float) -> str:
    return "1 other is" if amount(free) == "1" else f"{amount(free)} others are"


def kept_for_short(f: Facts) -> str:
    free, need, kept_free = f.figures.free, f.figures.needs, f.figures.kept_free
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free, of which {amount(kept_free)} {are(kept_free)} kept"
        f" for short work; {this(f)} needs {amount(need)} and is expected to take"
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
    usage, fair = f.figures.holds, f.figures.fair_share
    need, gone = f.figures.needs, f.figures.would_leave
    if f.figures.waits_itself:
        return (
            f"{_of_blamed(f, f.opening)} would leave for it, but {this(f)} may displace others only after"
            f" waiting until {clock(f.until)}; it needs {amount(need)} {f.gpu_class}."
        )
    what = PROTECTIONS[int(f.figures.protection)]
    if not f.blame:
        return (
            f"{first_up(what)} protects the {amount(gone)} {f.gpu_class} of {f.holder} that would leave"
            f" for {this(f)} until {clock(f.until)}."
        )
    return (
        f"{f.blame} holds {amount(usage)} {f.gpu_class}, its fair share is {share(fair)};"
        f" {what} protects the {amount(gone)} that would leave for {this(f)} until {clock(f.until)}."
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
        f"{amount(f.figures.would_leave)} {f.gpu_class} of {f.holder} would have to leave for {this(f)}, and"
        f" {budget or spent}{till}; it needs {amount(f.figures.needs)}."
    )


def eviction_cap(f: Facts) -> str:
    return (
        f"{amount(f.figures.would_leave)} {f.gpu_class} would have to leave, {_of_blamed(f, f.rival)} among"
        f" them, for the {amount(f.figures.needs)} that {this(f)} needs: the policy's eviction cap allows"
        f" {amount(f.figures.may_leave)}."
    )


def on_hold(f: Facts) -> str:
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
