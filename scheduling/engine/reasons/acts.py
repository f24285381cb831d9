"""One sentence for each act, as ``waits`` has one for each wait."""

from __future__ import annotations

from scheduling.engine.model import UNLIMITED, Rule
from scheduling.engine.reasons.facts import Facts
from scheduling.engine.reasons.rules import begins_with, taken_from
from scheduling.engine.reasons.wording import amount, are, loss, share, span


def fits_nominal(f: Facts) -> str:
    usage, nominal = f.figures.holds, f.figures.nominal
    return f"This start takes {f.queue} to {amount(usage)} of its nominal {amount(nominal)} {f.gpu_class}."


def borrows(f: Facts) -> str:
    usage, nominal = f.figures.holds, f.figures.nominal
    return (
        f"This start takes {f.queue} to {amount(usage)} {f.gpu_class}, {amount(usage - nominal)}"
        f" above its nominal {amount(nominal)}: idle GPUs that their owners can take back."
    )


def grows(f: Facts) -> str:
    of = f.figures
    return (
        f"It grows from {of.members:.0f} to {of.members_after:.0f} of at most {of.members_max:.0f}"
        f" {f.members_of}, as nobody who waits can use the free GPUs; this takes {f.queue} to"
        f" {amount(of.holds)} {f.gpu_class}."
    )


def reclaimed(f: Facts) -> str:
    keeps = "" if begins_with(f) else f" {f.blame} keeps {amount(f.figures.keeps)}."
    return f"{taken_from(f)} {loss(f.lost_gpu_s)}{keeps}"


def preempted(f: Facts) -> str:
    return (
        f"{f.opening} has a higher priority in {f.queue} and needs {amount(f.figures.requested)}"
        f" {f.gpu_class}. {loss(f.lost_gpu_s)}"
    )


def gives_way(f: Facts) -> str:
    mine, others = f.figures.expected_gpu_s, f.figures.other_expected_gpu_s
    if f.figures.is_ahead:
        ahead = f.figures.ahead_s
        far = f"is {span(ahead)} ahead of" if ahead < UNLIMITED else "would still wait on"
        why = f"this workload {far} its own quota"
    else:
        why = f"it is expected to end after {_gpu_hours(others)}, this workload after {_gpu_hours(mine)}"
    needs = f"{amount(f.figures.requested)} {f.gpu_class}"
    return f"{f.opening} goes first and needs {needs}; {why}. {loss(f.lost_gpu_s)}"


def _gpu_hours(gpu_s: float) -> str:
    return f"{gpu_s / 3600:.1f} GPU-hours"


def shrinks(f: Facts) -> str:
    usage, fair, gives = f.figures.held, f.figures.fair_share, int(f.figures.gives_members)
    keeps = f.members - gives
    why = f", its fair share is {share(fair)}" if usage > fair else ""
    first = "" if f.rule == Rule.LOWER_PRIORITY else begins_with(f)
    return (
        f"{first}It can do without {gives} of its {f.members} {f.members_of} and goes on with {keeps}:"
        f" {f.other} needs {amount(f.figures.requested)} {f.gpu_class}. {f.blame} held {amount(usage)}{why}."
    )


def consolidates(f: Facts) -> str:
    gpus, need, moved = f.figures.moves, f.figures.requested, f.figures.workloads
    others = f", with {moved - 1:.0f} more," if moved > 1 else ""
    return (
        f"It moves{others} so that {f.other} finds room for {amount(need)} {f.gpu_class}"
        f" side by side; its {amount(gpus)} {are(gpus)} free elsewhere. {loss(f.lost_gpu_s)}"
    )


def stale_gang(f: Facts) -> str:
    running, least = f.figures.members, f.figures.min_members
    age, back = f.figures.stale_s, f.figures.gives_back
    few = f"Only {running:.0f} of at least {least:.0f} members {'has' if running == 1 else 'have'}"
    none = f"None of the {least:.0f} members that it needs has" if least > 1 else "It has not"
    gives = f"; {f.queue} gets {amount(back)} {f.gpu_class} back" if back else ""
    return (
        f"{few if running else none} been running for {span(age)}, no less than the grace{gives}."
    )


def drained(f: Facts) -> str:
    return (
        f"{f.queue} is being drained: nothing starts in it and what runs leaves; this gives back"
        f" {amount(f.figures.gives_back)} {f.gpu_class}."
    )
