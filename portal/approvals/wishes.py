"""What a request may ask for: read once, checked field by field, and what would work instead said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError

from portal.accounts.capabilities import Capability
from portal.accounts.models import Persona, User
from portal.approvals.models import QuotaRequest
from portal.approvals.states import Figure, Kind
from portal.boundary.reading import printable
from portal.display.format import counted
from portal.teams.access import visible_queues
from portal.teams.models import Membership
from portal.teams.namespaces import made_for
from portal.teams.reading import Reading
from scheduling.models import MILLI, GpuClass, PriorityClass, Queue, State, Workload
from scheduling.models.clusters import dns_label
from scheduling.services.errors import ServiceError, name_refused
from scheduling.services.queues.faults import figure
from scheduling.services.queues.shift import Shift, given_to, givers
from scheduling.services.queues.values import Field

MOST_GPUS = 999_999
MOST_REASON = 1000


class WishError(ServiceError):
    """Nothing was kept; ``faults`` stand at their fields, the first speaks."""

    def __init__(self, faults: Sequence[ServiceError]) -> None:
        self.faults = tuple(faults)
        first = self.faults[0]
        super().__init__(first.code, first.sentence, first.remedy, field=first.field)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for. GPUs are milli-GPU; ``queue`` is the one above where a new one is wanted."""

    kind: Kind
    queue: Queue
    gpu_class: str = ""
    priority_class: str = ""
    figure: Figure = Figure.NOMINAL
    gpus: int | None = None
    giver: Queue | None = None
    name: str = ""
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    reason: str = ""

    @classmethod
    def of(cls, request: QuotaRequest) -> Wish:
        """Raises ServiceError ``gone`` where its queue is."""
        if request.queue is None:
            raise ServiceError(
                "gone", f"The queue {request.place} is gone.", "Ask for another one.", field="queue"
            )
        return cls(
            Kind(request.kind), request.queue, request.gpu_class, request.priority_class,
            Figure(request.figure), request.gpus, request.giver, request.name,
            request.starts_at, request.ends_at, request.reason,
        )  # fmt: skip

    @classmethod
    def of_sent(cls, sent: Mapping[str, Any]) -> Wish:
        """By page or by API, with its rows found; what is left out is empty."""
        wish = cls(
            **{one.name: sent[one.name] for one in fields(cls) if sent.get(one.name) is not None}
        )
        return replace(wish, kind=Kind(wish.kind), figure=Figure(wish.figure or Figure.NOMINAL))

    @property
    def is_about_quota(self) -> bool:
        return self.kind in (Kind.QUOTA, Kind.BOOST)

    def columns(self) -> dict[str, Any]:
        """As the request keeps it; what its kind has no use for is left empty."""
        quota, access = self.is_about_quota, self.kind == Kind.ACCESS
        nominal = quota and self.figure == Figure.NOMINAL
        return {
            "kind": self.kind,
            "queue": self.queue,
            "place": self.queue.path,
            "gpu_class": self.gpu_class if quota or access else "",
            "priority_class": self.priority_class if access else "",
            "figure": self.figure if quota else Figure.NOMINAL,
            "gpus": self.gpus if quota else None,
            "giver": self.giver if nominal else None,
            "name": self.name if self.kind == Kind.QUEUE else "",
            "starts_at": self.starts_at,
            "ends_at": None if self.kind == Kind.QUEUE else self.ends_at,
            "reason": self.reason.strip(),
        }

    def found_class(self) -> GpuClass | None:
        return self.queue.cluster.gpu_classes.filter(name=self.gpu_class).first()

    def shift(self, now: datetime, gpus: int | None = None) -> Shift:
        """The change of quotas that it asks for, approved at ``now``. Raises WishError for a class that is
        gone."""
        found = self.found_class()
        if found is None:
            raise WishError([no_class(self)])
        return Shift(
            self.queue,
            found,
            (self.gpus or 0) if gpus is None else gpus,
            max(now, self.starts_at or now),
            self.ends_at,
            Field(self.figure),
            self.giver,
        )


def refuse(faults: Sequence[ServiceError]) -> None:
    if faults:
        raise WishError(faults)


def check_draft(wish: Wish) -> None:
    """What even a draft must be: storable. Raises WishError."""
    refuse(list(_text_faults(wish)))


def check(wish: Wish, now: datetime, *, reader: User) -> None:
    """Raises WishError with a fault for each field; ``reader`` is told of no queue out of sight."""
    faults = [*_text_faults(wish), *_range_faults(wish, now)]
    if not wish.reason.strip():
        faults.append(_at("reason", "missing", "Nobody knows why.", "Write what it is for."))
    if wish.is_about_quota:
        faults += _amount_faults(wish, now, reader)
    elif wish.kind == Kind.QUEUE:
        faults += _queue_faults(wish, reader)
    else:
        faults += _access_faults(wish)
    refuse(faults)


