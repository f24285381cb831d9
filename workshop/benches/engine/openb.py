"""Alibaba's GPU trace "openb" (cluster-trace-gpu-v2023): nodes, and lists of pods to place on them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from scheduling.simulation.traces.lines import Faults, read_lines, whole

NODES = "openb_node_list_gpu_node.csv"
LISTS = {
    name: f"openb_pod_list_{name}.csv"
    for name in (
        "default", "multigpu20", "gpuspec20", "gpushare40", "gpushare60", "cpu050", "cpu100", "cpu200",
    )
}  # fmt: skip

MOST = 1_000_000_000


@dataclass(frozen=True, slots=True)
class OpenbNode:
    """CPU in milli, memory in MiB; ``model`` is the GPU's."""

    name: str
    cpus: int
    memory_mib: int
    gpus: int
    model: str


@dataclass(frozen=True, slots=True)
class OpenbPod:
    """``gpus`` in milli-GPU over all GPUs of the pod; ``models`` empty is any."""

    name: str
    cpus: int
    memory_mib: int
    gpus: int
    models: tuple[str, ...]


def read_nodes(file: Path) -> list[OpenbNode]:
    """The nodes of ``file``. Raises TraceError with every fault."""
    nodes = []
    for row in _rows(file, ("sn", "cpu_milli", "memory_mib", "gpu", "model")):
        cpus, memory_mib, gpus = _numbers(row, "cpu_milli", "memory_mib", "gpu")
        nodes.append(OpenbNode(row["sn"], cpus, memory_mib, gpus, row["model"]))
    return nodes


def read_pods(file: Path) -> list[OpenbPod]:
    """The pods of ``file``, in its order. Raises TraceError with every fault."""
    pods = []
    for row in _rows(file, ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")):
        cpus, memory_mib, count, share = _numbers(
            row, "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"
        )
        models = tuple(sorted({m for m in row.get("gpu_spec", "").split("|") if m}))
        pods.append(OpenbPod(row["name"], cpus, memory_mib, count * share, models))
    return pods


def find_list(folder: Path, name: str) -> Path:
    """The file of a pod list, packed or not."""
    plain = folder / LISTS[name]
    return plain if plain.exists() else plain.with_name(plain.name + ".gz")


def _numbers(row: dict[str, str], *names: str) -> tuple[int, ...]:
    return tuple(int(row[name]) for name in names)


def _rows(file: Path, wanted: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows by column name; ``wanted`` must be there, and all of them but name and model be whole."""
    faults = Faults(file)
    rows: list[dict[str, str]] = []
    header: list[str] = []
    for number, line in read_lines(file, faults):
        cells = next(csv.reader([line]))
        if not header:
            header = cells
            if missing := [name for name in wanted if name not in header]:
                faults.fail(number, line, "columns " + ", ".join(missing))
            continue
        row = dict(zip(header, cells, strict=False))
        for name in wanted:
            if name in ("sn", "name", "model"):
                continue
            if whole(row.get(name, ""), 0, MOST) is None:
                faults.add(number, repr(row.get(name, "")[:60]), f"a whole number as {name}")
        rows.append(row)
    faults.raise_if_any()
    return rows
