"""FGD's protocol when the engine may move pods that are placed to make room for one that is refused.

Up to the first refusal nobody has a reason to move, so the pods sit where ``fragmentation`` has placed
them. From then on each arrival is planned by the whole engine, with one queue that owns every GPU: it
starts the pod, or moves others for it, or the pod is dropped.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import numpy as np

from scheduling.engine import codes
from scheduling.engine import model as m
from scheduling.engine.planner import plan_frame
from scheduling.engine.snapshot.encode import encode
from scheduling.engine.state.units import GPUS, RUNNING
from workshop.benches.engine.openb import OpenbNode, OpenbPod
from workshop.simulator.carry_out import carry_out

from .bound import most_allocated
from .fragmentation import Run, machines

MOST_MOVES = 4
"""For one pod; more would let few pods use up what all may."""


class MovingCluster:
    """A cluster that takes pods one by one; ``allowed`` moves in all, nodes named afresh by ``seed``."""

    def __init__(self, nodes: list[OpenbNode], pods: int, allowed: int, seed: int) -> None:
        self.frame = encode(_snapshot(nodes))
        self.frame.make_room(slots=pods + MOST_MOVES, holds=pods + MOST_MOVES)
        self.allowed, self.moves = allowed, 0
        self._dice = np.random.default_rng(seed)

    def seat(self, pod: OpenbPod, node: int, device: int) -> None:
        """The pod runs on this node (device -1: whole GPUs)."""
        slot = self._arrive(pod)
        self.frame.start_on(slot, int(self.frame.nodes.gpu_class[node]), [(node, device)])

    def offer(self, pod: OpenbPod) -> None:
        """The engine starts the pod, at once or after moves, or it is dropped. A pod for which more would
        have to move than is allowed in all is dropped as well.
        """
        slot = self._arrive(pod)
        for _ in range(2):  # moves, then the start they make room for
            self._dice.shuffle(self.frame.buffers.index.domains.name_rank)
            plan = plan_frame(self.frame)
            moves = len(plan.with_action(codes.MOVE))
            if self.moves + moves > self.allowed:
                break
            self.moves += moves
            carry_out(self.frame, plan)
            if self.frame.work.phase[slot] == RUNNING:
                return
        self.frame.finish(slot)

    def allocated_pct(self) -> float:
        work = self.frame.work
        given = work.need[GPUS, work.phase == RUNNING].sum()
        return float(100 * given / self.frame.nodes.capacity.sum())

    def _arrive(self, pod: OpenbPod) -> int:
        models = self.frame.class_names
        return self.frame.add_workload(
            queue=1, submitted=self.frame.now, gpus=pod.gpus, cpus=pod.cpus,
            memory_mib=pod.memory_mib, classes=[models.index(x) for x in pod.models or models],
        )  # fmt: skip


def _snapshot(nodes: list[OpenbNode]) -> m.Snapshot:
    """The empty nodes; nobody is shielded from a move, and one queue has quota for all."""
    classes, machine = machines(nodes)
    quotas = {
        c.name: m.Quota(sum(n.gpus for n in machine if n.gpu_class == c.name)) for c in classes
    }
    return m.Snapshot(
        now=datetime(2023, 1, 1, tzinfo=UTC),
        gpu_classes=classes,
        nodes=machine,
        queues=(m.Queue("all", quotas=quotas),),
        priority_classes=(m.PriorityClass("pod"),),
        policy=m.Policy(max_moves=MOST_MOVES, cooldown_s=0),
    )


def with_moves(nodes: list[OpenbNode], run: Run, allowed: int, seed: int) -> MovingCluster:
    """The cluster at the end of ``run``, had pods moved."""
    moving = MovingCluster(nodes, len(run.pods), allowed, seed)
    first = run.first_refused()
    for i, pod in enumerate(run.pods[:first]):
        moving.seat(pod, int(run.node[i]), int(run.device[i]))
    for pod in run.pods[first:]:
        moving.offer(pod)
    return moving


def bounds_pct(run: Run, gpus: int) -> tuple[float, float]:
    """What nobody can pass who gives ``gpus`` to these pods, in %: free to drop any, or with those kept
    that came before the first refusal.
    """
    demand = Counter(pod.gpus for pod in run.pods)
    early = Counter(pod.gpus for pod in run.pods[: run.first_refused()])
    share = 100 / m.MILLI / gpus
    return share * most_allocated(demand, {}, gpus), share * most_allocated(demand, early, gpus)