def _at(field: str, code: str, sentence: str, remedy: str) -> ServiceError:
    return ServiceError(code, sentence, remedy, field=field)


def _text_faults(wish: Wish) -> Iterator[ServiceError]:
    if len(wish.reason) > MOST_REASON:
        yield _at("reason", "too_long", "That is too long.", f"Use {MOST_REASON} characters.")
    try:
        printable(wish.reason)
    except ValidationError as error:
        yield _at("reason", "control", error.messages[0], "")
    if wish.gpus is not None and not 0 <= wish.gpus <= MOST_GPUS * MILLI:
        yield _at("gpus", "too_large", "That is no amount.", f"Write up to {MOST_GPUS:,}.")


def _range_faults(wish: Wish, now: datetime) -> Iterator[ServiceError]:
    if wish.starts_at is not None and wish.starts_at < now:
        yield _at(
            "starts_at",
            "in_the_past",
            f"{wish.starts_at:%d %b %Y %H:%M} UTC has passed.",
            "Leave it empty to begin with the approval, or choose a later moment.",
        )
    if wish.kind == Kind.QUEUE:
        return
    if wish.ends_at is None:
        if wish.kind == Kind.BOOST:
            remedy = "Say until when, or ask for quota without an end."
            yield _at("ends_at", "missing", "A boost ends.", remedy)
    elif wish.ends_at <= (wish.starts_at or now):
        past = wish.ends_at <= now
        yield _at(
            "ends_at",
            "in_the_past" if past else "ends_before_it_begins",
            f"{wish.ends_at:%d %b %Y %H:%M} UTC " + ("has passed." if past else "is before it begins."),
            "Choose a later end, or leave it empty for no end."
            if wish.kind != Kind.BOOST
            else "Choose a later end.",
        )  # fmt: skip


def _amount_faults(wish: Wish, now: datetime, reader: User) -> Iterator[ServiceError]:
    if wish.queue.is_root:
        yield _at("queue", "root", f"{wish.queue.name} is the whole cluster.", "Name one below it.")
        return
    found = wish.found_class()
    if found is None:
        yield no_class(wish)
        return
    if not wish.gpus or wish.gpus < 0:
        yield _at("gpus", "missing", "It asks for no GPU.", "Write how many more, such as 4.")
        return
    if wish.figure == Figure.BORROWING_LIMIT:
        yield from _limit_faults(wish, found, now)
    elif wish.giver is not None:
        yield from _giver_faults(wish, found, now, reader)
    else:
        yield from _parent_faults(wish, found, now, reader)


def no_class(wish: Wish) -> ServiceError:
    names = list(wish.queue.cluster.gpu_classes.values_list("name", flat=True))
    sentence = f"{wish.queue.cluster} has no GPU class {wish.gpu_class}."
    if not wish.gpu_class:
        sentence = "No GPU class is named."
    return _at("gpu_class", "no_class", sentence, f"Ask for one of {', '.join(names)}.")


def _limit_faults(wish: Wish, found: GpuClass, now: datetime) -> Iterator[ServiceError]:
    row = wish.queue.quotas.in_force(now).filter(gpu_class=found).first()
    if row is None or row.borrowing_limit_gpus is None:
        sentence = f"{wish.queue.name} may borrow as much {found} as there is."
        yield _at("figure", "no_limit", sentence, "Ask for nominal quota instead.")


def _giver_faults(
    wish: Wish, found: GpuClass, now: datetime, reader: User
) -> Iterator[ServiceError]:
    giver, queue = wish.giver, wish.queue
    assert giver is not None  # noqa: S101 - asked before
    sees = Reading(reader).sees_queue(giver.cluster_id, giver.path)
    name = giver.name if sees else "The queue that gives"
    if giver.cluster_id != queue.cluster_id or giver.is_within(queue) or queue.is_within(giver):
        yield _at(
            "giver", "no_giver", f"{name} is no queue beside {queue.name}.",
            _whom(wish, found, now, reader) or "Leave it to the lead.",
        )  # fmt: skip
        return
    has = given_to(giver, found, max(now, wish.starts_at or now))
    if has < (wish.gpus or 0):
        other = _whom(wish, found, now, reader)
        yield _at(
            "gpus",
            "gives_too_much",
            f"{name} has {figure(has) if sees else 'too little'} {found.name}.",
            (f"Ask for {figure(has)} at most" if sees else "Ask for less")
            + (f", or {other}." if other else "."),
        )


