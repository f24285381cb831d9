"""The class of service that personas give to the members of teams, as the engine's worker asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from portal.accounts.capabilities import Capability, Reach
from portal.accounts.models import Persona
from portal.teams.models import Membership, Team
from scheduling.models import Cluster, PriorityClass, WorkloadType
from scheduling.services.queues.service_classes import ServiceClass, ServiceClasses
from scheduling.services.tables.row_cache import RowCache


def service_classes(cluster: Cluster, unchanged: RowCache) -> ServiceClasses:
    """Of everybody who may submit to a queue of ``cluster``; whoever is not active has none."""

    def members_at(at: datetime) -> QuerySet[Membership, Any]:
        members = Membership.objects.in_force(at).filter(
            team__queue__cluster=cluster, persona__in=_submitting(), user__is_active=True
        )
        columns = ("user__username", "team__queue__path", "team__name", "persona_id")
        return members.order_by("pk").values_list(*columns)

    def paths() -> QuerySet[Team, str]:
        return Team.objects.filter(queue__cluster=cluster).values_list("queue__path", flat=True)

    members = unchanged.steady_at("members", cluster.pk, timezone.now(), members_at)
    bound = unchanged.steady("teams", cluster.pk, paths)
    given = _given(unchanged)

    def make() -> ServiceClasses:
        # A persona may lose its right to submit between the two readings.
        grants = _grants(cluster)
        classes = [ServiceClass(*at, **grants[by]) for *at, by in members if by in grants]
        return ServiceClasses(tuple(classes), frozenset(bound))

    return unchanged.once("service classes", (members, bound, given), make)


def _given(unchanged: RowCache) -> tuple[object, ...]:
    """All rows that say what personas give, as plain values."""
    priorities, classes = Persona.priority_classes.through, Persona.gpu_classes.through
    of_class = ("persona_id", "gpuclass__name", "gpuclass__cluster_id")
    return (
        unchanged.steady("personas", None, lambda: _submitting().values_list()),
        unchanged.steady("their priorities", None, priorities.objects.values_list),
        unchanged.steady("their classes", None, lambda: classes.objects.values_list(*of_class)),
        unchanged.steady("kinds of priority", None, PriorityClass.objects.values_list),
    )


def _grants(cluster: Cluster) -> Mapping[int, dict[str, Any]]:
    """Persona -> what it gives besides a place, as fields of a ServiceClass."""
    every = list(PriorityClass.objects.all())
    personas = _submitting().prefetch_related("priority_classes", "gpu_classes")
    return {persona.pk: grant_of(persona, cluster, every) for persona in personas}


def _submitting() -> QuerySet[Persona]:
    return Persona.objects.filter(grants__has_key=Capability.SUBMIT.value)


def grant_of(persona: Persona, cluster: Cluster, every: list[PriorityClass]) -> dict[str, Any]:
    """The class of service of ``persona`` on ``cluster``, as fields of a ServiceClass."""
    named = list(persona.priority_classes.all())
    allowed = [c for c in named or every if _is_open(persona, c)]
    bounded = bool(named) or persona.preemptible_only or not persona.interactive
    # Classes of other clusters alone are no class of this one, not every one.
    gpu_classes = [c.name for c in persona.gpu_classes.all() if c.cluster_id == cluster.pk]
    return {
        "persona": persona.name,
        "below": persona.grants.get(Capability.SUBMIT) != Reach.TEAM,
        "priority_classes": frozenset(c.name for c in allowed) if bounded else None,
        "gpu_classes": frozenset(gpu_classes) if persona.gpu_classes.all() else None,
        "max_gpus": persona.max_gpus_per_workload,
        "max_gpus_at_once": persona.max_gpus_at_once,
        "max_run_time_s": persona.max_run_time_s,
    }


def _is_open(persona: Persona, priority: PriorityClass) -> bool:
    if priority.type == WorkloadType.INTERACTIVE and not persona.interactive:
        return False
    return priority.preemptible or not persona.preemptible_only
