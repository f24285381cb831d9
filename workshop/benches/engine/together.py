"""Gangs on the 847 hosts of Alibaba's Lingjun cluster, whose switches are three levels of topology.

DSW, PSW and ASW are what the trace calls them, the widest first: hosts hang on the ASW
(alibaba/alibaba-lingjun-dataset-2023, topo.csv). Gangs of whole hosts arrive until the cluster is full;
what is compared is how many switches each spans: planned without topology, as preferred, and where one
switch is required.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from scheduling.engine import Snapshot, decode, encode, plan_frame
from scheduling.engine import model as m

HOSTS = Path("lingjun") / "topo.csv"
LEVELS = ("DSW", "PSW", "ASW")
GPUS = 8
NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
SIZES = (2, 3, 4, 6, 8, 12, 16)
"""Hosts of a gang."""


@dataclass(frozen=True, slots=True)
class Together:
    """Of one plan: CPU seconds, gangs that started, their mean number of switches, and how many of them left
    the domain that they require."""

    cpu_s: float
    started: int
    switches: float
    outside: int


def read_hosts(path: Path) -> list[m.Node]:
    """A node for each row, in the order of the file."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            m.Node(row["ip"][:12], "gpu", GPUS * m.MILLI, topology={k: row[k] for k in LEVELS})
            for row in csv.DictReader(file)
        ]


def arrivals(nodes: int, wish: m.Topology, seed: int) -> Iterator[m.Workload]:
    """Gangs of whole hosts, as many as fill the cluster."""
    dice, left, number = np.random.default_rng(seed), nodes, 0
    while left > 0:
        hosts = int(dice.choice(SIZES))
        left -= hosts
        number += 1
        yield m.Workload(
            f"gang-{number:03}", "all", "train", NOW + timedelta(seconds=number), GPUS * m.MILLI,
            members=m.Members(hosts, hosts), topology=wish,
        )  # fmt: skip


def placed(hosts: list[m.Node], wish: m.Topology, seed: int) -> Together:
    """One plan of the empty cluster, its tables included; kernels are loaded before."""
    frame = encode(_snapshot(hosts, wish, seed))
    began_s = time.process_time()
    plan = plan_frame(frame)
    cpu_s = time.process_time() - began_s
    started = [d for d in decode(frame, plan).decisions if d.action is m.Action.ADMIT]
    spans = [_domains(hosts, one, "ASW") for one in started]
    required = wish.required
    outside = sum(_domains(hosts, one, required) > 1 for one in started) if required else 0
    return Together(cpu_s, len(started), float(np.mean(spans)), outside)


def _snapshot(hosts: list[m.Node], wish: m.Topology, seed: int) -> Snapshot:
    works = tuple(arrivals(len(hosts), wish, seed))
    return Snapshot(
        now=works[-1].submitted,
        gpu_classes=(m.GpuClass("gpu"),),
        nodes=tuple(hosts),
        queues=(m.Queue("all", quotas={"gpu": m.Quota(len(hosts) * GPUS * m.MILLI)}),),
        priority_classes=(m.PriorityClass("train"),),
        workloads=works,
        topology_levels=LEVELS,
    )


def _domains(hosts: list[m.Node], decision: m.Decision, level: str) -> int:
    around = LEVELS[: LEVELS.index(level) + 1]
    by_name = {host.name: tuple(host.topology[name] for name in around) for host in hosts}
    return len({by_name[name] for name in decision.placement})
