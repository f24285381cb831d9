"""The GPUs of running pods as a Prometheus server that scrapes DCGM's exporter would tell them.

Of the query language it understands the name of a metric. What a pod does with its GPUs is drawn from its
annotation ``weir.dev/simulated-use``, "MEAN" or "MEAN:BUSY": mean SM activity, and the share of time in which
anything runs at all; ``weir.dev/simulated-memory`` is the share of the GPU's memory that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from workshop.testbed.server.kinds.clock import parse_stamp
from workshop.testbed.server.kinds.resources import NODES, PODS, Json
from workshop.testbed.server.kinds.use import BUSY_W, REST_W, activity_at, numbers_of
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Record

from .messages import Reply, Request, reply

PATH = "/prometheus/api/v1/query"
USE, MEMORY = "weir.dev/simulated-use", "weir.dev/simulated-memory"
MEMORY_LABEL = "nvidia.com/gpu.memory"
"""Of a node, MiB of each GPU, as GPU feature discovery writes it."""
MEMORY_MIB = 81_559
RESOURCE = "nvidia.com/"


@dataclass(frozen=True, slots=True)
class _Gpu:
    activity: float
    used_mib: float
    total_mib: float


METRICS: Mapping[str, Callable[[_Gpu], float]] = {
    "DCGM_FI_PROF_SM_ACTIVE": lambda gpu: gpu.activity,
    "DCGM_FI_DEV_FB_USED": lambda gpu: gpu.used_mib,
    "DCGM_FI_DEV_FB_FREE": lambda gpu: gpu.total_mib - gpu.used_mib,
    "DCGM_FI_DEV_POWER_USAGE": lambda gpu: REST_W + BUSY_W * gpu.activity,
}


def query(world: World, request: Request) -> Reply:
    """An instant vector; empty for a metric that there is not."""
    name = request.query.get("query", "")
    at = world.clock.seconds()
    found = list(_series(world, name, METRICS[name], at)) if name in METRICS else []
    return reply({"status": "success", "data": {"resultType": "vector", "result": found}})


def _series(world: World, name: str, value: Callable[[_Gpu], float], at: float) -> Iterator[Json]:
    with world.store.lock:
        pods = [pod for pod in world.store.listing(PODS) if _runs(pod)]
        nodes = {node.name: node for node in world.store.listing(NODES)}
    for pod in pods:
        node = nodes.get(pod.body["spec"]["nodeName"])
        gpu = _gpu(pod, node, at)
        for number in range(_count(pod)):
            labels = {
                "__name__": name, "Hostname": pod.body["spec"]["nodeName"], "gpu": str(number),
                "UUID": f"GPU-{pod.uid}-{number}", "namespace": pod.namespace, "pod": pod.name,
            }  # fmt: skip
            yield {"metric": labels, "value": [at, f"{value(gpu):.6g}"]}


def _runs(pod: Record) -> bool:
    status = pod.body.get("status") or {}
    return status.get("phase") == "Running" and bool(pod.body["spec"].get("nodeName"))


def _count(pod: Record) -> int:
    """GPUs, or slices, that its containers ask for."""
    limits = [
        (container.get("resources") or {}).get("limits") or {}
        for container in pod.body["spec"]["containers"]
    ]
    return sum(
        int(number) for each in limits for name, number in each.items() if name.startswith(RESOURCE)
    )


def _gpu(pod: Record, node: Record | None, at: float) -> _Gpu:
    meta = pod.body["metadata"]
    notes, labels = (
        meta.get("annotations") or {},
        (node.body["metadata"].get("labels") if node else {}),
    )
    total = float((labels or {}).get(MEMORY_LABEL) or MEMORY_MIB)
    use = numbers_of(notes.get(USE, ""), pod.uid)
    started = (pod.body.get("status") or {}).get("startTime")
    age_s = at - parse_stamp(started) if started else 0.0
    share = float(notes.get(MEMORY) or 0.5)
    return _Gpu(activity_at(use, pod.uid, at, age_s), share * total, total)
