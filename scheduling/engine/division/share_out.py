"""The division of a cycle: from the workloads to the shares, and to whom a grace protects."""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Floats, Ints
from scheduling.engine.division.demand import ask_as_decided, clear_demand, sum_asked, sum_held
from scheduling.engine.division.divide import divide
from scheduling.engine.placement.node_room import clear_coming
from scheduling.engine.quota.limits import find_limits
from scheduling.engine.quota.usage import clear_usage, find_ratios
from scheduling.engine.state.input import Quotas, Rules
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import EPS
from scheduling.engine.statement.lines import EVERY, SHARES, changed

MOST_DIVISIONS = 8


@inner
def share_out(world: Session) -> None:
    """Sum what queues hold and ask for and divide it."""
    queues = world.queues
    find_limits(world.tree, world.quotas, world.rules, queues)
    clear_usage(world.tree, world.rules, queues, world.users)
    clear_demand(world)
    clear_coming(world.room)
    sum_held(world)
    sum_asked(world)
    _ask_as_summed(queues)
    queues.redivision.changed_asks = queues.redivision.divisions = 0
    _divide(world)


@inner
def _ask_as_summed(queues: Queues) -> None:
    divided, requests = queues.redivision.divided, queues.demand.requests
    for c in range(requests.shape[0]):
        for q in range(requests.shape[1]):
            divided[c, q] = requests[c, q]


@inner
def _divide(world: Session) -> None:
    queues, history = world.queues, world.rules.history
    asking, charged = queues.redivision.divided, queues.demand.charged_micro
    tree, supply = world.tree, queues.demand.supply
    divide(tree, world.quotas, supply, asking, charged, history, world.division)
    if _recall_former(world.quotas, world.rules, queues, world.former):
        divide(tree, world.former, supply, asking, charged, history, world.guard)


@inner
def share_out_again(world: Session) -> bool:
    """Divide what is asked for as far as this cycle has decided: work that accepts several classes is demand
    for each of them, until it starts on one or claims room there. Returns whether any share has changed.

    Where limits on workloads are set, a start changes what may ask: that is left to the next cycle.
    """
    queues, division = world.queues, world.division
    if queues.redivision.changed_asks == 0 or queues.limits.any:
        return False
    queues.redivision.changed_asks = 0
    before, fair = queues.redivision.divided.copy(), division.fair.copy()
    _ask_as_summed(queues)
    ask_as_decided(world, queues.redivision.divided)
    if _are_equal(queues.redivision.divided, before):
        return False
    _divide(world)
    find_ratios(world.tree, world.nodes, division, queues)
    if _are_close(fair, division.fair):
        return False
    changed(world.candidates, world.shapes, SHARES, EVERY, EVERY)
    return True


@inner
def share_out_before_search(world: Session) -> None:
    """The same before anybody is made to leave, so that it is not for a share that is gone already; but no
    more than MOST_DIVISIONS times in a cycle, which bounds its time. Others are asked again then.
    """
    shifts = world.queues.redivision
    if shifts.changed_asks == 0 or shifts.divisions == MOST_DIVISIONS:
        return
    shifts.divisions += 1
    if share_out_again(world):
        world.queues.round.asks_again = 1


@inner
def _are_equal(these: Ints, those: Ints) -> bool:
    for c in range(these.shape[0]):
        for q in range(these.shape[1]):
            if these[c, q] != those[c, q]:
                return False
    return True


@inner
def _are_close(these: Floats, those: Floats) -> bool:
    for c in range(these.shape[0]):
        for q in range(these.shape[1]):
            if abs(these[c, q] - those[c, q]) > EPS:
                return False
    return True


@inner
def _recall_former(quotas: Quotas, rules: Rules, queues: Queues, former: Quotas) -> bool:
    """Whether any quota is in its grace; the others' former values are then those in force."""
    graced, found = queues.redivision.grace_until_s, False
    for c in range(quotas.grace.shape[0]):
        graced[c] = 0.0
        for q in range(quotas.grace.shape[1]):
            if rules.now < quotas.grace[c, q]:
                graced[c] = max(graced[c], quotas.grace[c, q])
                found = True
    if not found:
        return False
    for c in range(quotas.grace.shape[0]):
        for q in range(quotas.grace.shape[1]):
            if rules.now >= quotas.grace[c, q]:
                former.nominal[c, q], former.limit[c, q] = quotas.nominal[c, q], quotas.limit[c, q]
                former.cap[c, q], former.lending[c, q] = quotas.cap[c, q], quotas.lending[c, q]
                former.weight[c, q], former.usage[c, q] = quotas.weight[c, q], quotas.usage[c, q]
    return True
