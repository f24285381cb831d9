"""The division of a cycle: from the workloads to the shares, and to whom a grace protects."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner, once
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.engine.division.demand import ask_as_decided, sum_asked, sum_held
from scheduling.engine.division.divide import divide
from scheduling.engine.quota.usage import clear_queues, find_ratios
from scheduling.engine.state.session import World
from scheduling.engine.state.units import DIVISIONS, EPS, SINCE_DIVIDED, STEPPED_BACK
from scheduling.engine.statement.changed import EVERY, SHARES, changed

MOST_DIVISIONS = 8


@inner
def share_out(world: World) -> None:
    """Sum what queues hold and ask for and divide it."""
    clear_queues(world)
    sum_held(world)
    sum_asked(world)
    world.book.asking[:] = world.book.asked
    world.book.shifts[SINCE_DIVIDED] = world.book.shifts[DIVISIONS] = 0
    _divide(world)


@once
def _divide(world: World) -> None:
    book, history = world.book, world.rules.history
    asking, charged = book.asking, book.charged
    divide(world.tree, world.quotas, book.supply, asking, charged, history, world.division)
    if _recall_former(world):
        divide(world.tree, world.former, book.supply, asking, charged, history, world.guard)


@inner
def share_out_again(world: World) -> bool:
    """Divide what is asked for as far as this cycle has decided: work that accepts several classes is demand
    for each of them, until it starts on one. Returns whether any share has changed.

    Where limits on workloads are set, who starts changes who may ask: that is left to the next cycle.
    """
    book, division = world.book, world.division
    if book.shifts[SINCE_DIVIDED] == 0 or book.limited[0]:
        return False
    book.shifts[SINCE_DIVIDED] = 0
    before, fair = book.asking.copy(), division.fair.copy()
    book.asking[:] = book.asked
    ask_as_decided(world, book.asking)
    if _are_equal(book.asking, before):
        return False
    _divide(world)
    find_ratios(world)
    if _are_close(fair, division.fair):
        return False
    changed(world, SHARES, EVERY, EVERY)
    return True


@inner
def share_out_for_hunt(world: World) -> None:
    """The same before anybody is made to leave, so that it is not for a share that is gone already; but no
    more than MOST_DIVISIONS times in a cycle, which bounds its time. Others are asked again then.
    """
    shifts = world.book.shifts
    if shifts[SINCE_DIVIDED] == 0 or shifts[DIVISIONS] == MOST_DIVISIONS:
        return
    shifts[DIVISIONS] += 1
    if share_out_again(world):
        world.book.rounds[STEPPED_BACK] = 1


@once
def _are_equal(these: Ints, those: Ints) -> bool:
    for c in range(these.shape[0]):
        for q in range(these.shape[1]):
            if these[c, q] != those[c, q]:
                return False
    return True


@once
def _are_close(these: Floats, those: Floats) -> bool:
    for c in range(these.shape[0]):
        for q in range(these.shape[1]):
            if abs(these[c, q] - those[c, q]) > EPS:
                return False
    return True


@inner
def _recall_former(world: World) -> bool:
    """Whether any quota is in its grace; the others' former values are then those in force."""
    quotas, former, graced, found = world.quotas, world.former, world.book.graced, False
    for c in range(quotas.grace.shape[0]):
        graced[c] = 0.0
        for q in range(quotas.grace.shape[1]):
            if world.rules.now < quotas.grace[c, q]:
                graced[c] = max(graced[c], quotas.grace[c, q])
                found = True
    if not found:
        return False
    for c in range(quotas.grace.shape[0]):
        for q in range(quotas.grace.shape[1]):
            if world.rules.now >= quotas.grace[c, q]:
                former.nominal[c, q], former.limit[c, q] = quotas.nominal[c, q], quotas.limit[c, q]
                former.cap[c, q], former.lending[c, q] = quotas.cap[c, q], quotas.lending[c, q]
                former.weight[c, q], former.usage[c, q] = quotas.weight[c, q], quotas.usage[c, q]
    return True
