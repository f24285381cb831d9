"""The personas that every installation begins with. An admin may change or remove each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from portal.accounts.capabilities import ALL, MEANINGS, OWN, SUBTREE, TEAM, Capability, ordered
from portal.accounts.models import Persona
from scheduling.models import MILLI, PriorityClass

C = Capability
HOUR_S = 3600
MEMBER = {C.SUBMIT: TEAM, C.ACT: OWN, C.SEE: TEAM, C.ASK: TEAM, C.COSTS: OWN}
"""A person who submits sees the whole team's work: the sentence that says why one's own waits names
others'."""
READER = {C.SEE: ALL, C.COSTS: ALL, C.AUDIT: ALL}


@dataclass(frozen=True, slots=True)
class ShippedPersona:
    """``highest``: the value of the highest priority class that is given; None is every class."""

    name: str
    grants: Mapping[Capability, str]
    highest: int | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


SHIPPED = (
    ShippedPersona(
        "researcher",
        MEMBER,
        highest=50,
        fields={
            "max_gpus_per_workload": 16 * MILLI,
            "max_gpus_at_once": 48 * MILLI,
            "max_run_time_s": 24 * HOUR_S,
            "preemptible_only": True,
        },
    ),
    ShippedPersona(
        "data scientist",
        MEMBER,
        highest=80,
        fields={
            "max_gpus_per_workload": 32 * MILLI,
            "max_gpus_at_once": 64 * MILLI,
            "max_run_time_s": 72 * HOUR_S,
            "preemptible_only": True,
        },
    ),
    ShippedPersona(
        "service owner",
        {**MEMBER, C.COSTS: TEAM},
        fields={
            "max_gpus_per_workload": 16 * MILLI,
            "max_gpus_at_once": 40 * MILLI,
            "interactive": False,
        },
    ),
    ShippedPersona(
        "team lead",
        {
            C.ACT: SUBTREE,
            C.SEE: SUBTREE,
            C.ASK: SUBTREE,
            C.EDIT_QUOTAS: SUBTREE,
            C.LEND: SUBTREE,
            C.APPROVE: SUBTREE,
            C.MEMBERS: SUBTREE,
            C.COSTS: SUBTREE,
            C.AUDIT: SUBTREE,
        },
        fields={"approves_gpus": 3 * MILLI},
    ),
    ShippedPersona("approver", {**READER, C.APPROVE: ALL}),
    ShippedPersona("operator", {C.ACT: ALL, C.SEE: ALL, C.AUDIT: ALL, C.OPERATE: ALL}),
    ShippedPersona("finance", READER),
    ShippedPersona("admin", {name: ALL for name in MEANINGS if name not in (C.SUBMIT, C.ASK)}),
)

PRIORITY_CLASSES = (
    # name, value, preemptible, min run time in seconds, type, default
    ("service", 100, False, 0, "inference", False),
    ("high", 80, True, 2 * HOUR_S, "training", False),
    ("interactive", 50, True, 600, "interactive", False),
    ("normal", 40, True, 2 * HOUR_S, "training", True),
    ("low", 10, True, 1800, "training", False),
)


def ensure_priority_classes() -> None:
    """The shipped ones, in an installation that has none."""
    if PriorityClass.objects.exists():
        return
    PriorityClass.objects.bulk_create(
        PriorityClass(
            name=name,
            value=value,
            preemptible=preemptible,
            min_run_time_s=least,
            type=kind,
            is_default=default,
        )
        for name, value, preemptible, least, kind, default in PRIORITY_CLASSES
    )


def ensure_personas(**changed: Mapping[str, Any]) -> dict[str, Persona]:
    """Every shipped persona by its name, those that are missing made.

    ``changed`` holds fields that one is made with instead, by its name with '_' for a space; the priority
    classes that exist now are those that ``highest`` is measured by.
    """
    return {spec.name: _ensure(spec, changed.get(spec.name.replace(" ", "_"))) for spec in SHIPPED}


def _ensure(spec: ShippedPersona, changed: Mapping[str, Any] | None) -> Persona:
    fields = {"grants": ordered(spec.grants), **(spec.fields if changed is None else changed)}
    persona, made = Persona.objects.get_or_create(name=spec.name, defaults=fields)
    if made and spec.highest is not None and changed is None:
        persona.priority_classes.set(PriorityClass.objects.filter(value__lte=spec.highest))
    return persona
