"""A step by true replays: a small cluster whose shipped quantile for backfill keeps GPUs idle every day."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduling.models import (
    AdaptingTrial,
    Announcement,
    Cluster,
    GpuClass,
    Node,
    PriorityClass,
    Queue,
    Quota,
    State,
    TrialState,
    Workload,
)
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies import doors, running
from scheduling.services.studies.adapting import steps, trials
from tests.adapting import later
from tests.factories import NOW, make_cluster
from tests.foresight import live_of

pytestmark = pytest.mark.django_db
HOUR_S = 3600
DAYS_BEFORE, DAYS_AFTER = 9, 8
RUNS_AS_TOLD_S, RUNS_ON_S = 2 * HOUR_S, 16 * HOUR_S
GANGS = 6


@pytest.fixture
def cluster(monkeypatch, settings):
    """One node of 8 GPUs and one queue, with the switch on; half-life and reservation are pinned, so that
    backfill is first in turn."""
    settings.WEIR_ADAPTING_REPLAYS = 6
    settings.WEIR_SUBSCRIBERS = {"tests.lab.nobody": ["*"]}
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(doors, "send", lambda study_id: None)
    found = make_cluster(clock_real=datetime.now(UTC), clock_start=NOW)
    h100 = GpuClass.objects.create(cluster=found, name="h100")
    Node.objects.create(cluster=found, name="n1", gpu_class=h100, gpus=8000)
    root = Queue.objects.create(cluster=found, name="root")
    team = Queue.objects.create(cluster=found, name="team", namespace="team", parent=root)
    Quota.objects.create(
        queue=team, gpu_class=h100, nominal_gpus=8000, effective_from=NOW - timedelta(days=60)
    )
    for name in ("half_life", "reservation"):
        trials.pin(cluster=found, name=name, is_pinned=True, author=None)
    trials.switch(cluster=found, is_on=True, author=None)
    return found


def days(cluster: Cluster, first: int, last: int, small_runs_s: int) -> None:
    """What the ledger has of each day: work on half of the node takes 10 h. Gangs come that want the whole
    node, then what needs the other half, told to take 2 h, and 10 h at P90. The gangs' turn is 10 h after the
    first began: by its P90 the last is over too late to go before them, by its P85 in time."""
    for day in range(first, last):
        at = NOW + timedelta(days=day, hours=1)
        ended(cluster, at, "old", 4, 10 * HOUR_S, (10 * HOUR_S, 10 * HOUR_S))
        for _ in range(GANGS):
            ended(cluster, at + timedelta(hours=1), "gang", 8, HOUR_S // 4, (HOUR_S // 4, HOUR_S))
        told = (RUNS_AS_TOLD_S, 5 * RUNS_AS_TOLD_S)
        ended(cluster, at + timedelta(hours=2), "small", 4, small_runs_s, told)


def ended(
    cluster: Cluster, at: datetime, name: str, gpus: int, run_s: int, told: tuple[int, int]
) -> None:
    number = Workload.objects.count()
    Workload.objects.create(
        cluster=cluster, uid=f"w-{number}", name=f"{name}-{number}", namespace="team", user="ann",
        queue=Queue.objects.get(name="team"), queue_label="team", gpus=1000 * gpus, gpu_classes=["h100"],
        priority_class=PriorityClass.objects.get_or_create(name="train")[0], state=State.FINISHED,
        outcome="succeeded", submitted_at=at, first_started_at=at, started_at=at,
        finished_at=at + timedelta(seconds=run_s), used_gpu_s=run_s * gpus,
        predicted_p50_s=told[0], predicted_p90_s=told[1],
    )  # fmt: skip


def looked(cluster: Cluster) -> AdaptingTrial:
    """A look that asks, the replays lived by the engine, and a look that decides."""
    steps.look(cluster)
    trial = AdaptingTrial.objects.latest("pk")
    while trial.study is not None and running.work(trial.study.pk):
        pass
    steps.look(cluster)
    cluster.refresh_from_db()
    trial.refresh_from_db()
    return trial


def a_day_on(cluster: Cluster) -> AdaptingTrial:
    later(cluster, days=1, minutes=1)
    return looked(cluster)


def test_better_quantile_comes_into_force_by_what_replays_show_and_is_kept_after_a_week(cluster):
    days(cluster, -DAYS_BEFORE, DAYS_AFTER, RUNS_AS_TOLD_S)
    trial = looked(cluster)
    assert (trial.parameter, trial.state, trial.value_to) == ("backfill", TrialState.TRYING, 0.85)
    assert cluster.backfill_quantile == 0.85
    told = Announcement.objects.get(kind="policy.set")
    assert (told.actor, told.before, told.after) == (
        "", {"backfill_quantile": 0.9}, {"backfill_quantile": 0.85},
    )  # fmt: skip
    assert told.reason.startswith("Quantile for backfill P90 → P85: wait −")
    assert told.reason.endswith("nothing else worse; 6 replays of 7 days.")
    figures = Announcement.objects.get(kind="adapting.stepped").after["evidence"]["values"][0]
    assert figures["figures"]["avg_wait_s"]["verdict"] == "better"
    for _ in range(6):
        assert a_day_on(cluster).state == TrialState.TRYING
    trial = a_day_on(cluster)
    assert (trial.state, cluster.backfill_quantile) == (TrialState.KEPT, 0.85)
    assert len(trial.evidence["checks"]) == 7
    assert Announcement.objects.filter(kind="adapting.kept").count() == 1


def test_step_goes_back_once_the_days_since_went_worse_than_with_the_value_before(cluster):
    days(cluster, -DAYS_BEFORE, 0, RUNS_AS_TOLD_S)
    days(cluster, 0, DAYS_AFTER, RUNS_ON_S)
    assert looked(cluster).state == TrialState.TRYING
    lasted = 0
    while (trial := a_day_on(cluster)).state == TrialState.TRYING:
        lasted += 1
    assert trial.state == TrialState.TAKEN_BACK
    assert lasted < 6
    assert cluster.backfill_quantile == 0.9
    told = Announcement.objects.filter(kind="policy.set").latest("pk")
    assert told.after == {"backfill_quantile": 0.9}
    assert (
        "P85 → P90, taken back: the days since went worse than with the value before" in told.reason
    )
    back = Announcement.objects.get(kind="adapting.taken_back")
    assert back.after["evidence"]["values"][0]["figures"]["avg_wait_s"]["verdict"] == "worse"
