"""The division of a cycle: from the workloads to the shares, and to whom a grace protects."""

from __future__ import annotations

from scheduling.engine.compiled import inner
from scheduling.engine.demand import sum_asked, sum_held
from scheduling.engine.division import divide
from scheduling.engine.prepare import clear_queues
from scheduling.engine.world import World


@inner
def share_out(world: World) -> None:
    """Sum what queues hold and ask for and divide it."""
    clear_queues(world)
    sum_held(world)
    sum_asked(world)
    book, history = world.book, world.rules.history
    divide(world.tree, world.quotas, book.supply, book.asked, book.charged, history, world.division)
    if _recall_former(world):
        divide(
            world.tree, world.former, book.supply, book.asked, book.charged, history, world.guard
        )


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
