"""The doors through which the queue tree changes, and how it is walked.

Leaves hold workloads, so a queue that holds some takes no child; a name is a label in the cluster, so
it stays while workloads carry it. Every refusal names the field at fault. People work in the
namespaces of their queues: what gives a queue one is here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max
from django.utils.module_loading import import_string

from scheduling.cluster.vocabulary.labels import offering as offering  # noqa: PLC0414 - for the portal
from scheduling.engine.reasons.wording import plural
from scheduling.models import Cluster, PodSecurity, Queue, State, Stop, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce
from scheduling.services.queues.checks import timelines_of
from scheduling.services.queues.faults import figure
from scheduling.services.queues.values import instants, value_at

NAME_TAKEN = "name_taken"
"""Code of the refusal that tells of another queue: only for whoever sees that one."""
MOST_PRIORITY = 1000
MOST_LIMIT = 2_000_000_000
"""What the columns hold."""
BOUNDED = ("max_cpus", "max_memory_mib", "max_pods")


@dataclass(frozen=True, slots=True)
class Limits:
    """Workloads at once, and what each user may run and hold (milli-GPU); None is unlimited."""

    max_running: int | None = None
    max_running_per_user: int | None = None
    max_gpus_per_user: int | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the cluster holds the namespace of a queue to: the level of pod security ("": as the queues above
    say), and what its pods may request together (milli-CPU, MiB, pods; None is derived)."""

    pod_security: str = ""
    max_cpus: int | None = None
    max_memory_mib: int | None = None
    max_pods: int | None = None


def subtree(queue: Queue) -> list[tuple[Queue, int]]:
    """``queue`` and all below it, each with its depth below ``queue``, depth first, in page order."""
    children: dict[int | None, list[Queue]] = {}
    for other in Queue.objects.below(queue, strictly=True):
        children.setdefault(other.parent_id, []).append(other)

    def walk(top: Queue, depth: int) -> Iterator[tuple[Queue, int]]:
        yield top, depth
        for child in children.get(top.pk, ()):
            yield from walk(child, depth + 1)

    return list(walk(queue, 0))


def lock_tree(cluster: Cluster) -> Cluster:
    """Serialise edits of the tree and its quotas until the transaction ends; gives a fresh cluster.

    ``no_key``: workloads that point at the root's row may be written meanwhile. SQLite, which has no
    row locks, serialises whole transactions.
    """
    Queue.objects.select_for_update(no_key=True).get(cluster=cluster, parent=None)
    return Cluster.objects.get(pk=cluster.pk)


@transaction.atomic
def create_queue(
    *,
    parent: Queue,
    name: str,
    author: AbstractBaseUser | None,
    priority: int = 0,
    stop: Stop = Stop.NONE,
    sharing: str = "",
    namespace: str = "",
    taking: str = "",
    access_group: str = "",
    limits: Limits | None = None,
    bounds: Bounds | None = None,
) -> Queue:
    """A leaf below ``parent``, last among its siblings, without quota. Raises ServiceError."""
    cluster = lock_tree(parent.cluster)
    last = parent.children.aggregate(at=Max("position"))["at"]
    queue = Queue(
        cluster=cluster,
        parent=parent,
        name=name,
        position=0 if last is None else last + 1,
        priority=priority,
        stop=stop.value,
        sharing=sharing,
        namespace=namespace,
        access_group=access_group,
        **asdict(limits or Limits()),
        **asdict(bounds or Bounds()),
    )
    _refuse_holding_parent(parent)
    check(queue, author, taking)
    _save(queue, author)
    _tell("queue.created", queue, author, {}, _as_json(queue))
    return queue


