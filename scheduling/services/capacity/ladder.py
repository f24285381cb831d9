"""Which numbers of GPUs of a class a study tries: the class as it is, and whole nodes more and fewer.

A class of up to 16 nodes goes by single nodes, a larger one by about a sixteenth of them, so that the curve
reaches as far in proportion. The last node is never taken away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scheduling.engine import model as m
from scheduling.services.whatif.changes import Changes
from scheduling.services.whatif.kinds import CapacityChange
from scheduling.services.whatif.now import ready

STEPS = (-2, -1, 0, 1, 2, 3, 4)
"""Steps down and up from what there is."""
FINE = 16
"""Nodes of a class that are still stepped by one."""


@dataclass(frozen=True, slots=True)
class Rung:
    """``nodes`` more (fewer, negative) than there are, and the milli-GPU of the class then."""

    nodes: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Ladder:
    gpu_class: str
    node_gpus: int
    """Milli-GPU of the node that most are like; of equals the larger."""
    rungs: tuple[Rung, ...]

    @property
    def installed(self) -> int:
        return next(rung.gpus for rung in self.rungs if not rung.nodes)


def whole(snapshot: m.Snapshot) -> m.Snapshot:
    """``snapshot`` with every node ready and no work: what is installed, whoever is being repaired today."""
    nodes = tuple(replace(node, ready=True) for node in snapshot.nodes)
    return replace(snapshot, nodes=nodes, workloads=())


def ladders(template: m.Snapshot, steps: Iterable[int] = STEPS) -> tuple[Ladder, ...]:
    """Of each class of ``template`` that has nodes like which there could be more."""
    chosen = sorted({0, *steps})
    classes = (one.name for one in template.gpu_classes)
    return tuple(one for name in classes if (one := _ladder(template, name, chosen)))


def _ladder(template: m.Snapshot, gpu_class: str, steps: Sequence[int]) -> Ladder | None:
    nodes = [node for node in template.nodes if node.gpu_class == gpu_class and not node.dedicated]
    if not nodes:
        return None
    sizes = Counter(node.gpus for node in nodes)
    usual = max(sizes, key=lambda gpus: (sizes[gpus], gpus))
    step = max(1, round(len(nodes) / FINE))
    wanted = (step * one for one in steps)
    rungs = (_rung(template, gpu_class, count) for count in wanted if count > -len(nodes))
    return Ladder(gpu_class, usual, tuple(rungs))


def _rung(template: m.Snapshot, gpu_class: str, nodes: int) -> Rung:
    return Rung(nodes, ready(changed(template, gpu_class, nodes), gpu_class))


def changed(template: m.Snapshot, gpu_class: str, nodes: int) -> m.Snapshot:
    """``template`` with so many nodes of the class more or fewer."""
    if not nodes:
        return template
    return Changes((CapacityChange(gpu_class, nodes),)).applied(template)
