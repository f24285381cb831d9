"""The parameters that follow feedback: bounds, step, and the field of the policy by which each is set.

A further one is one more row of ``PARAMETERS``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.queues.knobs import BY_FIELD, Knob

HOUR_S, DAY_S = 3600, 86400
Value = float | int
EXACT = 6
"""Decimals, so that steps there and back meet the same number."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """``least``, ``most`` and ``step`` are in the unit of the policy's field."""

    name: str
    title: str
    meaning: str
    field: str
    least: Value
    most: Value
    step: Value
    per_unit: float
    """How much of the field is one of the unit in which people read it."""
    unit: str = ""
    prefix: str = ""

    @property
    def knob(self) -> Knob:
        return BY_FIELD[self.field]

    @property
    def shipped(self) -> Value:
        default: Value = self.knob.default
        return default

    def value_of(self, cluster: Cluster) -> Value:
        value: Value = getattr(cluster, self.field)
        return value

    def beside(self, value: Value) -> tuple[Value, ...]:
        """One step either way, inside the bounds: none where it stands alone."""
        both = (min(self.most, value - self.step), max(self.least, value + self.step))
        return tuple(
            self._exact(one)
            for one in both
            if self.least <= self._exact(one) <= self.most and one != value
        )

    def _exact(self, value: Value) -> Value:
        return int(value) if self.knob.whole else round(value, EXACT)

    def in_words(self, value: Value) -> str:
        """604800 -> '7 d', 0.85 -> 'P85'; what is between two units to a tenth."""
        number = f"{value / self.per_unit:.1f}".removesuffix(".0")
        return f"{self.prefix}{number} {self.unit}".rstrip()


PARAMETERS = (
    Parameter(
        "half_life",
        "Half-life of use",
        "Use by a user or a queue counts half after so long.",
        field="usage_half_life_s",
        least=2 * DAY_S,
        most=14 * DAY_S,
        step=DAY_S,
        per_unit=DAY_S,
        unit="d",
    ),
    Parameter(
        "reservation",
        "Depth of reservation",
        "A gang has waited so long before it keeps nodes where nobody knows when running work ends; one gang"
        " of a class keeps them at a time, which is fixed.",
        field="reserve_after_s",
        least=6 * HOUR_S,
        most=48 * HOUR_S,
        step=6 * HOUR_S,
        per_unit=HOUR_S,
        unit="h",
    ),
    Parameter(
        "backfill",
        "Quantile for backfill",
        "Work passes a gang that keeps nodes or its turn if so large a part of runs like it is over in time.",
        field="backfill_quantile",
        least=0.5,
        most=0.95,
        step=0.05,
        per_unit=0.01,
        prefix="P",
    ),
    Parameter(
        "packing",
        "Packing against spread",
        "The weight of an even load against what a start takes from the demand; 0 fills nodes alone.",
        field="spread_weight",
        least=0,
        most=0.5,
        step=0.1,
        per_unit=0.01,
        unit="%",
    ),
    Parameter(
        "charge",
        "Charge of a start",
        "A start counts as use for so long at once.",
        field="charge_s",
        least=HOUR_S // 2,
        most=3 * HOUR_S,
        step=HOUR_S // 2,
        per_unit=HOUR_S,
        unit="h",
    ),
)
BY_NAME = {one.name: one for one in PARAMETERS}


def parameter_of(name: str) -> Parameter:
    """Raises ServiceError for one that there is not."""
    if name not in BY_NAME:
        names = ", ".join(BY_NAME)
        raise ServiceError(
            "unknown_parameter", f"No parameter {name} adapts.", f"Use one of {names}.", field="name"
        )  # fmt: skip
    return BY_NAME[name]


def changes(parameter: Parameter, value: Value) -> list[dict[str, Any]]:
    """What a variant of the lab changes to have it."""
    return [{"kind": "policy", "setting": parameter.field, "value": value}]
