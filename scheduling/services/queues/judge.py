"""The one judge of work: may it run here, for whom, as what, on which GPU classes, how large and how long.

Pages, the API and the engine's worker have a manifest read by the adapters and judged here, by what
results: the priority class it gets where it names none, the GPU classes that are left, all of its members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.functional import cached_property

from scheduling.cluster.adapters import Sighting
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.topology import Levels, segment_size
from scheduling.engine.reasons.wording import are, gpus_in_words, span
from scheduling.models import MILLI, Cluster, PriorityClass, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.queues import service_classes
from scheduling.services.queues.knobs import levels_of
from scheduling.services.queues.service_classes import ServiceClass, ServiceClasses

MISROUTED = "misrouted"
"""Code of the fault of work that names no queue which takes it."""
NO_LEVEL = "no_level"
"""Of work that requires a level of topology that the cluster has not."""


@dataclass(frozen=True)
class Rules:
    """What a cluster's policy says of who may have what run."""

    service_classes: ServiceClasses
    priority_classes: tuple[PriorityClass, ...]
    levels: Levels

    @classmethod
    def of(cls, cluster: Cluster) -> Rules:
        """Those in force now."""
        return cls(
            service_classes.load(cluster), tuple(PriorityClass.objects.all()), levels_of(cluster)
        )

    @cached_property
    def priority_by_name(self) -> dict[str, PriorityClass]:
        return {p.name: p for p in self.priority_classes}

    @cached_property
    def default_priority(self) -> PriorityClass | None:
        return next((p for p in self.priority_classes if p.is_default), None)

    def priority_of(self, name: str) -> PriorityClass | None:
        """The class that work which says ``name`` belongs to: that one, else the default."""
        return self.priority_by_name.get(name) or self.default_priority


@dataclass(frozen=True, slots=True)
class Judgement:
    """``faults`` forbid it, each at its field; ``gpu_classes`` are left of those it may run on."""

    faults: tuple[ServiceError, ...]
    gpu_classes: tuple[str, ...]


def judge(observed: Sighting, path: str, rules: Rules) -> Judgement:
    """Of what is ``observed`` in the queue at ``path``.

    In a queue that no team is bound to only its pods' priority is judged. Of several classes of service
    that its user has there the most generous counts: of those that allow it, each brings its GPU classes.
    """
    always = (*_pod_priority_faults(observed, rules), *_level_faults(observed, rules))
    classes = rules.service_classes
    if not classes.binds(path):
        return Judgement(always, observed.gpu_classes)
    mine = classes.of(observed.user, path)
    if not mine:
        return Judgement((not_a_member(observed), *always), observed.gpu_classes)
    found = [(tuple(_faults(observed, service, rules)), service) for service in mine]
    fewest = min((faults for faults, _ in found), key=len)
    open_to = [service for faults, service in found if not faults] or [mine[0]]
    return Judgement((*always, *fewest), left_of(observed.gpu_classes, open_to))


def open_to(observed: Sighting, path: str, rules: Rules) -> list[ServiceClass]:
    """The classes of service that let its user have it run in the queue at ``path``; none bind it elsewhere
    than below a team's queue."""
    if not rules.service_classes.binds(path):
        return []
    mine = rules.service_classes.of(observed.user, path)
    return [service for service in mine if not any(_faults(observed, service, rules))]


def left_of(gpu_classes: Iterable[str], open_to: Sequence[ServiceClass]) -> tuple[str, ...]:
    """Those of ``gpu_classes`` that one of the classes of service gives, in their order."""
    bounds = [service.gpu_classes for service in open_to]
    if None in bounds:
        return tuple(gpu_classes)
    given = frozenset().union(*(bound for bound in bounds if bound is not None))
    return tuple(name for name in gpu_classes if name in given)


