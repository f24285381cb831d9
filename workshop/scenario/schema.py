"""The scenario document as pydantic reads it: keys, types, ranges and defaults."""

from __future__ import annotations

from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from scheduling.engine.document.schema import Name
from scheduling.simulation.run.jobs import CHECKPOINT_S

from .model import Rhythm

MOST_GPUS, MOST_MEMBERS, MOST_REPLICAS = 1_024, 4_096, 1_000
MOST_S = 365 * 86_400
"""With these a gang and its GPU-seconds stay countable; how much work is drawn is bounded in ``played``."""


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ValueError("a time zone, as Europe/Berlin") from None
    return value


Weight = Annotated[float, Field(gt=0, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Gpus = Annotated[int, Field(ge=1, le=MOST_GPUS)]
Seconds = Annotated[int, Field(ge=1, le=MOST_S)]
Beat = Annotated[Rhythm, Field(strict=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SizeDoc(_Strict):
    """``most`` makes the gang elastic."""

    members: Annotated[int, Field(ge=1, le=MOST_MEMBERS)] = 1
    most: Annotated[int, Field(ge=1, le=MOST_MEMBERS)] | None = None
    gpus: Gpus
    weight: Weight = 1.0


class RunTimeDoc(_Strict):
    median_s: Seconds
    sigma: Annotated[float, Field(ge=0, le=5)]
    least_s: Seconds = 60
    most_s: Seconds = 7 * 86_400


class SweepDoc(_Strict):
    chance: Share
    fewest: Annotated[int, Field(ge=1, le=1_000)]
    most: Annotated[int, Field(ge=1, le=1_000)]


class KindDoc(_Strict):
    name: Name
    stems: Annotated[list[Name], Field(min_length=1)]
    priority_classes: Annotated[dict[str, Weight], Field(min_length=1)]
    run_time: RunTimeDoc
    sizes: Annotated[list[SizeDoc], Field(min_length=1)]
    gpu_classes: Annotated[list[Name], Field(min_length=1)]
    rhythm: Beat = Rhythm.OFFICE
    checkpoint_s: Seconds | None = CHECKPOINT_S
    sweep: SweepDoc | None = None
    failing: Share = 0.0
    cancelled: Share = 0.0


class SourceDoc(_Strict):
    queue: Name
    users: Annotated[list[Name], Field(min_length=1)]
    demand: Annotated[dict[str, Weight], Field(min_length=1)]
    kinds: Annotated[dict[str, Weight], Field(min_length=1)]
    fallback: dict[str, list[Name]] = {}


class ServiceDoc(_Strict):
    name: Name
    queue: Name
    user: Name
    priority_class: Name
    gpu_class: Name
    gpus: Gpus = 1
    least: Annotated[int, Field(ge=0, le=MOST_REPLICAS)]
    most: Annotated[int, Field(ge=1, le=MOST_REPLICAS)]
    rhythm: Beat = Rhythm.OFFICE
    noise: Annotated[float, Field(ge=0, le=2)] = 0.0


class ScenarioDoc(_Strict):
    """``cluster`` is a snapshot document; its ``now`` is when the scenario begins."""

    cluster: dict[str, Any]
    zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    load: Annotated[float, Field(ge=0, le=10)] = 0.9
    kinds: list[KindDoc] = []
    sources: list[SourceDoc] = []
    services: list[ServiceDoc] = []
