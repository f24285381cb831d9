"""The parameters that follow feedback: bounds, step, and the field of the policy by which each is set.

A further one is one more row of ``PARAMETERS``. One without a field is listed with the reason why it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.policy.knobs import BY_FIELD

HOUR_S, DAY_S = 3600, 86400
Value = float | int | str


@dataclass(frozen=True, slots=True)
class Parameter:
    """``least``, ``most`` and ``step`` in seconds; of a choice ``choices`` from one end to the other."""

    name: str
    title: str
    meaning: str
    field: str = ""
    """Of the policy; "" where nothing can move."""
    least: int = 0
    most: int = 0
    step: int = 0
    unit_s: int = 1
    """The unit in which people read it, in seconds."""
    unit: str = ""
    choices: tuple[str, ...] = ()
    stands: str = ""
    """What it is, where it has no field."""

    @property
    def moves(self) -> bool:
        return bool(self.field)

    @property
    def shipped(self) -> Value | None:
        return BY_FIELD[self.field].default if self.field else None

    def value_of(self, cluster: Cluster) -> Value | None:
        return getattr(cluster, self.field) if self.field else None

    def beside(self, value: Value) -> tuple[Value, ...]:
        """One step either way, inside the bounds: none where it stands alone."""
        if self.choices:
            at = self.choices.index(str(value))
            return tuple(self.choices[i] for i in (at - 1, at + 1) if 0 <= i < len(self.choices))
        now = int(value)
        both = (min(self.most, now - self.step), max(self.least, now + self.step))
        return tuple(one for one in both if self.least <= one <= self.most and one != now)

    def told(self, value: Value | None) -> str:
        """604800 -> '7 d'; what is between two units to a tenth."""
        if value is None:
            return self.stands
        if isinstance(value, str):
            return value
        return f"{value / self.unit_s:.1f}".removesuffix(".0") + f" {self.unit}"


PARAMETERS = (
    Parameter(
        "half_life",
        "Half-life of use",
        "What a user or a queue has used counts half after so long.",
        field="usage_half_life_s",
        least=2 * DAY_S,
        most=14 * DAY_S,
        step=DAY_S,
        unit_s=DAY_S,
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
        unit_s=HOUR_S,
        unit="h",
    ),
    Parameter(
        "backfill",
        "Quantile for backfill",
        "Fixed: of a run time the model tells P50 and P90 and nothing between, and backfill reads the P90.",
        stands="P90",
    ),
    Parameter(
        "packing",
        "Packing against spread",
        "Whether nodes are filled or the load is spread; what packing weighs follows the demand and has no"
        " setting.",
        field="placement",
        choices=("spread", "pack"),
    ),
    Parameter(
        "charge",
        "Charge of a start",
        "A start counts as use for so long at once.",
        field="charge_s",
        least=HOUR_S // 2,
        most=3 * HOUR_S,
        step=HOUR_S // 2,
        unit_s=HOUR_S,
        unit="h",
    ),
)
BY_NAME = {one.name: one for one in PARAMETERS}
MOVING = tuple(one for one in PARAMETERS if one.moves)


def parameter_of(name: str) -> Parameter:
    """Raises ServiceError for one that there is not, or that cannot move."""
    found = BY_NAME.get(name)
    if found is None or not found.moves:
        names = ", ".join(one.name for one in MOVING)
        raise ServiceError(
            "unknown_parameter", f"No parameter {name} adapts.", f"Use one of {names}.", field="name"
        )  # fmt: skip
    return found


def changes(parameter: Parameter, value: Value) -> list[dict[str, Any]]:
    """What a variant of the lab changes to have it."""
    return [{"kind": "policy", "setting": parameter.field, "value": value}]
