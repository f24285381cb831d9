"""What somebody may give to others: nothing that they do not have themselves, over the same queue."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from portal.accounts.models import Persona, User
from portal.teams.access import is_operator, own_queues
from portal.teams.models import Membership, Team
from portal.teams.rights import FLAGS
from scheduling.models import Queue


def led_teams(user: User) -> QuerySet[Team]:
    """Teams whose service accounts the person looks after: those they divide quotas of, and below."""
    return Team.objects.filter(queue__in=own_queues(user, may_edit_quotas=True))


def handed_out(user: User, team: Team) -> list[Persona]:
    """Personas that ``user`` may give in ``team``, by name."""
    mine = None if _has_everything(user) else _held_over(user, team.queue)
    everything = Persona.objects.prefetch_related("priority_classes", "gpu_classes")
    return [
        persona
        for persona in everything
        if mine is None or any(_is_within(persona, held) for held in mine)
    ]


def may_hand_out(user: User, persona: Persona, team: Team) -> bool:
    return persona in handed_out(user, team)


def _has_everything(user: User) -> bool:
    return user.is_superuser or is_operator(user)


def _held_over(user: User, queue: Queue) -> list[Persona]:
    """The person's own personas in teams of this queue and of those above it."""
    memberships = Membership.objects.filter(user=user, team__queue__cluster=queue.cluster_id)
    found = memberships.select_related("persona", "team__queue").prefetch_related(
        "persona__priority_classes", "persona__gpu_classes"
    )
    return [m.persona for m in found if _is_at_or_below(queue.path, m.team.queue.path)]


def _is_at_or_below(path: str, top: str) -> bool:
    return top in ("", path) or path.startswith(f"{top}/")


def _is_within(persona: Persona, held: Persona) -> bool:
    """Whether ``persona`` gives nothing that ``held`` does not."""
    flags = all(getattr(held, flag) or not getattr(persona, flag) for flag in FLAGS)
    preemptible = persona.preemptible_only or not held.preemptible_only
    return (
        flags
        and preemptible
        and _is_less(persona.max_gpus_per_workload, held.max_gpus_per_workload)
        and _is_less(persona.max_run_time_s, held.max_run_time_s)
        and _is_part(persona.priority_classes.all(), held.priority_classes.all())
        and _is_part(persona.gpu_classes.all(), held.gpu_classes.all())
    )


def _is_less(asked: int | None, most: int | None) -> bool:
    """None is unlimited."""
    return most is None or (asked is not None and asked <= most)


def _is_part(asked: QuerySet[Any], held: QuerySet[Any]) -> bool:
    """Of classes; empty is every class."""
    return not held or (bool(asked) and set(asked) <= set(held))
