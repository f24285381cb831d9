"""One sentence for each act, as ``sentences`` has one for each wait."""

from __future__ import annotations

from collections.abc import Callable

from scheduling.engine.arrays import UNLIMITED
from scheduling.engine.facts import Facts
from scheduling.engine.model import Reason
from scheduling.engine.wording import amount, span


def _fits_nominal(f: Facts) -> str:
    held, nominal = f.figures[:2]
    return f"This start takes {f.queue} to {amount(held)} of its nominal {amount(nominal)} {f.gpu_class}."


def _borrows(f: Facts) -> str:
    held, nominal = f.figures[:2]
    return (
        f"This start takes {f.queue} to {amount(held)} {f.gpu_class}, {amount(held - nominal)}"
        f" above its nominal {amount(nominal)}: idle GPUs that their owners can take back."
    )


def _grows(f: Facts) -> str:
    running, total, most, held = f.figures[:4]
    return (
        f"It grows from {running:.0f} to {total:.0f} of at most {most:.0f} members, as nobody who waits"
        f" can use the free GPUs; this takes {f.queue} to {amount(held)} {f.gpu_class}."
    )


def _reclaimed(f: Facts) -> str:
    held, fair, after = f.figures[:3]
    return (
        f"{f.blame} held {amount(held)} {f.gpu_class}, {amount(held - fair)} above its fair share of"
        f" {amount(fair)}; {f.other} is entitled to them. {_loss(f)}"
        f" {f.blame} keeps {amount(after)}."
    )


def _loss(f: Facts) -> str:
    return f"Work lost: {f.lost_gpu_s / 3600:.1f} GPU-hours."


def _preempted(f: Facts) -> str:
    return (
        f"{f.opening} has a higher priority in {f.queue} and needs {amount(f.figures[3])}"
        f" {f.gpu_class}. {_loss(f)}"
    )


def _gives_way(f: Facts) -> str:
    ahead, mine, others, need = f.figures[:4]
    if f.figures[4]:
        far = f"is {span(ahead)} ahead of" if ahead < UNLIMITED else "would still wait on"
        why = f"this workload {far} its own quota"
    else:
        why = f"it is expected to end after {_gpu_hours(others)}, this workload after {_gpu_hours(mine)}"
    return f"{f.opening} goes first and needs {amount(need)} {f.gpu_class}; {why}. {_loss(f)}"


def _gpu_hours(gpu_s: float) -> str:
    return f"{gpu_s / 3600:.1f} GPU-hours"


def _shrinks(f: Facts) -> str:
    held, fair = f.figures[:2]
    gives, keeps = int(f.figures[4]), f.members - int(f.figures[4])
    why = f", its fair share is {amount(fair)}" if held > fair else ""
    return (
        f"It can do without {gives} of its {f.members} members and goes on with {keeps}: {f.other}"
        f" needs {amount(f.figures[3])} {f.gpu_class}. {f.blame} held {amount(held)}{why}."
    )


def _consolidates(f: Facts) -> str:
    gpus, need, moved = f.figures[:3]
    others = f", with {moved - 1:.0f} more," if moved > 1 else ""
    return (
        f"It moves{others} so that {f.other} finds room for {amount(need)} {f.gpu_class}"
        f" side by side; its {amount(gpus)} are free elsewhere. {_loss(f)}"
    )


def _stale_gang(f: Facts) -> str:
    running, least, age, back = f.figures[:4]
    few = f"Only {running:.0f} of at least {least:.0f} members {'has' if running == 1 else 'have'}"
    none = f"None of the {least:.0f} members that it needs has" if least > 1 else "It has not"
    gives = f"; {f.queue} gets {amount(back)} {f.gpu_class} back" if back else ""
    return (
        f"{few if running else none} been running for {span(age)}, no less than the grace{gives}."
    )


def _drained(f: Facts) -> str:
    return (
        f"{f.queue} is being drained: nothing starts in it and what runs leaves; this gives back"
        f" {amount(f.figures[3])} {f.gpu_class}."
    )


ACTS: dict[Reason, Callable[[Facts], str]] = {
    Reason.FITS_NOMINAL: _fits_nominal,
    Reason.BORROWS: _borrows,
    Reason.GROWS: _grows,
    Reason.RECLAIMED: _reclaimed,
    Reason.PREEMPTED: _preempted,
    Reason.GIVES_WAY: _gives_way,
    Reason.STALE_GANG: _stale_gang,
    Reason.DRAINED: _drained,
    Reason.SHRINKS: _shrinks,
    Reason.CONSOLIDATES: _consolidates,
}
