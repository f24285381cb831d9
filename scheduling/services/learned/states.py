"""The one door of a learned order from state to state: it writes the step, and tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from scheduling.models import Cluster, LearnedOrder, LearnedState, LearnedStep
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce

S = LearnedState
NEXT: Mapping[LearnedState, frozenset[LearnedState]] = {
    S.TRAINING: frozenset({S.JUDGED, S.REJECTED, S.WITHDRAWN}),
    S.JUDGED: frozenset({S.SHADOW, S.REJECTED, S.WITHDRAWN}),
    S.SHADOW: frozenset({S.DECIDING, S.REJECTED, S.WITHDRAWN}),
    S.DECIDING: frozenset({S.SHADOW, S.DEMOTED, S.WITHDRAWN}),
    S.DEMOTED: frozenset(),
    S.REJECTED: frozenset(),
    S.WITHDRAWN: frozenset(),
}
"""A deciding one steps back into shadow where the switch is turned off."""
ALIVE = (S.TRAINING, S.JUDGED, S.SHADOW, S.DECIDING)
OVER = (S.DEMOTED, S.REJECTED, S.WITHDRAWN)


@transaction.atomic
def begun(order: LearnedOrder) -> None:
    """Write the first step of one that was just made."""
    _write(order, order.why, order.author)


@transaction.atomic
def move(order: LearnedOrder, to: LearnedState, why: str, *, author: str = "") -> bool:
    """Bring it from the state that ``order`` shows into ``to``; False where somebody else moved it before.

    1. Claim the step by the state that it was in.
    2. Empty what only lives needed, where it is over.
    3. Write the step and announce it; pages and the next cycle see it on commit.

    Raises ServiceError for a step that there is not.
    """
    if to not in NEXT[LearnedState(order.state)]:
        raise ServiceError(
            "no_such_step",
            f"{order} is {order.get_state_display().lower()}.",
            f"It cannot be {to.label.lower()} from there.",
        )
    why, now = why[:300], order.cluster.now()
    over: dict[str, Any] = {"world": {}, "work": {}, "held_until": None} if to in OVER else {}
    mine = LearnedOrder.objects.filter(pk=order.pk, state=order.state)
    if not mine.update(state=to, why=why, since=now, **over):
        return False
    order.state, order.why, order.since = to, why, now
    _write(order, why, author)
    return True


def _write(order: LearnedOrder, why: str, author: str) -> None:
    LearnedStep.objects.create(
        order=order, state=order.state, at=order.since, why=why, author=author
    )
    announce(
        f"learned.{order.state}",
        actor=author,
        cluster=order.cluster,
        subject=f"learned order {order}",
        after={"state": order.state, "weights": order.weights},
        reason=why,
    )
    order.cluster.touch()


def set_switch(*, cluster: Cluster, is_on: bool, author: str, reason: str = "") -> bool:
    """Let learned orders decide, or not; whether that changed anything.

    Off, the one that decides steps back into shadow (or is withdrawn where another is in shadow), and the
    hand-written order decides from the next cycle.
    """
    with transaction.atomic():
        found = Cluster.objects.select_for_update().get(pk=cluster.pk)
        if found.learned_may_decide == is_on:
            return False
        found.learned_may_decide = cluster.learned_may_decide = is_on
        found.save(update_fields=["learned_may_decide"])
        announce(
            "learned.switched",
            actor=author,
            cluster=found,
            subject=found.name,
            before={"learned_may_decide": not is_on},
            after={"learned_may_decide": is_on},
            reason=reason.strip(),
        )
        if not is_on:
            _step_back(found, author)
        found.touch()
    return True


def _step_back(cluster: Cluster, author: str) -> None:
    rows = LearnedOrder.objects.filter(cluster=cluster).select_related("cluster")
    deciding = rows.filter(state=S.DECIDING).first()
    if deciding is None:
        return
    other = rows.filter(state=S.SHADOW).first()
    if other is None:
        move(deciding, S.SHADOW, "The switch was turned off.", author=author)
    else:
        why = f"The switch was turned off while {other} was in shadow."
        move(deciding, S.WITHDRAWN, why, author=author)


def withdraw(*, order: LearnedOrder, author: str, reason: str) -> bool:
    """A person takes it away, whatever it does; False where it was over already.

    Raises ServiceError without a reason.
    """
    if not reason.strip():
        raise ServiceError(
            "no_reason", "To withdraw a learned order needs a reason.", "Say why.", field="reason"
        )
    if order.state in OVER:
        return False
    return move(order, S.WITHDRAWN, reason.strip(), author=author)
