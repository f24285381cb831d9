"""What moving work together would free, by the engine's own plan."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from scheduling.engine import model as m
from scheduling.services.clusters.consolidation import freed
from scheduling.services.explain import asking
from tests.scheduling.kube import World

G = m.MILLI
NOW = datetime(2026, 11, 19, 9, 42, tzinfo=UTC)
START = NOW - timedelta(hours=3)


def job(name: str, node: str, gpus: int, **more: object) -> m.Workload:
    fields = {
        "queue": "a", "priority_class": "train", "submitted": START, "gpus": gpus * G,
        "phase": m.Phase.RUNNING, "started": START, "gpu_class": "h100", "placement": {node: 1},
    }  # fmt: skip
    return m.Workload(name, **(fields | more))  # type: ignore[arg-type]


def cluster(*work: m.Workload, nodes: int = 2, nominal: int = 4) -> m.Snapshot:
    return m.Snapshot(
        now=NOW,
        gpu_classes=(m.GpuClass("h100"),),
        nodes=tuple(m.Node(f"n{i}", "h100", 8 * G) for i in range(1, nodes + 1)),
        queues=(m.Queue("a", quotas={"h100": m.Quota(nominal * G)}), m.Queue("b")),
        priority_classes=(
            m.PriorityClass("train", 50),
            m.PriorityClass("fixed", 50, preemptible=False),
        ),
        workloads=work,
    )


def test_scattered_work_moves_together_and_frees_a_node():
    found = freed(cluster(job("w1", "n1", 6), job("w2", "n2", 2)), "h100", 1)
    [move] = found.moves
    assert (move.workload, move.origin, move.target) == ("w2", {"n2": 1}, {"n1": 1})
    assert found.becomes_whole == ("n2",)
    assert not found.is_short


def test_loss_counts_from_the_last_checkpoint():
    saved = {"checkpointed": NOW - timedelta(minutes=30)}
    found = freed(cluster(job("w1", "n1", 6), job("w2", "n2", 2, **saved)), "h100", 1)
    assert found.lost_gpu_s == 2 * 1800


def test_nobody_is_evicted_however_far_above_its_nominal():
    full = cluster(job("w1", "n1", 8), job("w2", "n2", 8), nominal=0)
    found = freed(full, "h100", 1)
    assert found.moves == ()
    assert found.is_short


def test_work_that_may_not_be_interrupted_stays():
    stuck = {"priority_class": "fixed"}
    found = freed(cluster(job("w1", "n1", 6, **stuck), job("w2", "n2", 6, **stuck)), "h100", 1)
    assert found.moves == ()


def test_group_of_plain_pods_stays():
    both = (job("x/podgroup/w1", "n1", 4), job("x/podgroup/w2", "n2", 4))
    assert freed(cluster(*both), "h100", 1).moves == ()


def test_node_that_is_whole_already_is_not_counted_as_freed():
    found = freed(cluster(job("w1", "n1", 6), job("w2", "n2", 2), nodes=3), "h100", 1)
    assert found.whole == ("n3",)
    assert found.becomes_whole == ("n2",)


def test_more_than_moves_can_give_is_said_to_be_short():
    found = freed(cluster(job("w1", "n1", 6), job("w2", "n2", 2)), "h100", 2)
    assert (found.moves, found.free, found.needed) == ((), 8 * G, 16 * G)


def test_who_starts_after_the_moves_is_told():
    waits = job("big", "", 8, phase=m.Phase.PENDING, started=None, gpu_class=None, placement={})
    found = freed(cluster(job("w1", "n1", 6), job("w2", "n2", 2), waits, nominal=16), "h100", 1)
    assert found.starts == ("big",)


def test_live_cluster_is_asked(world: World) -> None:
    found = asking.freed(world.cluster, "h100", 1)
    assert (found.whole, found.moves) == (("n1", "n2"), ())
