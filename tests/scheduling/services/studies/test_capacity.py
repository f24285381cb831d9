"""Studies of capacity: which lives, of what, how many days are known, when the night brings one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from scheduling.models import Cluster, ClusterMode, Result, Study, StudyState, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies import doors, running
from scheduling.services.studies.capacity import asking
from scheduling.services.studies.capacity.curves import recorded
from tests.factories import NOW, example_cluster
from tests.foresight import live_of, with_past
from tests.scheduling.services.studies.made_up import made_up

pytestmark = pytest.mark.django_db
H100 = "h100-80gb"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(doors, "send", lambda study_id: None)
    cluster = example_cluster()
    with_past(cluster)
    return cluster


@pytest.fixture
def lives(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(nodes of the world, seed) of each life; what is lived is made up."""
    return made_up(monkeypatch)


def begun(cluster: Cluster, **more: Any) -> Study:
    return asking.ask(cluster=cluster, author="admin", **{"days": 7, "steps": (1,), **more})


def finish(study: Study) -> Study:
    while running.work(study.pk):
        pass
    study.refresh_from_db()
    return study


def test_study_lives_every_number_with_every_seed(cluster: Cluster, lives: list[Any]) -> None:
    study = finish(begun(cluster))
    classes = len(study.basis["curves"])
    assert (study.state, study.progress, study.world) == (StudyState.DONE, 100, {})
    assert len(lives) == Result.objects.exclude(done_at=None).count() == 5 * (1 + classes)


def test_lives_of_a_seed_differ_in_nothing_but_nodes(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    made_up(monkeypatch, asked)
    finish(begun(cluster))
    _, jobs, begin, _ = asked[0]
    assert all((one[1], one[2]) == (jobs, begin) for one in asked)
    assert {seed for *_, seed in asked} == set(range(1, 6))


def test_work_that_ends_after_the_days_of_a_study_changes_nothing_of_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = cluster.now() - timedelta(days=3)
    asked: list[Any] = []
    made_up(monkeypatch, asked)
    runs = Workload.objects.filter(submitted_at__lt=end, first_started_at__lt=end).first()
    assert runs is not None
    Workload.objects.filter(pk=runs.pk).update(finished_at=None)
    finish(begun(cluster, end=end))
    Workload.objects.filter(pk=runs.pk).update(finished_at=end + timedelta(days=1))
    finish(begun(cluster, end=end))
    half = len(asked) // 2
    assert [one[1] for one in asked[:half]] == [one[1] for one in asked[half:]]


def test_study_of_a_real_past_is_replayed_by_the_engine(cluster: Cluster) -> None:
    study = begun(cluster, days=2, steps=())
    finish(study)
    assert (study.state, study.fault) == (StudyState.DONE, "")
    told = [one.figures[H100] for one in Result.objects.all()]
    assert len(told) == 5
    assert {workloads for *_, workloads in told} == {told[0][2]}


def test_bound_ends_a_study_after_the_life_that_reaches_it(
    cluster: Cluster, lives: list[Any]
) -> None:
    study = finish(begun(cluster, most_cpu_s=0))
    assert (study.state, len(lives)) == (StudyState.DONE, 1)


@pytest.mark.parametrize(
    ("asked", "field"), [({"days": 0}, "days"), ({"days": 31}, "days"), ({"replications": 4}, "replications")]
)  # fmt: skip
def test_number_out_of_bounds_is_refused_at_its_field(
    cluster: Cluster, asked: dict[str, int], field: str
) -> None:
    with pytest.raises(ServiceError) as refused:
        begun(cluster, **asked)
    assert refused.value.field == field


def test_second_study_at_once_is_refused(cluster: Cluster) -> None:
    begun(cluster)
    with pytest.raises(ServiceError) as refused:
        begun(cluster)
    assert refused.value.code == "busy"


def test_fewer_days_are_known_than_asked_for(cluster: Cluster) -> None:
    assert begun(cluster, days=30).days == 20


def test_cluster_without_a_past_is_too_young(cluster: Cluster) -> None:
    Workload.objects.all().delete()
    with pytest.raises(ServiceError) as refused:
        begun(cluster)
    assert refused.value.code == "too_young"


def test_recorded_wait_of_who_has_not_started_lasts_to_the_end(cluster: Cluster) -> None:
    begin, end = NOW - timedelta(days=7), NOW - timedelta(days=3)
    rows = Workload.objects.filter(submitted_at__gte=begin, submitted_at__lt=end)
    rows.exclude(uid__startswith="past-").delete()
    rows.update(first_started_at=end + timedelta(days=1), submitted_at=end - timedelta(hours=5))
    assert recorded(cluster, begin, end)[H100].p90_s == pytest.approx(5 * 3600)


NIGHT = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)
DAY = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "at", "mode", "age_h", "state", "expected"),
    [
        ("first night", NIGHT, ClusterMode.ENFORCE, None, "", True),
        ("by day", DAY, ClusterMode.ENFORCE, None, "", False),
        ("made some hours ago", NIGHT, ClusterMode.ENFORCE, 5, "done", False),
        ("made last night", NIGHT, ClusterMode.ENFORCE, 24, "done", True),
        ("failed last night", NIGHT, ClusterMode.ENFORCE, 24, "failed", True),
        ("an old one is worked on", NIGHT, ClusterMode.ENFORCE, 24, "running", False),
        ("paused", NIGHT, ClusterMode.PAUSED, None, "", False),
    ],
)
def test_nightly_study_is_due(  # type: ignore[no-untyped-def]
    cluster: Cluster, monkeypatch, name, at, mode, age_h, state, expected
) -> None:
    monkeypatch.setattr(Cluster, "now", lambda self: at)
    cluster.mode, cluster.display_time_zone = mode, "UTC"
    real = timezone.now()
    if age_h is not None:
        Study.objects.create(cluster=cluster, kind="capacity", state=state, asked_at=NOW)
        Study.objects.update(made_at=real - timedelta(hours=age_h))
    assert asking.is_due(cluster, real) is expected, name
