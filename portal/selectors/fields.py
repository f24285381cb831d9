"""How figures stand in the API: GPUs as numbers of GPUs, money as text, instants as ISO 8601 UTC."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.boundary.reading import finite
from scheduling.models import MILLI

MAX_GPUS = 2_000_000
"""Keeps milli-GPU inside the database's 32-bit columns."""


class FiniteField(serializers.FloatField):
    """A number; 'NaN' and 'inf' are none, though Python reads them."""

    def to_internal_value(self, data: Any) -> float:
        return finite(super().to_internal_value(data))


@extend_schema_field({"type": "number", "format": "double", "description": "GPUs"})
class GpusField(FiniteField):
    """Milli-GPU in the database, a number of GPUs at the door, exact to a thousandth."""

    def __init__(self, **kwargs: Any) -> None:
        if not kwargs.get("read_only"):
            kwargs.setdefault("min_value", 0)
            kwargs.setdefault("max_value", MAX_GPUS)
        super().__init__(**kwargs)

    def to_representation(self, value: Any) -> Any:
        return gpus(value)

    def to_internal_value(self, data: Any) -> int:
        value = super().to_internal_value(data)
        super().run_validators(value)  # bounds are in GPUs, and hold before anything is multiplied
        return round(value * MILLI)

    def run_validators(self, value: float) -> None:
        """They ran on what the person wrote."""


@extend_schema_field({"type": "number", "format": "double", "description": "CPUs"})
class CpusField(GpusField):
    """The same of CPUs, which are counted in thousandths as well."""


@extend_schema_field({"type": "number", "format": "double", "description": "GPU-hours"})
class GpuHoursField(serializers.FloatField):
    """GPU-seconds in the database, GPU-hours at the door."""

    def to_representation(self, value: Any) -> Any:
        return round(value / 3600, 4)


def gpus(milli: float) -> float:
    """Milli-GPU as a number of GPUs.

    >>> gpus(8000), gpus(1500)
    (8.0, 1.5)
    """
    return round(milli / MILLI, 3)


def money(amount: Decimal) -> str:
    """Two decimals, as text: money is never a float."""
    return f"{amount:.2f}"
