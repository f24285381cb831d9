"""Why a node takes no work, or less than it has: its conditions, its cordon, its taints, its devices.

What the kubelet and the node controller write of a node: kubernetes.io, "Node Status". Texts are theirs and
bounded here; times are theirs too, as RFC 3339.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from scheduling.cluster.vocabulary.quantities import milli

Json = dict[str, Any]

LONGEST: Final = 400
"""Characters of a message that are kept."""
NOT_READY: Final = "not_ready"
SILENT: Final = "silent"
CORDONED: Final = "cordoned"
TAINTED: Final = "tainted"
RESERVED: Final = "reserved"
UNHEALTHY: Final = "unhealthy_gpus"
NO_GPUS: Final = "no_gpus"
GONE: Final = "gone"

PRESSURES: Final[Mapping[str, str]] = {
    "DiskPressure": "disk_pressure",
    "MemoryPressure": "memory_pressure",
    "PIDPressure": "pid_pressure",
    "NetworkUnavailable": "network_unavailable",
}
"""Conditions that are bad when they hold."""
TAINT_OF: Final = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that keeps work away. ``since`` is when it began, for a silent kubelet when it last spoke;
    ``gpus`` are those (milli) that are announced and cannot be allocated."""

    code: str
    reason: str = ""
    message: str = ""
    since: str = ""
    gpus: int = 0

    def as_json(self) -> Json:
        """Without what it does not say."""
        return {name: value for name, value in asdict(self).items() if value}


def troubles_of(node: Json) -> tuple[Trouble, ...]:
    """Those of a trimmed node as a whole, the most telling first."""
    return (*_readiness(node), *_pressures(node), *_cordon(node))


def closed_by(
    taints: Iterable[tuple[str, str, str]], *, is_reserved: bool = False
) -> tuple[Trouble, ...]:
    """Those of taints (key, value, effect) that close a node to all work, or to all but some if ``kept``.

    Those that a cordon and the conditions bring with them say nothing more.
    """
    code = RESERVED if is_reserved else TAINTED
    remaining = sorted(t for t in taints if not t[0].startswith("node.kubernetes.io/"))
    return tuple(
        Trouble(code, f"{key}={value}" if value else key, effect)
        for key, value, effect in remaining
    )


def unhealthy(node: Json, resource: str) -> tuple[Trouble, ...]:
    """Devices of ``resource`` that the kubelet counts and does not hand out."""
    status = node["status"]
    whole = milli((status.get("capacity") or {}).get(resource, 0))
    lacking = whole - milli((status.get("allocatable") or {}).get(resource, 0))
    return (Trouble(UNHEALTHY, gpus=lacking),) if lacking > 0 else ()


def without_gpus(node: Json, resource: str) -> Trouble | None:
    """That it hands out none of ``resource``, though its kubelet counts or has counted some; else None.

    A kubelet keeps to name a resource whose device plugin went, at zero.
    """
    status = node["status"]
    allocatable, capacity = status.get("allocatable") or {}, status.get("capacity") or {}
    if milli(allocatable.get(resource, 0)) > 0 or resource not in {*allocatable, *capacity}:
        return None
    return Trouble(NO_GPUS, gpus=milli(capacity.get(resource, 0)))


def trim_conditions(conditions: Iterable[Json] | None) -> list[Json]:
    """What is read of them: how it stands with Ready, and what presses."""
    return [_trim(c) for c in conditions or () if c.get("type") == "Ready" or _presses(c)]


def trim_cordon(node: Json) -> Json:
    """The author and the time of ``unschedulable``, as far as the node's managed fields and its taint
    tell."""
    spec = node.get("spec") or {}
    if not spec.get("unschedulable"):
        return {}
    found = {}
    for entry in node["metadata"].get("managedFields") or ():
        if "f:unschedulable" in ((entry.get("fieldsV1") or {}).get("f:spec") or {}):
            found = {"by": str(entry.get("manager", ""))[:80], "since": entry.get("time", "")}
    added = [t.get("timeAdded") for t in spec.get("taints") or () if t.get("key") == TAINT_OF]
    return {**found, "since": next(filter(None, added), found.get("since", ""))}


def _trim(condition: Json) -> Json:
    # The heartbeat of one that speaks changes all the time, and says no more than that it does.
    time = "lastHeartbeatTime" if condition.get("status") == "Unknown" else "lastTransitionTime"
    return {
        "type": condition.get("type"),
        "status": condition.get("status"),
        "reason": str(condition.get("reason") or "")[:80],
        "message": str(condition.get("message") or "")[:LONGEST],
        "since": condition.get(time) or condition.get("lastTransitionTime") or "",
    }


def _presses(condition: Json) -> bool:
    return condition.get("type") in PRESSURES and condition.get("status") == "True"


def _readiness(node: Json) -> Iterator[Trouble]:
    found = [c for c in node["status"].get("conditions") or () if c.get("type") == "Ready"]
    if any(c.get("status") == "True" for c in found):
        return
    if not found:
        yield Trouble(SILENT, "NodeStatusNeverUpdated")
    for each in found:
        yield _trouble(SILENT if each.get("status") == "Unknown" else NOT_READY, each)


def _pressures(node: Json) -> Iterator[Trouble]:
    for each in node["status"].get("conditions") or ():
        if _presses(each):
            yield _trouble(PRESSURES[each["type"]], each)


def _cordon(node: Json) -> Iterator[Trouble]:
    if node["spec"].get("unschedulable"):
        cordon = node["spec"].get("cordon") or {}
        yield Trouble(CORDONED, str(cordon.get("by", "")), since=str(cordon.get("since", "")))


def _trouble(code: str, condition: Json) -> Trouble:
    return Trouble(
        code,
        str(condition.get("reason") or ""),
        str(condition.get("message") or ""),
        str(condition.get("since") or ""),
    )
