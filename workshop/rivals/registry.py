"""The rivals by name: what each does in a sentence, where that is written, and how to replay it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from scheduling.simulation.traces import Trace
from workshop.simulator.result import Replay

from .backfill import replay_backfill
from .costs import USUAL, Costs
from .kai import replay_kai
from .kueue import replay_kueue
from .native import replay_native
from .predicted_service import replay_predicted
from .preemptive import Preemption, Rank, replay_preemptive
from .qssf import replay_qssf
from .queues import Rival, replay_pooled

Run = Callable[[Trace, int, Costs], Replay]
"""All jobs of a trace on so many nodes. Raises TooLargeError."""

TIRESIAS_GPU_S = 18_000
"""What parts the two queues, and how often they are looked at: the evaluations of Pollux and Lucid."""
LOOKED_EVERY_S = 60


@dataclass(frozen=True, slots=True)
class Rule:
    """``knows``: it is told every run time beforehand, which nobody is; a limit, not a competitor."""

    name: str
    sentence: str
    source: str
    run: Run
    knows: bool = False


def _queue(rival: Rival) -> Run:
    return lambda trace, nodes, _costs: replay_pooled(trace, rival, nodes)


def _evicting(rule: Preemption) -> Run:
    return lambda trace, nodes, costs: replay_preemptive(trace, nodes, rule, costs)


def _backfilling(conservative: bool) -> Run:
    return lambda trace, nodes, costs: replay_backfill(trace, nodes, conservative, costs)


RULES: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "fifo",
            "By arrival; who is first and does not fit blocks all behind.",
            "Hu et al., SC 2021 (Helios), FIFO",
            _queue(Rival.FIFO),
        ),
        Rule(
            "fifo-skip",
            "By arrival; whoever fits starts, so large work may wait for ever.",
            "Feitelson and Rudolph, JSSPP 1995 (first fit)",
            _queue(Rival.FIFO_SKIP),
        ),
        Rule(
            "sjf",
            "Shortest known run time first; who is first and does not fit blocks all behind.",
            "Hu et al., SC 2021 (Helios), SJF",
            _queue(Rival.SJF),
            knows=True,
        ),
        Rule(
            "sjf-skip",
            "Shortest known run time first; whoever fits starts.",
            "Hu et al., SC 2021 (Helios), SJF",
            _queue(Rival.SJF_SKIP),
            knows=True,
        ),
        Rule(
            "easy",
            "By arrival; who is behind starts early if the first in line can start when it could before.",
            "Lifka, JSSPP 1995; Mu'alem and Feitelson, IEEE TPDS 12 (2001)",
            _backfilling(conservative=False),
        ),
        Rule(
            "conservative",
            "By arrival; everybody holds a reservation, and starts early only where that delays none.",
            "Mu'alem and Feitelson, IEEE TPDS 12 (2001)",
            _backfilling(conservative=True),
        ),
        Rule(
            "srtf",
            "Least known run time left runs, evicting whoever has more.",
            "Schrage, Operations Research 16 (1968)",
            _evicting(Preemption(Rank.REMAINING)),
            knows=True,
        ),
        Rule(
            "qssf",
            "Least GPUs x expected run time first, strict; expected is the real one with Helios' error.",
            "Hu et al., SC 2021 (Helios), QSSF",
            replay_qssf,
            knows=True,
        ),
        Rule(
            "predicted",
            "Least GPUs x median of the last 64 run times of queue and size first; whoever fits starts.",
            "Hu et al., SC 2021 (Helios), QSSF, with history for its estimator",
            replay_predicted,
        ),
        Rule(
            "tiresias",
            "Work with up to 18,000 GPU-s received goes before work with more, by arrival in each; evicts.",
            "Gu et al., NSDI 2019 (Tiresias), discretised two-dimensional LAS",
            _evicting(Preemption(Rank.ATTAINED, LOOKED_EVERY_S, TIRESIAS_GPU_S)),
        ),
        Rule(
            "gittins",
            "Least expected GPU-s per end first, from what of the same queue and size ended before; evicts.",
            "Gittins, JRSS B 41 (1979); Gu et al., NSDI 2019 (Tiresias), 2D-Gittins",
            _evicting(Preemption(Rank.GITTINS, LOOKED_EVERY_S)),
        ),
        Rule(
            "kueue",
            "The queue that borrows least for its weight goes first and evicts one with more; gangs whole.",
            "Kueue, KEP-1714 (fair sharing): fair_sharing_iterator.go, preemption/fair_strategy.go",
            replay_kueue,
        ),
        Rule(
            "kai",
            "What is deserved first, the rest by weight; who is within its fair share evicts who is not.",
            "KAI-Scheduler, plugin proportion (resource_division, queue_order, reclaimable), reclaim",
            replay_kai,
        ),
        Rule(
            "native",
            "Pods one by one by arrival to the freest node, with back-off; gangs hold GPUs while not whole.",
            "Kubernetes, kube-scheduler: PrioritySort, NodeResourcesFit (LeastAllocated), queueing",
            replay_native,
        ),
    )
}


def replay_rule(
    trace: Trace, rule: Rule, nodes: int | Mapping[str, int], costs: Costs = USUAL
) -> Replay:
    """``nodes`` pooled nodes, or by queue: each alone on its own. Raises TooLargeError; KeyError."""
    if isinstance(nodes, int):
        return rule.run(trace, nodes, costs)
    return each_alone(trace, lambda part, own: rule.run(part, own, costs), nodes)


def each_alone(
    trace: Trace, run: Callable[[Trace, int], Replay], queue_nodes: Mapping[str, int]
) -> Replay:
    """Each queue on its own nodes. Raises TooLargeError; KeyError for a queue without nodes."""
    table = np.zeros((4, len(trace)))
    for number, queue in enumerate(trace.queues):
        mine = np.flatnonzero(trace.queue == number)
        if len(mine):
            alone = run(trace.take(mine), queue_nodes[queue])
            table[:, mine] = alone.start_s, alone.end_s, alone.evictions, alone.lost_gpu_s
    start_s, end_s, evictions, lost_gpu_s = table
    return Replay.of(
        trace,
        start_s=start_s.astype(np.int64),
        end_s=end_s.astype(np.int64),
        capacity_gpus=sum(queue_nodes.values()) * trace.gpus_per_node,
        evictions=evictions.astype(np.int64),
        lost_gpu_s=lost_gpu_s,
    )
