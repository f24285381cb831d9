"""Rights to submit: checked before a manifest goes to the cluster. Pages and API submit through here.

A manifest is read by the adapters, as the engine's worker reads what was created, and judged by the same
judge. What only people who submit are told comes on top: an image that is none, and what the engine says
can never start. The latter is refused unless whoever asks confirms it, since nodes and limits may change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.utils import timezone

from portal.accounts.models import User
from portal.teams.access import submittable_queues, visible_workloads
from portal.teams.models import Submitted
from portal.teams.reading import Reading
from scheduling.models import Cluster, PriorityClass, Queue, Workload
from scheduling.services import events
from scheduling.services.errors import ServiceError
from scheduling.services.explain import asking
from scheduling.services.explain.asking import DraftWork
from scheduling.services.lists import few
from scheduling.services.queues import judge, service_classes
from scheduling.services.words import sentences
from scheduling.services.workloads import shapes, turns
from scheduling.services.workloads import submit as workloads

Json = dict[str, Any]

NEVER_FITS = "never_fits"
"""Code of the refusal that may be overruled by whoever asks."""
MANIFESTS_KEPT = timedelta(days=90)
NAMED = 8
"""Of the queues that somebody may submit to, so many are named."""


class SubmissionError(ServiceError):
    """A submission that may not be made; ``faults`` stand at their fields, the first speaks."""

    def __init__(self, faults: Sequence[ServiceError]) -> None:
        first = faults[0]
        self.faults = tuple(faults)
        super().__init__(first.code, first.sentence, first.remedy, field=first.field)


def submit(
    user: User, cluster: Cluster, manifest: Mapping[str, Any], *, even_if_never: bool = False
) -> Json:
    """Checks ``manifest`` against class of service and limits, then creates it as ``user``.

    What can never start is created only ``even_if_never``. Returns the object as the API server made it.
    Raises SubmissionError, or the service's ServiceError.
    """
    faults = find_faults(user, cluster, manifest, even_if_never=even_if_never)
    if faults:
        refused = SubmissionError(faults)
        _note(user, cluster, manifest, refused)
        raise refused
    made = workloads.submit(cluster, manifest=manifest, user=user.get_username())
    Submitted.objects.get_or_create(
        cluster=cluster, uid=made["metadata"]["uid"], defaults={"user": user, "manifest": manifest}
    )
    _tell(user, cluster, made)
    # A manifest holds what its author wrote into the environment, so it is not kept for ever.
    Submitted.objects.filter(cluster=cluster, at__lt=timezone.now() - MANIFESTS_KEPT).delete()
    return made


def find_faults(
    user: User, cluster: Cluster, manifest: Mapping[str, Any], *, even_if_never: bool = False
) -> list[ServiceError]:
    """Everything that forbids ``manifest``, each at its field; empty when it may be submitted.

    Raises ServiceError for a kind that is not queued, and for one that cannot be read.
    """
    draft, astray = _read(user, cluster, manifest)
    if draft is None:
        return astray
    read = draft.observed
    if wrong := turns.unread(_notes_of(manifest)):
        return [*astray, wrong]
    if read.fault:
        return [*astray, ServiceError("invalid", read.fault, field="spec")]
    rules = judge.Rules.of(cluster)
    judgement = judge.judge(read, draft.queue.path, rules)
    unknown = list(_unknown_classes(cluster, read.gpu_classes))
    if all(fault.field != "priority_class" for fault in judgement.faults):
        unknown += _unknown_priority(read.priority_class, rules)
    told_of = {fault.field for fault in unknown}
    found = [
        *astray,
        *list(shapes.faults_of(manifest))[:1],
        *unknown,
        *(fault for fault in judgement.faults if fault.field not in told_of),
        *turns.faults(cluster, read, seen_by(user)),
    ]
    if not found and not even_if_never:
        found += never_faults(user, draft)
    return found


def seen_by(user: User) -> turns.Seen:
    """Which workloads ``user`` may see."""

    def seen(keys: Collection[int]) -> set[int]:
        return set(visible_workloads(user).filter(pk__in=keys).values_list("pk", flat=True))

    return seen


def _notes_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    return manifest["metadata"].get("annotations") or {}


def _note(
    user: User, cluster: Cluster, manifest: Mapping[str, Any], refused: SubmissionError
) -> None:
    """What was tried stands in the audit log as well, in the words that its author was told. The engine's
    word that it can never start is advice, not a refusal of rights."""
    if refused.code == NEVER_FITS:
        return
    named, namespace = workloads.destination(manifest)
    queue = submittable_queues(user).filter(cluster=cluster, name=named).first()
    meta = manifest.get("metadata")
    name = str(meta.get("name") or "") if isinstance(meta, Mapping) else ""
    events.note_refusal(
        "work.submitted",
        actor=user,
        cluster=cluster,
        queue=queue.path if queue else "",
        subject=f"{namespace}/{name}",
        reason=" ".join(str(fault) for fault in refused.faults),
    )


def _tell(user: User, cluster: Cluster, made: Json) -> None:
    meta = made["metadata"]
    queue = cluster.queues.filter(name=workloads.destination(made)[0]).first()
    events.announce(
        "work.submitted",
        actor=user,
        cluster=cluster,
        queue=queue.path if queue else "",
        subject=f"{meta.get('namespace', '')}/{meta.get('name', '')}",
        after={"kind": made.get("kind")},
    )


def asked_of(user: User, cluster: Cluster, manifest: Mapping[str, Any]) -> DraftWork | None:
    """What ``manifest`` would be as the work of ``user``; None where it leads to none of their queues.

    Raises ServiceError as ``find_faults`` does.
    """
    draft, _ = _read(user, cluster, manifest)
    return None if draft is None or draft.observed.fault else draft


def _read(
    user: User, cluster: Cluster, manifest: Mapping[str, Any]
) -> tuple[DraftWork | None, list[ServiceError]]:
    """What it would be in the queue that it leads to, if it leads to one, and what is wrong with where it
    leads."""
    named, namespace = workloads.destination(manifest)
    queue = submittable_queues(user).filter(cluster=cluster, name=named).first()
    astray = (
        list(_namespace_faults(queue, namespace)) if queue else [_no_queue(user, cluster, named)]
    )
    try:
        found = workloads.read(cluster, manifest, in_reach=not astray)
    except ServiceError as unread:
        # A person who names a place is told first what is wrong with that.
        if named and astray and unread.code == "invalid":
            return None, astray
        raise
    if queue is None:
        return None, astray
    return asking.as_work_of(found, user.get_username(), cluster, queue), astray


def refusals_of(draft: DraftWork, unread: Collection[str] = ()) -> tuple[str, dict[str, str]]:
    """Why the judge has none of it run, whatever its GPU class, empty where it may; and GPU class -> why its
    user may not have it there, only those that they may not. What stands in the fields ``unread`` is not
    judged: it cannot be read yet."""
    rules = judge.Rules.of(draft.cluster)
    names = draft.cluster.gpu_classes.values_list("name", flat=True)
    path = draft.queue.path
    whole = judge.judge(draft.observed, path, rules).faults
    barred = {
        name: str(fault)
        for name in names
        for fault in judge.judge(draft.on(name), path, rules).faults
        if fault.field == "gpu_classes"
    }
    faults = (fault for fault in whole if fault.field not in ("gpu_classes", *unread))
    return " ".join(map(str, faults)), barred


def usable_priority_classes(user: User, queue: Queue) -> list[PriorityClass]:
    """Every class that some class of service of ``user`` gives in ``queue``, highest value first."""
    mine = service_classes.load(queue.cluster).of(user.get_username(), queue.path)
    return [
        priority
        for priority in PriorityClass.objects.all()
        if any(service.gives_priority(priority.name) for service in mine)
    ]


def priority_classes_to_give(
    user: User, cluster: Cluster, works: Iterable[Workload]
) -> list[PriorityClass]:
    """Every class that ``user`` and the authors may give to all of ``works``, highest value first."""
    rules, name = judge.Rules.of(cluster), user.get_username()
    places = {(who, w.queue.path) for w in works if w.queue for who in (name, w.user)}
    return [
        priority
        for priority in rules.priority_classes
        if not any(judge.priority_fault(who, path, priority.name, rules) for who, path in places)
    ]


def _no_queue(user: User, cluster: Cluster, name: str) -> ServiceError:
    leaves = submittable_queues(user).filter(cluster=cluster).order_by("path")
    names = list(leaves.values_list("name", flat=True))
    remedy = f"Yours: {few(names, NAMED)}." if names else "Ask the lead of a team to add you."
    sentence = f"You may not submit to a queue called '{name}'." if name else "No queue is named."
    return ServiceError("no_such_queue", sentence, remedy, field="queue")


def _namespace_faults(queue: Queue, namespace: str) -> Iterator[ServiceError]:
    """A team's work stays in its own namespace."""
    own = queue.namespace or "default"
    if namespace and namespace != own:
        yield ServiceError(
            "wrong_namespace",
            f"Work of {queue.name} does not go to the namespace {namespace}.",
            f"Set metadata.namespace to {own}, or leave it out.",
            field="namespace",
        )


