"""All personas side by side: how far each capability reaches, and the class of service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db.models import Count
from django.utils import timezone

from portal.accounts.capabilities import MEANINGS, Capability
from portal.accounts.models import Persona, User
from portal.display.format import duration
from portal.teams.people import visible_personas
from portal.teams.shipped_personas import SHIPPED
from portal.teams.sight import visible_memberships
from scheduling.models import MILLI

NONE = "–"


@dataclass(frozen=True, slots=True)
class PersonaHead:
    persona: Persona
    people: int
    own: bool
    """Whether the person whom the table is about has it."""


@dataclass(frozen=True, slots=True)
class GrantRow:
    name: str
    cells: Sequence[tuple[str, bool]]
    """(words, whether the column is the person's own)"""


@dataclass(frozen=True, slots=True)
class Matrix:
    heads: Sequence[PersonaHead]
    groups: Sequence[tuple[str, Sequence[GrantRow]]]
    people: int
    memberships: int


def matrix(reader: User, about: User) -> Matrix:
    """Of the personas that ``reader`` sees, held by people of teams that they see; those of ``about`` are
    tinted. Five queries."""
    now = timezone.now()
    memberships = visible_memberships(reader).in_force(now).filter(user__is_active=True)
    counts = dict(
        memberships.order_by().values_list("persona").annotate(Count("user", distinct=True))
    )
    own = set(memberships.filter(user=about).values_list("persona", flat=True))
    rows = visible_personas(reader).prefetch_related("priority_classes", "gpu_classes")
    ranked = sorted(rows, key=_rank)
    heads = [PersonaHead(p, counts.get(p.pk, 0), p.pk in own) for p in ranked]
    people = memberships.order_by().values("user").distinct().count()
    return Matrix(heads, [*_capabilities(heads), _service(heads)], people, sum(counts.values()))


def _rank(persona: Persona) -> tuple[bool, int, str]:
    """Personas that submit before the others, the shipped ones in their order."""
    grants = persona.grants
    names = [spec.name for spec in SHIPPED]
    place = names.index(persona.name) if persona.name in names else len(names)
    return Capability.SUBMIT not in grants, place, persona.name


def _capabilities(heads: Sequence[PersonaHead]) -> list[tuple[str, list[GrantRow]]]:
    groups: dict[str, list[GrantRow]] = {}
    for capability, meaning in MEANINGS.items():
        cells = [(_reach(head.persona, capability), head.own) for head in heads]
        groups.setdefault(meaning.group, []).append(GrantRow(meaning.name, cells))
    return list(groups.items())


def _reach(persona: Persona, capability: Capability) -> str:
    reach = persona.grants.get(capability, NONE)
    most = persona.approves_gpus
    if capability == Capability.APPROVE and reach != NONE and most is not None:
        return f"{reach}, up to {most / MILLI:g}"
    return str(reach)


def _service(heads: Sequence[PersonaHead]) -> tuple[str, list[GrantRow]]:
    def row(name: str, of: Callable[[Persona], str]) -> GrantRow:
        submits = [Capability.SUBMIT in head.persona.grants for head in heads]
        return GrantRow(
            name,
            [
                (of(head.persona) if may else NONE, head.own)
                for head, may in zip(heads, submits, strict=True)
            ],
        )

    return "Class of service", [row(name, of) for name, of in SERVICE]


def _gpus(milli: int | None) -> str:
    return "any" if milli is None else f"{milli / MILLI:g}"


def _names(classes: list[str]) -> str:
    return ", ".join(classes) if classes else "every one"


SERVICE: Sequence[tuple[str, Callable[[Persona], str]]] = (
    ("Priority classes", lambda p: _names([c.name for c in p.priority_classes.all()])),
    ("GPU classes", lambda p: _names([c.name for c in p.gpu_classes.all()])),
    (
        "GPUs a workload, at once",
        lambda p: f"{_gpus(p.max_gpus_per_workload)}, {_gpus(p.max_gpus_at_once)}",
    ),
    (
        "Run-time limit",
        lambda p: "none" if p.max_run_time_s is None else duration(p.max_run_time_s),
    ),
    ("Above nominal", lambda p: "preemptible" if p.preemptible_only else "as its class says"),
    ("Interactive", lambda p: "yes" if p.interactive else "no"),
)
"""Line of the class of service -> its words."""
