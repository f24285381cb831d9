import pytest

from scheduling.models import Cycle, Decision, Eviction, Workload
from tests.cycles import record, snapshot_of
from tests.factories import NOW

RUNS = tuple(f"pretraining-run-{i}" for i in range(1, 5))
"""The first is not preemptible; the last started last."""


@pytest.fixture
def passed(cluster):
    """The newest cycle with its record and decisions: pretraining-run-4 leaves for alignment-new."""
    cycle = Cycle.objects.get()
    space = {w.name: w.namespace for w in Workload.objects.filter(name__in=RUNS)}
    runs = tuple(f"{space[name]}/{name}" for name in RUNS)
    snapshot = snapshot_of(
        NOW, "h100-80gb", borrower="pretraining", owner="alignment", runs=runs, waits="ns/new"
    )
    Cycle.objects.filter(pk=cycle.pk).update(admitted=0, evicted=1, pending=1, running=4)
    victim = Workload.objects.get(name="pretraining-run-4")
    winner = Workload.objects.get(name="alignment-run-1")
    common = {"cycle": cycle, "gpu_class": victim.gpu_class, "for_workload": winner}
    Decision.objects.create(
        workload=victim, action="evict", reason="reclaimed", numbers={"lost_gpu_s": 28800.0},
        sentence="pretraining held 32 h100-80gb, 16 above its fair share of 16.", sealed={}, **common,
    )  # fmt: skip
    Eviction.objects.filter(workload__name="pt-13b-ctx32k").update(cycle=cycle)
    record(cycle, snapshot)
    return cycle