@transaction.atomic
def change_queue(
    *,
    queue: Queue,
    author: AbstractBaseUser | None,
    name: str | None = None,
    parent: Queue | None = None,
    priority: int | None = None,
    stop: Stop | None = None,
    sharing: str | None = None,
    namespace: str | None = None,
    taking: str = "",
    access_group: str | None = None,
    limits: Limits | None = None,
    bounds: Bounds | None = None,
) -> Queue:
    """Rename, move, set tier, stop policy, sharing ("": as the queue above), namespace, access group,
    limits, bounds; None leaves as it is.

    Raises ServiceError at ``name`` (taken, malformed, carried by workloads), at ``parent`` (below
    the queue itself, of another cluster, holding workloads, or given too little for what arrives) or at
    ``namespace`` (not the author's to give).
    """
    lock_tree(queue.cluster)
    queue = Queue.objects.select_related("cluster", "parent").get(pk=queue.pk)
    _refuse_root(queue)
    before = _as_json(queue)
    if name is not None and name != queue.name:
        _refuse_carried_name(queue)
        queue.name = name
    if parent is not None and parent.pk != queue.parent_id:
        queue.parent = Queue.objects.select_related("cluster", "parent").get(pk=parent.pk)
        _check(queue)
        _refuse_holding_parent(queue.parent)
        _refuse_excess(queue, queue.parent)
    queue.priority = queue.priority if priority is None else priority
    queue.stop = queue.stop if stop is None else stop.value
    queue.sharing = queue.sharing if sharing is None else sharing
    if namespace is not None and namespace != queue.namespace:
        queue.namespace = namespace
        check(queue, author, taking)
    queue.access_group = queue.access_group if access_group is None else access_group
    values = {**(asdict(limits) if limits else {}), **(asdict(bounds) if bounds else {})}
    for field, value in values.items():
        setattr(queue, field, value)
    _save(queue, author)
    _tell("queue.changed", queue, author, before, _as_json(queue))
    return queue


@transaction.atomic
def delete_queue(*, queue: Queue, author: AbstractBaseUser | None) -> None:
    """Remove an empty leaf: no children, no team, and no workload ever. Raises ServiceError."""
    lock_tree(queue.cluster)
    _refuse_root(queue)
    if queue.children.exists():
        raise ServiceError(
            "has_children", f"{queue.name} has queues below it.", "Move or delete them first."
        )
    if queue.workloads.exists():
        raise ServiceError(
            "has_workloads",
            f"{queue.name} holds or held workloads, which the reports count.",
            "Set it to drain instead; nothing is admitted to it then.",
        )
    if _is_bound(queue):
        raise ServiceError(
            "has_team", f"{queue.name} belongs to a team.", "Bind the team elsewhere first."
        )
    _sign(queue, author)
    cluster = queue.cluster
    _tell("queue.deleted", queue, author, _as_json(queue), {})
    queue.delete()
    cluster.touch()


def _as_json(queue: Queue) -> dict[str, Any]:
    """Its columns as an event tells them, those that say nothing left out."""
    names = ("name", "priority", "stop", "namespace", "access_group")
    bounds = (field.name for kind in (Limits, Bounds) for field in fields(kind))
    values = {name: getattr(queue, name) for name in (*names, *bounds)}
    values["parent"] = queue.parent.name if queue.parent else None
    return {name: value for name, value in values.items() if value not in (None, "", 0, "none")}


