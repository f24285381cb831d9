"""Readings of GPUs in the names of each vendor's exporter, put together by pod.

Of a vendor's series of activity (of NVIDIA's: share of time and of multiprocessors in which a warp was
assigned) the first that there is counts; a cluster may name a recording rule of its own instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduling.cluster.vocabulary import vendors
from scheduling.cluster.vocabulary.vendors import Metrics

from .prometheus import Prometheus, Series

PERCENT = ("GPU_UTIL", "_percent", "_pct")
"""How names end whose values are of a hundred, not of one."""
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
    rows = vendors.metrics()
    if not activity:
        return {pod: use for row in rows for pod, use in _pods(source, row.activity, [row]).items()}
    return _pods(source, (activity,), rows)


def _pods(source: Prometheus, names: Sequence[str], rows: Sequence[Metrics]) -> dict[Pod, PodUse]:
    """Each pod by the first of the series ``names`` that there is; memory and power as ``rows`` name them."""
    found, share = _activity(source, names)
    if not found:
        return {}
    labels = tuple(label for row in rows for label in row.device)
    used, free, power = (
        _by_device((s for name in kinds for s in source.query(name)), labels)
        for kinds in zip(*((row.used, row.free, row.power) for row in rows), strict=True)
    )
    by_pod: dict[Pod, list[tuple[Device, float]]] = {}
    for series in found:
        if pod := _pod_of(series.labels):
            value = min(1.0, max(0.0, series.value * share))
            by_pod.setdefault(pod, []).append((_device_of(series.labels, labels), value))
    return {pod: _use(devices, used, free, power) for pod, devices in by_pod.items()}


def _activity(source: Prometheus, names: Sequence[str]) -> tuple[list[Series], float]:
    """The series, and what their values are multiplied with to be shares."""
    for each in names:
        found = source.query(each)
        if found:
            return found, 0.01 if each.endswith(PERCENT) or _is_percent(each) else 1.0
    return [], 1.0


def _is_percent(name: str) -> bool:
    return any(name in row.percent for row in vendors.metrics())


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


def _by_device(found: Iterable[Series], names: Sequence[str]) -> dict[Device, float]:
    return {_device_of(series.labels, names): series.value for series in found}


def _device_of(labels: Mapping[str, str], names: Sequence[str]) -> Device:
    return tuple(labels.get(name, "") for name in names)


def _pod_of(labels: Mapping[str, str]) -> Pod | None:
    namespace, pod = (
        next((labels[name] for name in names if labels.get(name)), "") for names in (NAMESPACE, POD)
    )
    return (namespace, pod) if namespace and pod else None
