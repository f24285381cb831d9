"""Who may submit what: the class of service of a persona, and the limits of the queue, checked before
a manifest goes to the cluster. Pages and API submit through here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portal.accounts.models import Persona, User
from portal.teams.access import submittable_queues
from scheduling.models import MILLI, Cluster, PriorityClass, Queue, Quota
from scheduling.services import workloads
from scheduling.services.errors import ServiceError

QUEUE_LABELS = ("weir.dev/queue", "kueue.x-k8s.io/queue-name")
PRIORITY_LABEL = "weir.dev/priority-class"
CLASSES_ANNOTATION = "weir.dev/gpu-classes"
MIN_MEMBERS_ANNOTATION = "weir.dev/min-members"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """What a submission asks for. ``gpus`` is milli-GPU per pod; empty texts were left out."""

    queue: str
    namespace: str = ""
    priority_class: str = ""
    gpus: int = 0
    pods_min: int = 1
    pods_max: int = 1
    gpu_classes: tuple[str, ...] = ()
    run_time_limit_s: int | None = None


class SubmissionError(ServiceError):
    """A submission that may not be made; ``faults`` stand at their fields, the first speaks."""

    def __init__(self, faults: Sequence[ServiceError]) -> None:
        first = faults[0]
        self.faults = tuple(faults)
        super().__init__(first.code, first.sentence, first.remedy, field=first.field)


def submit(user: User, cluster: Cluster, manifest: Mapping[str, Any]) -> Json:
    """Checks ``manifest`` against persona and limits, then creates it as ``user``.

    Returns the object as the API server made it. Raises SubmissionError, or the service's ServiceError.
    """
    faults = find_faults(user, cluster, read_manifest(cluster, manifest))
    if faults:
        raise SubmissionError(faults)
    return workloads.submit(cluster, manifest=manifest, user=user.get_username())


def read_manifest(cluster: Cluster, manifest: Mapping[str, Any]) -> Ask:
    """What a manifest asks for; in a Job's, parts of the wrong shape count as left out.

    Whether it is a valid Job is for the API server to say; this reads what personas bound. Raises
    ServiceError for a kind that is not queued, or one that cannot be read.
    """
    meta, spec = _part(manifest, "metadata"), _part(manifest, "spec")
    pod = _part(_part(spec, "template"), "spec")
    if manifest.get("kind") not in (None, "Job") or pod.get("resourceClaims"):
        return _read_as_queued(cluster, manifest)
    labels, notes = _part(meta, "labels"), _part(meta, "annotations")
    pods = _whole(spec.get("parallelism"), 1)
    classes = str(notes.get(CLASSES_ANNOTATION) or "").split(",")
    return Ask(
        queue=next((str(labels[key]) for key in QUEUE_LABELS if labels.get(key)), ""),
        namespace=str(meta.get("namespace") or ""),
        priority_class=str(labels.get(PRIORITY_LABEL) or pod.get("priorityClassName") or ""),
        gpus=_gpus(cluster, pod),
        pods_min=_whole(notes.get(MIN_MEMBERS_ANNOTATION), pods),
        pods_max=pods,
        gpu_classes=tuple(name.strip() for name in classes if name.strip()),
        run_time_limit_s=_whole(spec.get("activeDeadlineSeconds"), 0) or None,
    )


def _read_as_queued(cluster: Cluster, manifest: Mapping[str, Any]) -> Ask:
    """As the cycle will read it, so that no kind and no claim slips past what personas bound."""
    seen = workloads.read(cluster, manifest)
    if seen.fault:
        raise ServiceError("invalid", seen.fault, field="spec")
    return Ask(
        queue=seen.queue_label,
        namespace=str(_part(manifest, "metadata").get("namespace") or ""),
        priority_class=seen.priority_class,
        gpus=seen.gpus,
        pods_min=seen.min_members,
        pods_max=seen.max_members,
        gpu_classes=seen.gpu_classes,
        run_time_limit_s=seen.run_time_limit_s,
    )


def find_faults(user: User, cluster: Cluster, ask: Ask) -> list[ServiceError]:
    """Everything that forbids ``ask``, each at its field; empty when it may be made.

    Of several personas that reach the queue the most generous counts.
    """
    queue = submittable_queues(user).filter(cluster=cluster, name=ask.queue).first()
    if queue is None:
        return [_no_queue(user, cluster, ask.queue)]
    faults = [_persona_faults(persona, cluster, ask) for persona in personas_at(user, queue)]
    return [
        *_namespace_faults(queue, ask),
        *min(faults, key=len, default=[]),
        *_limit_faults(queue, ask),
    ]


def personas_at(user: User, queue: Queue) -> list[Persona]:
    """The personas with which ``user`` may submit to ``queue``."""
    members = user.memberships.filter(
        persona__may_submit=True,
        team__queue__cluster_id=queue.cluster_id,
        team__queue__path__in=_paths_down_to(queue.path),
    )
    rows = members.select_related("persona").prefetch_related(
        "persona__priority_classes", "persona__gpu_classes"
    )
    return [member.persona for member in rows]


def limits_of(queue: Queue, gpu_class: str = "") -> list[tuple[str, str, int]]:
    """(path of the queue or an ancestor, class, limit in milli-GPU) of every limit in force now."""
    quotas = Quota.objects.in_force(queue.cluster.now()).filter(
        queue__cluster_id=queue.cluster_id, queue__path__in=_paths_down_to(queue.path)
    )
    if gpu_class:
        quotas = quotas.filter(gpu_class__name=gpu_class)
    return [
        (quota.queue.path, quota.gpu_class.name, quota.nominal_gpus + quota.borrowing_limit_gpus)
        for quota in quotas.select_related("queue", "gpu_class")
        if quota.borrowing_limit_gpus is not None
    ]


def _no_queue(user: User, cluster: Cluster, name: str) -> ServiceError:
    leaves = submittable_queues(user).filter(cluster=cluster).order_by("path")
    names = ", ".join(leaves.values_list("name", flat=True)[:8])
    remedy = f"Yours: {names}." if names else "Ask the lead of a team to add you."
    sentence = f"You may not submit to a queue called '{name}'." if name else "No queue is named."
    return ServiceError("no_such_queue", sentence, remedy, field="queue")


def _namespace_faults(queue: Queue, ask: Ask) -> Iterator[ServiceError]:
    """A team's work stays in its own namespace."""
    own = queue.namespace or "default"
    if ask.namespace and ask.namespace != own:
        yield ServiceError(
            "wrong_namespace",
            f"Work of {queue.name} does not go to the namespace {ask.namespace}.",
            f"Set metadata.namespace to {own}, or leave it out.",
            field="namespace",
        )


