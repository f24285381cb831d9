"""The doors by which personas are made, edited and removed. For who administers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from portal.accounts.capabilities import Capability, faults, ordered
from portal.accounts.models import Persona, User
from portal.boundary.reading import one_line
from portal.teams.access import is_admin
from portal.teams.giving import check_admin_for_good
from portal.teams.memberships import administrators
from scheduling.models import MILLI, GpuClass, PriorityClass
from scheduling.services import events
from scheduling.services.errors import ServiceError


@dataclass(frozen=True, slots=True)
class PersonaValues:
    """All that a persona is. GPUs are milli-GPU; None is unlimited, an empty set of classes every one."""

    name: str
    grants: Mapping[str, str] = field(default_factory=dict)
    approves_gpus: int | None = None
    priority_classes: Iterable[PriorityClass] = ()
    gpu_classes: Iterable[GpuClass] = ()
    max_gpus_per_workload: int | None = None
    max_gpus_at_once: int | None = None
    max_run_time_s: int | None = None
    preemptible_only: bool = False
    interactive: bool = True


COLUMNS = (
    "name", "approves_gpus", "max_gpus_per_workload", "max_gpus_at_once", "max_run_time_s",
    "preemptible_only", "interactive",
)  # fmt: skip


@transaction.atomic
def save_persona(*, by: User, values: PersonaValues, persona: Persona | None = None) -> Persona:
    """Make a persona, or change one in place: its members have what it says from the next request on, and
    their work from the next cycle. Raises ServiceError at a field."""
    check_admin(by)
    check_admin_for_good(by)
    _check(values, persona)
    before = as_json(persona) if persona else {}
    found = persona or Persona()
    for column in COLUMNS:
        setattr(found, column, getattr(values, column))
    found.grants = ordered(values.grants)
    found.save()
    found.priority_classes.set(values.priority_classes)
    found.gpu_classes.set(values.gpu_classes)
    _keep_an_admin()
    after = as_json(found)
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    events.announce(
        "persona.changed" if persona else "persona.created",
        actor=by,
        subject=found.name,
        before={name: before.get(name) for name in changed},
        after={name: after.get(name) for name in changed},
    )
    return found


@transaction.atomic
def delete_persona(*, by: User, persona: Persona) -> None:
    """Raises ServiceError while somebody has it."""
    check_admin(by)
    holders = persona.memberships.count()
    if holders:
        raise ServiceError(
            "in_use",
            f"{holders} membership{'s have' if holders > 1 else ' has'} the persona {persona.name}.",
            "Give them another one first.",
        )
    events.announce("persona.deleted", actor=by, subject=persona.name, before=as_json(persona))
    persona.delete()


def check_admin(by: User) -> None:
    if not is_admin(by):
        raise ServiceError(
            "forbidden", "You may not do this.", "Ask somebody who administers the installation."
        )


def _check(values: PersonaValues, persona: Persona | None) -> None:
    try:
        one_line(values.name)
    except ValidationError as error:
        raise ServiceError(
            "bad_name", "That cannot be its name.", error.messages[0], field="name"
        ) from error
    if not values.name.strip() or len(values.name) > 63 or "/" in values.name:
        raise ServiceError(
            "bad_name",
            "A persona needs a name.",
            "Write up to 63 characters, no '/'.",
            field="name",
        )
    same = Persona.objects.filter(name=values.name)
    if (same.exclude(pk=persona.pk) if persona else same).exists():
        raise ServiceError(
            "name_taken", f"There is a persona {values.name}.", "Choose another name.", field="name"
        )
    for name, sentence in faults(values.grants):
        raise ServiceError("bad_grant", sentence, "Choose another reach.", field=f"grants.{name}")


def _keep_an_admin() -> None:
    """Raises ServiceError where nobody would be left who could undo it."""
    if not administrators().exists():
        raise ServiceError(
            "last_admin",
            "Nobody would be left who administers this installation.",
            "Give another person such a persona first.",
            field=f"grants.{Capability.ADMINISTER}",
        )


def as_json(persona: Persona) -> dict[str, Any]:
    """As events and the API tell it, GPUs as numbers of GPUs."""

    def gpus(milli: int | None) -> float | None:
        return None if milli is None else milli / MILLI

    return {
        "name": persona.name,
        **persona.grants,
        "approves_gpus": gpus(persona.approves_gpus),
        "max_gpus_per_workload": gpus(persona.max_gpus_per_workload),
        "max_gpus_at_once": gpus(persona.max_gpus_at_once),
        "max_run_time_s": persona.max_run_time_s,
        "preemptible_only": persona.preemptible_only,
        "interactive": persona.interactive,
        "priority_classes": sorted(c.name for c in persona.priority_classes.all()),
        "gpu_classes": sorted(c.name for c in persona.gpu_classes.all()),
    }
