"""What people say of when their work starts, checked at the door: a time to come, and work that they may see
and that may yet end as it must. A cluster's own objects are read with less care: what makes no sense there
waits and says why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from portal.accounts.models import User
from portal.teams.access import visible_workloads
from scheduling.cluster.adapters import Observed, turns
from scheduling.cluster.adapters.turns import After, Turn, TurnError
from scheduling.cluster.vocabulary import labels
from scheduling.engine import model as m
from scheduling.engine.reasons.wording import clock
from scheduling.models import Cluster, Outcome, State, Workload
from scheduling.models.workloads import HOLDING
from scheduling.services.errors import ServiceError
from scheduling.services.snapshot.blocked import EARLIEST
from scheduling.services.snapshot.turns import full, last_of, still_to_come

FIELD = {labels.NOT_BEFORE: "not_before", labels.AFTER: "after"}
"""Annotation -> the input that it comes from."""
DEEP = 30
"""So many steps from work to work are followed."""


def unread(notes: Mapping[str, Any]) -> ServiceError | None:
    """What of the annotations ``notes`` says no turn."""
    try:
        turns.parsed({name: str(text) for name, text in notes.items()})
    except TurnError as wrong:
        return ServiceError(
            "invalid", wrong.sentence, wrong.remedy, field=FIELD.get(wrong.note, "array")
        )
    return None


def faults(
    user: User, cluster: Cluster, observed: Observed, *, before: Turn = turns.NO_TURN
) -> Iterator[ServiceError]:
    """What forbids ``observed`` to wait as it says; what stood there ``before`` is let be."""
    turn = observed.turn
    begins = turn.not_before
    if begins is not None and begins != before.not_before and begins <= cluster.now():
        yield ServiceError(
            "time_in_the_past",
            f"{begins:%Y-%m-%d %H:%M} UTC is past.",
            "Name a time to come, or leave it out to have it start as soon as it can.",
            field="not_before",
        )
    if turn.after != before.after and turn.after:
        yield from _after_faults(user, cluster, observed)


def _after_faults(user: User, cluster: Cluster, observed: Observed) -> Iterator[ServiceError]:
    wanted = {one.key_in(observed.namespace): one for one in observed.turn.after}
    rows = last_of(cluster, sorted(wanted))
    shown = visible_workloads(user).filter(pk__in=[row.pk for row in rows.values()])
    seen = set(shown.values_list("pk", flat=True))
    for key, one in wanted.items():
        row = rows.get(key)
        if row is not None and (row.pk not in seen or row.queue_label != observed.queue_label):
            row = None
        if fault := _of_one(one, row, observed):
            yield fault
            return
    if leads_back(cluster, observed):
        yield ServiceError(
            "circle",
            f"What it is to start after starts after {observed.name}: none of them ever would.",
            "Leave one of them out.",
            field="after",
        )


def _of_one(one: After, row: Workload | None, observed: Observed) -> ServiceError | None:
    if row is None and one.key_in(observed.namespace) != observed.key:
        return ServiceError(
            "no_such_workload",
            f"The queue {observed.queue_label} has no workload {one.name} in the namespace"
            f" {observed.namespace} that you may see.",
            "Name work of the same queue; a kind other than a Job goes before its name, as in jobset/NAME.",
            field="after",
        )
    if row is None or row.state != State.FINISHED or not one.success:
        return None
    if row.outcome == Outcome.SUCCEEDED:
        return None
    return ServiceError(
        "never_succeeds",
        f"{one.name} has ended without success, so this would never start.",
        f"Name it as {one.name}:{turns.ENDED}, where any end will do, or leave it out.",
        field="after",
    )


def leads_back(cluster: Cluster, observed: Observed) -> bool:
    """Whether what ``observed`` starts after starts, at last, after it."""
    left = {one.key_in(observed.namespace) for one in observed.turn.after}
    seen: set[str] = set()
    for _ in range(DEEP):
        if observed.key in left:
            return True
        seen |= left
        rows = last_of(cluster, sorted(left)) if left else {}
        waits = [row for row in rows.values() if row.state != State.FINISHED]
        left = {key for row in waits for key in _named(row)} - seen
        if not left:
            return False
    return True


def _named(row: Workload) -> Iterator[str]:
    said = ",".join(row.turn.get("after", ()))
    for one in turns.read({labels.AFTER: said}).after if said else ():
        yield one.key_in(row.namespace)


def kept_back(cluster: Cluster, observed: Observed) -> tuple[m.Reason, str] | None:
    """What ``observed`` says itself keeps it from starting now, as the next cycle would tell it."""
    turn = observed.turn
    if observed.held:
        return m.Reason.HELD, "It is on hold. Release it to have it start."
    if turn.not_before is not None and turn.not_before > cluster.now():
        return m.Reason.NOT_BEFORE, EARLIEST.format(clock(turn.not_before))
    names = {one.key_in(observed.namespace): one for one in turn.after}
    rows = last_of(cluster, sorted(names)) if names else {}
    for key, one in names.items():
        if said := still_to_come(one, rows.get(key), observed.namespace):
            return m.Reason.AFTER_OTHERS, said
    if turn.array and turn.at_once is not None and _held_by(cluster, observed) >= turn.at_once:
        return m.Reason.ARRAY_AT_LIMIT, full(turn)
    return None


def _held_by(cluster: Cluster, observed: Observed) -> int:
    """Members of its array that hold GPUs."""
    kin = Workload.objects.filter(cluster=cluster, namespace=observed.namespace)
    same = kin.filter(queue_label=observed.queue_label, state__in=HOLDING)
    return same.filter(turn__array=observed.turn.array).count()