def _persona_faults(persona: Persona, cluster: Cluster, ask: Ask) -> list[ServiceError]:
    found = [
        _priority_fault(persona, ask),
        _class_fault(persona, cluster, ask),
        _size_fault(persona, ask),
        _run_time_fault(persona, ask),
    ]
    return [fault for fault in found if fault is not None]


def _priority_fault(persona: Persona, ask: Ask) -> ServiceError | None:
    allowed = priority_classes_of(persona)
    names = [c.name for c in allowed]
    if not ask.priority_class or ask.priority_class in names:
        return None
    return ServiceError(
        "priority_class_not_allowed",
        f"Persona {persona} may not use the priority class {ask.priority_class}.",
        f"Use {_any_of(names)}.",
        field="priority_class",
    )


def priority_classes_of(persona: Persona) -> list[PriorityClass]:
    """Those ``persona`` may use, highest value first; none named means every one."""
    named = list(persona.priority_classes.all()) or list(PriorityClass.objects.all())
    return [c for c in named if c.preemptible or not persona.preemptible_only]


def _class_fault(persona: Persona, cluster: Cluster, ask: Ask) -> ServiceError | None:
    here = list(cluster.gpu_classes.values_list("name", flat=True))
    named = {c.name for c in persona.gpu_classes.all()}
    allowed = [name for name in here if not named or name in named]
    wrong = next((name for name in ask.gpu_classes if name not in allowed), None)
    if wrong is None:
        return None
    if wrong in here:
        sentence = f"Persona {persona} may not use the GPU class {wrong}."
    else:
        sentence = f"There is no GPU class {wrong} in {cluster}."
    return ServiceError(
        "gpu_class_not_allowed", sentence, f"Use {_any_of(allowed)}.", field="gpu_classes"
    )


def _size_fault(persona: Persona, ask: Ask) -> ServiceError | None:
    most, asked = persona.max_gpus_per_workload, ask.gpus * ask.pods_max
    if most is None or asked <= most:
        return None
    return ServiceError(
        "too_many_gpus",
        f"{asked / MILLI:g} GPUs are more than the {most / MILLI:g} persona {persona} may ask for.",
        "Ask for fewer GPUs per pod or fewer pods.",
        field="gpus_per_pod",
    )


def _run_time_fault(persona: Persona, ask: Ask) -> ServiceError | None:
    most = persona.max_run_time_s
    if most is None or (ask.run_time_limit_s is not None and ask.run_time_limit_s <= most):
        return None
    if ask.run_time_limit_s is None:
        sentence = f"Persona {persona} needs a run-time limit."
    else:
        sentence = f"{ask.run_time_limit_s / 3600:g} h is longer than persona {persona} may run."
    return ServiceError(
        "run_time_too_long",
        sentence,
        f"Set a limit of at most {most / 3600:g} h.",
        field="run_time_limit",
    )


def _limit_faults(queue: Queue, ask: Ask) -> Iterator[ServiceError]:
    """One fault when no class that was asked for could ever hold the gang."""
    need, limits = ask.gpus * ask.pods_min, limits_of(queue)
    classes = ask.gpu_classes or tuple(queue.cluster.gpu_classes.values_list("name", flat=True))
    tight = [min(((n, p) for p, c, n in limits if c == name), default=None) for name in classes]
    blocked = [limit for limit in tight if limit is not None and limit[0] < need]
    if not need or len(blocked) < len(classes):
        return
    most, path = max(blocked)
    yield ServiceError(
        "never_fits",
        f"The gang needs {need / MILLI:g} GPUs; the limit of {path} is {most / MILLI:g}.",
        f"Ask for at most {most / MILLI:g} GPUs, or choose another GPU class or queue.",
        field="gpus_per_pod",
    )


def _any_of(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + (" or " if len(names) > 1 else "") + names[-1] if names else "-"


def _paths_down_to(path: str) -> list[str]:
    """'a/b' -> ['', 'a', 'a/b']: the root's path is empty."""
    parts = path.split("/")
    return ["", *("/".join(parts[: i + 1]) for i in range(len(parts)))]


def _part(whole: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = whole.get(key)
    return part if isinstance(part, Mapping) else {}


def _whole(value: Any, default: int) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return default


def _gpus(cluster: Cluster, pod: Mapping[str, Any]) -> int:
    names = set(cluster.gpu_classes.values_list("resource_name", flat=True))
    containers = pod.get("containers")
    total = 0
    for container in containers if isinstance(containers, list) else []:
        resources = _part(container, "resources") if isinstance(container, Mapping) else {}
        asked = {**_part(resources, "requests"), **_part(resources, "limits")}
        total += sum(_whole(n, 0) for name, n in asked.items() if name in names)
    return total * MILLI