def misrouted(observed: Sighting) -> ServiceError:
    """Of work that names no queue, one that does not exist, or one that takes no work of its namespace:
    who is outside learns of none whether it exists."""
    return ServiceError(
        MISROUTED,
        f"The label names the queue {observed.queue_label!r}, and no queue of that name takes work of the"
        f" namespace {observed.namespace}.",
        f"Name a queue of this namespace in the label {labels.QUEUE}, or make it in the queue's own.",
        field="queue",
    )


def not_a_member(observed: Sighting) -> ServiceError:
    """Of work in a team's queue that is nobody's, or somebody's who may not submit there."""
    whose = observed.user or "nobody that is known"
    return ServiceError(
        "not_a_member",
        f"It is the work of {whose}, who may have none run in {observed.queue_label}.",
        "Ask the lead of the queue's team for a place in it, or name a queue of your own.",
        field="queue",
    )


def _pod_priority_faults(observed: Sighting, rules: Rules) -> Iterator[ServiceError]:
    """Another class than Weir's own would have its pods push those of others off their nodes."""
    if not observed.pod_priority_classes:
        return
    resolved = rules.priority_of(observed.priority_class)
    own = resolved.name if resolved else ""
    if wrong := [name for name in observed.pod_priority_classes if name != own]:
        yield ServiceError(
            "pod_priority_not_allowed",
            f"Its pods name the priority class {wrong[0]}, and it is queued as {own or 'of none'}.",
            f"Leave priorityClassName out{f', or set it to {own}' if own else ''}.",
            field="priority_class",
        )


def _level_faults(observed: Sighting, rules: Rules) -> Iterator[ServiceError]:
    level = observed.topology.get("required")
    if level and not rules.levels.find(level):
        there = ", ".join(rules.levels.with_nodes)
        yield ServiceError(
            NO_LEVEL,
            f"It asks to be together in one {level[:63]!r}, which is no level.",
            f"Set {labels.TOPOLOGY_REQUIRED} to one of {there}.",
            field="topology",
        )
    yield from _segment_faults(observed, rules)


def _segment_faults(observed: Sighting, rules: Rules) -> Iterator[ServiceError]:
    """Segments that are required, and that no start could keep."""
    said = observed.topology
    level, size = said.get("segment_required"), segment_size(said)
    if not level:
        return
    if not rules.levels.find(level):
        there = ", ".join(rules.levels.with_nodes)
        yield ServiceError(
            NO_LEVEL,
            f"It asks for segments inside one {level[:63]!r} each, which is no level.",
            f"Set {labels.SEGMENT_REQUIRED} to one of {there}.",
            field="topology",
        )
        return
    uneven = [many for many in (observed.min_members, observed.max_members) if many % max(1, size)]
    if size and not uneven and not observed.shapes:
        return
    has = f"has {uneven[0] if uneven else observed.max_members} members"
    has = "has members of unlike size" if observed.shapes else has
    what = f"segments of {size} members each" if size else "segments of no size that can be read"
    yield ServiceError(
        NO_LEVEL,
        f"It asks for {what}, and {has}.",
        f"Set {labels.SEGMENT_SIZE} to a divisor of its members, or take {labels.SEGMENT_REQUIRED} out.",
        field="topology",
    )


def _faults(observed: Sighting, service: ServiceClass, rules: Rules) -> Iterator[ServiceError]:
    yield from _priority_faults(observed, service, rules)
    yield from _class_faults(observed, service)
    yield from _size_faults(observed, service)
    yield from _run_time_faults(observed, service)


def _priority_faults(
    observed: Sighting, service: ServiceClass, rules: Rules
) -> Iterator[ServiceError]:
    resolved = rules.priority_of(observed.priority_class)
    if resolved is None or service.gives_priority(resolved.name):
        return
    why = "" if observed.priority_class == resolved.name else ", which it gets as it names none"
    yield _priority_refused(service, resolved.name, rules, why)