def _unknown_classes(cluster: Cluster, names: Sequence[str]) -> Iterator[ServiceError]:
    """A slip that the engine would have wait until somebody adds the class."""
    here = list(cluster.gpu_classes.values_list("name", flat=True))
    if wrong := next((name for name in names if name not in here), None):
        sentence = f"There is no GPU class {wrong} in {cluster}."
        remedy = f"Use {judge.any_of(here)}."
        yield ServiceError("gpu_class_not_allowed", sentence, remedy, field="gpu_classes")


def _unknown_priority(name: str, rules: judge.Rules) -> Iterator[ServiceError]:
    """A slip that a cluster's own objects get the default class for."""
    if name and name not in rules.priority_by_name:
        remedy = f"Use {judge.any_of(list(rules.priority_by_name))}."
        yield ServiceError(
            "priority_class_not_allowed",
            f"There is no priority class {name[:63]}.",
            remedy,
            field="priority_class",
        )


def never_faults(user: User, draft: DraftWork) -> list[ServiceError]:
    """The engine's word that it can never start. Where the cluster cannot be asked, nothing is said."""
    decision = None
    with suppress(ServiceError):
        decision = asking.can_never_start(draft)
    if decision is None:
        return []
    said = sentences.tell(draft.said(decision), Reading(user))
    return [ServiceError(NEVER_FITS, said.sentence, _remedy(said.numbers), field="gpus_per_pod")]


def _remedy(numbers: Mapping[str, Any]) -> str:
    most, needs = numbers.get("most"), numbers.get("needs")
    less = "fewer GPUs per pod, fewer pods"
    if isinstance(most, int | float) and isinstance(needs, int | float) and 0 < most < needs:
        less = f"at most {most:.10g} GPU{'' if most == 1 else 's'}"
    return (
        f"Ask for {less}, or choose another GPU class or queue."
        " To have it wait until nodes or limits change, confirm that."
    )
