"""The class of service that personas give to the members of teams, as the engine's worker asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.accounts.models import Persona
from portal.teams.models import Membership, Team
from scheduling.models import Cluster, PriorityClass
from scheduling.services.policy.service_classes import ServiceClass, ServiceClasses


def service_classes(cluster: Cluster) -> ServiceClasses:
    """Of everybody who may submit to a queue of ``cluster``; who is not active has none."""
    members = Membership.objects.filter(
        team__queue__cluster=cluster, persona__may_submit=True, user__is_active=True
    )
    columns = ("user__username", "team__queue__path", "team__name", "persona_id")
    grants = _grants(cluster)
    teams = Team.objects.filter(queue__cluster=cluster)
    return ServiceClasses(
        held=tuple(
            ServiceClass(user, path, team, **grants[persona])
            for user, path, team, persona in members.order_by("pk").values_list(*columns)
        ),
        team_paths=frozenset(teams.values_list("queue__path", flat=True)),
    )


def _grants(cluster: Cluster) -> Mapping[int, dict[str, Any]]:
    """Persona -> what it gives besides a place, as fields of a ServiceClass."""
    every = list(PriorityClass.objects.all())
    personas = Persona.objects.filter(may_submit=True).prefetch_related(
        "priority_classes", "gpu_classes"
    )
    return {persona.pk: _grant(persona, cluster, every) for persona in personas}


def _grant(persona: Persona, cluster: Cluster, every: list[PriorityClass]) -> dict[str, Any]:
    named = list(persona.priority_classes.all())
    allowed = [c for c in named or every if c.preemptible or not persona.preemptible_only]
    bounded = bool(named) or persona.preemptible_only
    # Classes of other clusters alone are no class of this one, not every one.
    gpu_classes = [c.name for c in persona.gpu_classes.all() if c.cluster_id == cluster.pk]
    return {
        "persona": persona.name,
        "priority_classes": frozenset(c.name for c in allowed) if bounded else None,
        "gpu_classes": frozenset(gpu_classes) if persona.gpu_classes.all() else None,
        "max_gpus": persona.max_gpus_per_workload,
        "max_run_time_s": persona.max_run_time_s,
    }