def priority_fault(user: str, path: str, name: str, rules: Rules) -> ServiceError | None:
    """Why ``user`` may give no work in the queue at ``path`` the priority class ``name``; who has no class of
    service there is not bounded by one."""
    mine = rules.service_classes.of(user, path)
    if not mine or any(service.gives_priority(name) for service in mine):
        return None
    return _priority_refused(mine[0], name, rules)


def _priority_refused(
    service: ServiceClass, name: str, rules: Rules, why: str = ""
) -> ServiceError:
    allowed = service.priority_classes or frozenset()
    ordered = [p.name for p in rules.priority_classes if p.name in allowed]
    return ServiceError(
        "priority_class_not_allowed",
        f"Persona {service.persona} may not use the priority class {name}{why}.",
        f"Use {any_of(ordered)}.",
        field="priority_class",
    )


def _class_faults(observed: Sighting, service: ServiceClass) -> Iterator[ServiceError]:
    """Named ones all have to be given; of others it is enough that one is."""
    given, classes = service.gpu_classes, observed.gpu_classes
    if given is None or not observed.gpus or not classes:
        return
    wrong = [name for name in classes if name not in given]
    if not wrong or (not observed.names_classes and len(wrong) < len(classes)):
        return
    yield ServiceError(
        "gpu_class_not_allowed",
        f"Persona {service.persona} may not use the GPU class {wrong[0]}.",
        f"Use {any_of(sorted(given))}.",
        field="gpu_classes",
    )


def _size_faults(observed: Sighting, service: ServiceClass) -> Iterator[ServiceError]:
    """The limit on all of its user's work is one on each of it: what is above it alone could never start."""
    need, remedy = (
        observed.gpus * observed.max_members,
        "Ask for fewer GPUs per pod or fewer pods.",
    )
    bounds = (
        ("too_many_gpus", service.max_gpus, "may ask for"),
        ("too_many_gpus_at_once", service.max_gpus_at_once, "may hold at once"),
    )
    for code, most, may in bounds:
        if most is not None and need > most:
            gpus, limit = gpus_in_words(need), f"{most / MILLI:g}"
            sentence = f"{gpus} {are(need)} more than the {limit} persona {service.persona} {may}."
            yield ServiceError(code, sentence, remedy, field="gpus_per_pod")
            return


def _run_time_faults(observed: Sighting, service: ServiceClass) -> Iterator[ServiceError]:
    most, limit = service.max_run_time_s, observed.run_time_limit_s
    if most is None or (limit is not None and limit <= most):
        return
    if limit is None:
        sentence = f"Persona {service.persona} needs a run-time limit."
    else:
        sentence = f"It may run longer than the {span(most)} of persona {service.persona}."
    yield ServiceError(
        "run_time_too_long",
        sentence,
        f"Set a limit of at most {span(most)}. A kind without a field for it takes the annotation"
        f" {labels.RUN_TIME_LIMIT}.",
        field="run_time_limit",
    )


def any_of(names: Sequence[str]) -> str:
    """'a, b or c'."""
    return ", ".join(names[:-1]) + (" or " if len(names) > 1 else "") + names[-1] if names else "-"


def judge_kept(work: Workload, rules: Rules) -> Judgement:
    """Of a workload as its row keeps it; of its GPU classes it is enough that one is given."""
    priority = work.priority_class
    observed = Sighting(
        uid=work.uid,
        kind="",
        namespace=work.namespace,
        name=work.name,
        generation=0,
        queue_label=work.queue_label,
        user=work.user,
        priority_class=priority.name if priority else "",
        gpus=work.gpus,
        cpus=work.cpus,
        memory_mib=work.memory_mib,
        min_members=work.min_members,
        max_members=work.max_members,
        members=work.members,
        gpu_classes=tuple(work.gpu_classes),
        created=work.submitted_at,
        run_time_limit_s=work.run_time_limit_s,
    )
    return judge(observed, work.queue.path if work.queue else "", rules)