def _tell(
    kind: str,
    queue: Queue,
    author: AbstractBaseUser | None,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> None:
    """Only what differs."""
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    announce(
        kind,
        actor=author,
        cluster=queue.cluster,
        queue=queue.path,
        subject=queue.name,
        before={name: before.get(name) for name in changed},
        after={name: after.get(name) for name in changed},
    )


def _is_bound(queue: Queue) -> bool:
    """Teams live outside this package and point at queues one to one."""
    return any(
        relation.related_model._default_manager.filter(**{relation.field.name: queue}).exists()
        for relation in queue._meta.related_objects
        if relation.one_to_one
    )


def _save(queue: Queue, author: AbstractBaseUser | None) -> Queue:
    _check(queue)
    _sign(queue, author)
    queue.save()
    queue.cluster.touch()
    return queue


def _check(queue: Queue) -> None:
    """The model's own rules: form of the name, uniqueness, no cycle, one cluster; and ranges."""
    _refuse_limits(queue)
    if abs(queue.priority) > MOST_PRIORITY:
        raise ServiceError(
            "bad_priority",
            f"Priority {queue.priority} is out of range.",
            f"Use −{MOST_PRIORITY} to {MOST_PRIORITY}.",
            field="priority",
        )
    try:
        queue.full_clean(exclude=["path"])
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        if field == "__all__":
            raise _name_taken(queue) from error
        first, _, rest = messages[0].partition(". ")
        raise ServiceError(f"bad_{field}", f"{first.rstrip('.')}.", rest, field=field) from error


def _name_taken(queue: Queue) -> ServiceError:
    return ServiceError(
        NAME_TAKEN,
        f"{queue.cluster} has a queue named {queue.name}.",
        "Choose another name.",
        field="name",
    )


def _refuse_limits(queue: Queue) -> None:
    for name in (*(field.name for field in fields(Limits)), *BOUNDED):
        most = getattr(queue, name)
        if most is not None and not 0 <= most <= MOST_LIMIT:
            raise ServiceError(
                "bad_limit",
                f"{name.replace('_', ' ')} is out of range.",
                "Use 0 or more, or leave it empty for no limit of its own.",
                field=name,
            )
    if queue.pod_security not in ("", *PodSecurity.values):
        raise ServiceError(
            "bad_pod_security",
            f"{queue.pod_security} is no level of pod security.",
            f"Use {', '.join(PodSecurity.values)}, or leave it empty.",
            field="pod_security",
        )


def _sign(queue: Queue, author: AbstractBaseUser | None) -> None:
    """Whom the history names; without it, the user of the current request."""
    if author is not None:
        queue._history_user = author  # type: ignore[attr-defined]  # read by simple_history


def _refuse_root(queue: Queue) -> None:
    if queue.is_root:
        raise ServiceError(
            "root", f"{queue.name} is the whole cluster.", "Edit the queues below it.", field="name"
        )


def _refuse_carried_name(queue: Queue) -> None:
    carried = queue.workloads.exclude(state=State.FINISHED).count()
    if carried:
        raise ServiceError(
            "name_in_use",
            f"The name {queue.name} is carried by {plural(carried, 'unfinished workload')}.",
            "Wait until they end, or make a new queue beside it.",
            field="name",
        )


def _refuse_holding_parent(parent: Queue) -> None:
    count = Workload.objects.filter(queue=parent).exclude(state=State.FINISHED).count()
    if count:
        raise ServiceError(
            "parent_holds_workloads",
            f"{parent.name} holds {plural(count, 'unfinished workload')}, and only leaves may.",
            "Choose another parent, or wait until they end.",
            field="parent",
        )


def _refuse_excess(queue: Queue, parent: Queue) -> None:
    """Arriving with its nominal quota must not break the new parent's sum, now or later."""
    if parent.is_root:
        return
    now = parent.cluster.now()
    arriving = [queue, *parent.children.exclude(pk=queue.pk)]
    timelines = timelines_of([parent, *arriving], now)
    for gpu_class in parent.cluster.gpu_classes.all():
        given, *below = (timelines.get((q.pk, gpu_class.pk), []) for q in (parent, *arriving))
        for at in instants([given, *below], now, None):
            most = value_at(given, at).nominal
            total = sum(value_at(timeline, at).nominal for timeline in below)
            if total > most and value_at(below[0], at).nominal:
                raise ServiceError(
                    "sum_above_parent",
                    f"{parent.name} was given {figure(most)} {gpu_class} and its queues would "
                    f"hold {figure(total)}.",
                    f"Lower {queue.name} by {figure(total - most)} first, or raise {parent.name}.",
                    field="parent",
                )


def check(queue: Queue, author: AbstractBaseUser | None, taking: str = "") -> None:
    """Asks the judge that the setting ``WEIR_NAMESPACE_JUDGE`` names, since only the portal knows persons.

    ``taking`` names a namespace of which the author was shown what becomes of it.
    Commands run by hand have no author and are not judged. Raises ServiceError at ``namespace``.
    """
    if author is not None and queue.namespace:
        import_string(settings.WEIR_NAMESPACE_JUDGE)(author, queue, taking)