def _parent_faults(
    wish: Wish, found: GpuClass, now: datetime, reader: User
) -> Iterator[ServiceError]:
    """More than everything that the parent has: no division of it could give that."""
    parent = wish.queue.parent
    assert parent is not None  # noqa: S101 - the root was refused
    at = max(now, wish.starts_at or now)
    all_, own = given_to(parent, found, at), given_to(wish.queue, found, at)
    most = max(0, all_ - own)
    if (wish.gpus or 0) <= most:
        return
    has = f"{figure(all_)} {found.name}"
    sentence = f"{parent.name} {'has' if parent.is_root else 'was given'} {has} in all"
    other = _whom(wish, found, now, reader)
    ways = [f"ask for {figure(most)} at most"] if most else []
    ways += [other] if other else [] if parent.is_root else [f"ask for more for {parent.name}"]
    yield _at(
        "gpus",
        "more_than_parent",
        f"{sentence}, and {wish.queue.name} has {figure(own)} of it.",
        f"{', or '.join(ways)}.".capitalize() if ways else "",
    )


def _whom(wish: Wish, found: GpuClass, now: datetime, reader: User) -> str:
    """'take it from vision': the first that could give so much, of those the reader sees."""
    seen = set(
        visible_queues(reader).filter(cluster=wish.queue.cluster).values_list("pk", flat=True)
    )
    able = [g for g in givers(wish.queue, found, wish.gpus or 0, now) if g.queue.pk in seen]
    return f"take it from {able[0].queue.name}" if able else ""


def _queue_faults(wish: Wish, reader: User) -> Iterator[ServiceError]:
    if not wish.name:
        yield _at("name", "missing", "A queue needs a name.", "Work will carry it as its label.")
        return
    try:
        dns_label(made_for(wish.name))
    except ValidationError as error:
        yield _at("name", "bad_name", "That cannot be a queue's name.", error.messages[0])
        return
    taken = Queue.objects.filter(cluster=wish.queue.cluster, name=wish.name)
    if taken.exists():
        seen = visible_queues(reader).filter(pk__in=taken).exists()
        sentence = f"{wish.queue.cluster} has a queue named {wish.name}."
        yield (
            _at("name", "name_taken", sentence, "Choose another name.") if seen else name_refused()
        )
    count = Workload.objects.filter(queue=wish.queue).exclude(state=State.FINISHED).count()
    if count:
        yield _at(
            "queue",
            "parent_holds_workloads",
            f"{wish.queue.name} holds {counted(count, 'unfinished workload')}, and only leaves may.",
            "Ask for it beside that queue, below the one above.",
        )


def _access_faults(wish: Wish) -> Iterator[ServiceError]:
    if bool(wish.gpu_class) == bool(wish.priority_class):
        yield _at(
            "gpu_class", "one_of_two", "It asks for a GPU class or for a priority, one of the two.",
            "Choose one, and ask for the other by itself.",
        )  # fmt: skip
        return
    if wish.gpu_class and wish.found_class() is None:
        yield no_class(wish)
        return
    if wish.priority_class and not PriorityClass.objects.filter(name=wish.priority_class).exists():
        names = ", ".join(PriorityClass.objects.values_list("name", flat=True))
        sentence = f"There is no priority class {wish.priority_class}."
        yield _at("priority_class", "no_class", sentence, f"Ask for one of {names}.")
        return
    if _open_to_all(wish):
        field = "gpu_class" if wish.gpu_class else "priority_class"
        what = wish.gpu_class or wish.priority_class
        sentence = f"Everybody who submits to {wish.queue.name} may use {what} already."
        yield _at(field, "has_it", sentence, "Nothing has to be asked for.")


def _open_to_all(wish: Wish) -> bool:
    """Whether no persona of those who submit to the queue keeps them from it."""
    teams = [m for m in _submitting(wish.queue) if m.team.queue.is_within(wish.queue)]
    over = [m for m in _submitting(wish.queue) if wish.queue.is_within(m.team.queue)]
    personas = {m.persona for m in (*teams, *over)}
    return bool(personas) and all(_allows(persona, wish) for persona in personas)


def _submitting(queue: Queue) -> list[Membership]:
    rows = Membership.objects.filter(
        team__queue__cluster=queue.cluster,
        persona__grants__has_key=Capability.SUBMIT.value,
        user__is_active=True,
    )
    return list(rows.select_related("team__queue", "persona"))


def _allows(persona: Persona, wish: Wish) -> bool:
    if wish.gpu_class:
        names = persona.gpu_classes.filter(cluster=wish.queue.cluster)
        return not persona.gpu_classes.exists() or names.filter(name=wish.gpu_class).exists()
    wanted = PriorityClass.objects.get(name=wish.priority_class)
    named = persona.priority_classes
    if named.exists() and not named.filter(pk=wanted.pk).exists():
        return False
    if wanted.type == "interactive" and not persona.interactive:
        return False
    return wanted.preemptible or not persona.preemptible_only
