"""What people say of when their work starts, checked at the door: a time to come, and work that they may see
and that may yet end as it must. A cluster's own objects are read with less care: what makes no sense there
waits and says why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Q

from scheduling.cluster.adapters import ADAPTERS, Sighting, turns
from scheduling.cluster.adapters.turns import After, Turn, TurnError
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.quantities import instant
from scheduling.engine.reasons.wording import clock
from scheduling.models import Cluster, Outcome, Reason, State, Workload
from scheduling.models.workloads import HOLDING, WAITING
from scheduling.services.errors import ServiceError

FIELD = {labels.NOT_BEFORE: "not_before", labels.AFTER: "after"}
"""Annotation -> the input that it comes from."""
NOT_COPIED = labels.TURN - {labels.AFTER}
"""Annotations that a copy leaves out: it is a member of no array, and its time is its own."""
Seen = Callable[[Collection[int]], set[int]]
"""Of the workloads with those keys, the ones that whoever sends it may see."""
MOST_AFTER = turns.MOST_AFTER
EARLIEST = "It starts no sooner than {}, as its author asked."
REMEDY = f"Change {labels.AFTER}, or cancel it."
KINDS = {adapter.kind.lower(): adapter.kind for adapter in ADAPTERS}
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


def turn_of(work: Workload) -> Turn:
    """When its author lets it start, as its row keeps it."""
    said = work.turn
    names = (str(one).partition(":") for one in said.get("after", ()))
    return Turn(
        not_before=instant(said.get("not_before")),
        after=tuple(After(name, not how) for name, _, how in names),
        array=said.get("array", ""),
        index=said.get("index", 0),
        at_once=said.get("at_once"),
    )


def faults(
    cluster: Cluster, observed: Sighting, seen: Seen, *, before: Turn = turns.NO_TURN
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
        yield from _after_faults(cluster, observed, seen)


def _after_faults(cluster: Cluster, observed: Sighting, seen: Seen) -> Iterator[ServiceError]:
    wanted = {one.key_in(observed.namespace): one for one in observed.turn.after}
    rows = last_of(cluster, sorted(wanted))
    shown = seen([row.pk for row in rows.values()])
    for key, one in wanted.items():
        row = rows.get(key)
        if row is not None and (row.pk not in shown or row.queue_label != observed.queue_label):
            row = None
        if fault := _of_one(one, row, observed):
            yield fault
            return
    if leads_back(cluster, observed):
        yield ServiceError(
            "circle",
            f"The work that it is to start after starts after {observed.name}: none of them ever would.",
            "Leave one of them out.",
            field="after",
        )


def _of_one(one: After, row: Workload | None, observed: Sighting) -> ServiceError | None:
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


def leads_back(cluster: Cluster, observed: Sighting) -> bool:
    """Whether what ``observed`` starts after starts, at last, after it."""

    def waits_for(keys: Collection[str]) -> Iterator[str]:
        rows = last_of(cluster, sorted(keys))
        waits = (row for row in rows.values() if row.state != State.FINISHED)
        return (key for row in waits for key in _names(row))

    first = {one.key_in(observed.namespace) for one in observed.turn.after}
    return is_circle(observed.key, first, waits_for, range(DEEP))


def is_circle(
    key: str,
    first: Iterable[str],
    waits_for: Callable[[Collection[str]], Iterable[str]],
    steps: Iterable[int],
) -> bool:
    """Whether ``waits_for`` leads from ``first`` to ``key`` within so many steps."""
    left, seen = set(first), set[str]()
    for _ in steps:
        if not left or key in left:
            break
        seen |= left
        left = set(waits_for(left)) - seen
    return key in left


def _names(row: Workload) -> Iterator[str]:
    return (one.key_in(row.namespace) for one in turn_of(row).after)


def kept_back(cluster: Cluster, observed: Sighting) -> tuple[Reason, str] | None:
    """What ``observed`` says itself keeps it from starting now, as the next cycle would tell it."""
    turn = observed.turn
    if observed.is_held:
        return Reason.HELD, "It is on hold. Release it to have it start."
    if turn.not_before is not None and turn.not_before > cluster.now():
        return Reason.NOT_BEFORE, EARLIEST.format(clock(turn.not_before))
    names = {one.key_in(observed.namespace): one for one in turn.after}
    rows = last_of(cluster, sorted(names)) if names else {}
    for key, one in names.items():
        if said := still_to_come(one, rows.get(key), observed.namespace):
            return Reason.AFTER_OTHERS, said
    if turn.array and turn.at_once is not None and _before(cluster, observed) >= turn.at_once:
        return Reason.ARRAY_AT_LIMIT, full(turn)
    return None


def _before(cluster: Cluster, observed: Sighting) -> int:
    """Members of its array that hold GPUs, and those that wait with a lower number."""
    kin = Workload.objects.filter(cluster=cluster, namespace=observed.namespace)
    same = kin.filter(queue_label=observed.queue_label, turn__array=observed.turn.array)
    first = Q(state__in=WAITING, held=False, turn__index__lt=observed.turn.index)
    return same.filter(Q(state__in=HOLDING) | first).count()


def last_of(cluster: Cluster, keys: Sequence[str]) -> dict[str, Workload]:
    """The last workload of each of those engine names, where there was one. One query."""
    places = {key: _place(key) for key in keys}
    rows = Workload.objects.filter(
        cluster=cluster,
        namespace__in={namespace for namespace, _, _ in places.values()},
        name__in={name for _, _, name in places.values()},
    )
    ordered = rows.order_by("submitted_at", "pk")
    found = {(row.namespace, row.kind, row.name): row for row in ordered}
    return {key: found[place] for key, place in places.items() if place in found}


def _place(key: str) -> tuple[str, str, str]:
    """(namespace, kind, name) of an engine name."""
    namespace, *kind, name = key.split("/")
    return namespace, KINDS.get(kind[0], kind[0]) if kind else "Job", name


def still_to_come(one: After, row: Workload | None, namespace: str) -> str:
    """Why what is to start after ``one`` still waits, whose last workload is ``row``; empty where it need
    not."""
    wanted = "has succeeded" if one.success else "has ended"
    if row is None:
        return (
            f"It starts after {one.name} {wanted}, and its queue has no such workload in the namespace"
            f" {namespace}. {REMEDY}"
        )
    if row.state != State.FINISHED:
        return (
            f"It starts after {one.name} {wanted}, which is {row.get_state_display().lower()} now."
        )
    if one.success and row.outcome != Outcome.SUCCEEDED:
        ended = "was cancelled" if row.outcome == Outcome.CANCELLED else "failed"
        return f"It was to start after {one.name} {wanted}, and {one.name} {ended}. {REMEDY}"
    return ""


def full(turn: Turn) -> str:
    """What is said to a member of an array that holds as much as it may."""
    are = "member of it holds" if turn.at_once == 1 else "members of it hold"
    return (
        f"It is number {turn.index} of the array {turn.array}, of which {turn.at_once} may run at once: as"
        f" many {are} GPUs or go first. It starts when one of them ends."
    )
