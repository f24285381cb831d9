"""Readings of GPUs in the names of NVIDIA's DCGM exporter, put together by pod.

Names and units: https://docs.nvidia.com/datacenter/dcgm/latest/dcgm-api/dcgm-api-field-ids.html. Of SM
activity (share of time and of multiprocessors in which a warp was assigned) the first that there is counts;
a cluster may name a recording rule of its own instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .prometheus import Prometheus, Series

ACTIVITY = ("DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL")
PERCENT = ("GPU_UTIL", "_percent", "_pct")
"""How names end whose values are of a hundred, not of one."""
USED, FREE, POWER = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_POWER_USAGE"
"""MiB, MiB, W."""
DEVICE = ("Hostname", "instance", "UUID", "gpu", "GPU_I_ID")
NAMESPACE, POD = ("exported_namespace", "namespace"), ("exported_pod", "pod")
"""A scrape that does not honour labels calls those of the work ``exported_``."""

Pod = tuple[str, str]
"""Namespace and name."""
Device = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodUse:
    """Of ``devices`` GPUs or slices: mean activity (0 to 1), mean MiB used and there, watts in all."""

    devices: int
    activity: float
    memory_mib: float = 0.0
    memory_total_mib: float = 0.0
    power_w: float = 0.0


def read(source: Prometheus, activity: str = "") -> dict[Pod, PodUse]:
    """Each pod that has GPUs and is measured. Raises MetricsError.

    ``activity`` names the series of SM activity; without it the exporter's own are tried in turn.
    """
    found, share = _activity(source, activity)
    if not found:
        return {}
    used, free, power = (_by_device(source.query(name)) for name in (USED, FREE, POWER))
    by_pod: dict[Pod, list[tuple[Device, float]]] = {}
    for series in found:
        if pod := _pod_of(series.labels):
            value = min(1.0, max(0.0, series.value * share))
            by_pod.setdefault(pod, []).append((_device_of(series.labels), value))
    return {pod: _use(devices, used, free, power) for pod, devices in by_pod.items()}


def _activity(source: Prometheus, name: str) -> tuple[list[Series], float]:
    """The series, and what their values are multiplied with to be shares."""
    for each in (name,) if name else ACTIVITY:
        found = source.query(each)
        if found:
            return found, 0.01 if each.endswith(PERCENT) else 1.0
    return [], 1.0


def _use(
    devices: Iterable[tuple[Device, float]],
    used: Mapping[Device, float],
    free: Mapping[Device, float],
    power: Mapping[Device, float],
) -> PodUse:
    known = dict(devices)
    count = len(known)
    memory = sum(used.get(one, 0.0) for one in known)
    return PodUse(
        devices=count,
        activity=sum(known.values()) / count,
        memory_mib=memory / count,
        memory_total_mib=(memory + sum(free.get(one, 0.0) for one in known)) / count,
        power_w=sum(power.get(one, 0.0) for one in known),
    )


def _by_device(found: Iterable[Series]) -> dict[Device, float]:
    return {_device_of(series.labels): series.value for series in found}


def _device_of(labels: Mapping[str, str]) -> Device:
    return tuple(labels.get(name, "") for name in DEVICE)


def _pod_of(labels: Mapping[str, str]) -> Pod | None:
    namespace, pod = (
        next((labels[name] for name in names if labels.get(name)), "") for names in (NAMESPACE, POD)
    )
    return (namespace, pod) if namespace and pod else None
