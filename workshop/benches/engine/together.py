"""Gangs on the 847 hosts of Alibaba's Lingjun cluster, whose switches are three levels of topology.

DSW, PSW and ASW are what the trace calls them, the widest first: hosts hang on the ASW
(alibaba/alibaba-lingjun-dataset-2023, topo.csv). Gangs of whole hosts arrive until the cluster is full;
what is compared is how many switches each spans: planned without topology, as preferred, and where one
switch is required; and how many keep their segments of four hosts (or two, or three) below one switch each.
"""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    """Of one plan: CPU seconds, gangs that started, their mean number of switches, how many of them left the
    domain that they require, and how many keep their segments, asked for or not.
    """

    cpu_s: float
    started: int
    switches: float
    outside: int
    segmented: int


def read_hosts(path: Path) -> list[m.Node]:
    """A node for each row, in the order of the file."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            m.Node(row["ip"][:12], "gpu", GPUS * m.MILLI, topology={k: row[k] for k in LEVELS})
            for row in csv.DictReader(file)
        ]


def in_segments(wish: m.Topology, hosts: int, rule: str) -> m.Topology:
    """With segments below one switch that are ``required`` or ``preferred``; without where neither."""
    size = segment_size(hosts)
    segments = {"required": m.Segment(size, "ASW"), "preferred": m.Segment(size, None, "ASW")}
    return replace(wish, segment=segments.get(rule))


def segment_size(hosts: int) -> int:
    """Hosts of a segment of a gang of so many."""
    return next(size for size in (4, 2, 3) if hosts % size == 0)


def arrivals(nodes: int, wish: m.Topology, seed: int, segments: str = "") -> Iterator[m.Workload]:
    """Gangs of whole hosts, as many as fill the cluster."""
    dice, left, number = np.random.default_rng(seed), nodes, 0
    while left > 0:
        hosts = int(dice.choice(SIZES))
        left -= hosts
        number += 1
        yield m.Workload(
            f"gang-{number:03}", "all", "train", NOW + timedelta(seconds=number), GPUS * m.MILLI,
            members=m.Members(hosts, hosts), topology=in_segments(wish, hosts, segments),
        )  # fmt: skip


def placed(hosts: list[m.Node], wish: m.Topology, seed: int, segments: str = "") -> Together:
    """One plan of the empty cluster, its tables included; kernels are loaded before."""
    frame = encode(_snapshot(hosts, wish, seed, segments))
    began_s = time.process_time()
    plan = plan_frame(frame)
    cpu_s = time.process_time() - began_s
    started = [d for d in decode(frame, plan).decisions if d.action is m.Action.ADMIT]
    spans = [_domains(hosts, one, "ASW") for one in started]
    required = wish.required
    outside = sum(_domains(hosts, one, required) > 1 for one in started) if required else 0
    segmented = sum(_keeps_segments(hosts, one) for one in started)
    return Together(cpu_s, len(started), float(np.mean(spans)), outside, segmented)


def _snapshot(hosts: list[m.Node], wish: m.Topology, seed: int, segments: str) -> Snapshot:
    works = tuple(arrivals(len(hosts), wish, seed, segments))
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
    return len(_by_domain(hosts, decision, level))


def _keeps_segments(hosts: list[m.Node], decision: m.Decision) -> bool:
    inside = _by_domain(hosts, decision, "ASW")
    return all(many % segment_size(decision.members) == 0 for many in inside.values())


def _by_domain(hosts: list[m.Node], decision: m.Decision, level: str) -> Counter[tuple[str, ...]]:
    """Its hosts by domain."""
    around = LEVELS[: LEVELS.index(level) + 1]
    by_name = {host.name: tuple(host.topology[name] for name in around) for host in hosts}
    return Counter(by_name[name] for name in decision.placement)
