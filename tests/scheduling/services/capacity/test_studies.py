"""A study from its beginning to its end: lived once each, cancelled, killed, taken up again, bounded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from scheduling.models import (
    CapacityPoint,
    Cluster,
    ClusterMode,
    Study,
    StudyState,
    Workload,
)
from scheduling.services.errors import ServiceError
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies.capacity import studies, working
from scheduling.services.studies.capacity.recorded import recorded
from scheduling.simulation.ahead.compare import Lived
from tests.factories import NOW, example_cluster
from tests.foresight import live_of, with_past
from tests.scheduling.services.studies.capacity.lives import made_up

pytestmark = pytest.mark.django_db
H100 = "h100-80gb"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(studies, "send", lambda study_id: None)
    cluster = example_cluster()
    with_past(cluster)
    return cluster


@pytest.fixture
def lives(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(nodes of the world, seed) of each life; what is lived is made up."""
    return made_up(monkeypatch)


def begun(cluster: Cluster, **more: Any) -> Study:
    return studies.begin(cluster=cluster, author="admin", **{"days": 7, "steps": (1,), **more})


def finish(study: Study) -> Study:
    working.work(study.pk)
    study.refresh_from_db()
    return study


def test_study_lives_every_number_with_every_seed(cluster: Cluster, lives: list[Any]) -> None:
    study = finish(begun(cluster))
    classes = study.curves.count()
    assert (study.state, study.progress, study.template) == (StudyState.DONE, 100, {})
    assert len(lives) == 5 * (1 + classes)
    assert CapacityPoint.objects.count() == 5 * 2 * classes


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
    study = begun(cluster, days=2)
    for curve in study.curves.exclude(gpu_class__name=H100):
        curve.delete()
    finish(study)
    assert (study.state, study.fault) == (StudyState.DONE, "")
    points = CapacityPoint.objects.filter(curve__gpu_class__name=H100)
    assert points.count() == 10
    assert all(point.workloads == points[0].workloads > 0 for point in points)


def test_kept_life_is_not_lived_again(cluster: Cluster, lives: list[Any]) -> None:
    study = finish(begun(cluster))
    lives.clear()
    CapacityPoint.objects.filter(nodes=1, seed=3, curve=study.curves.first()).delete()
    Study.objects.update(state=StudyState.WAITING, template=_template(cluster))
    Study.objects.update(held_until=None)
    finish(study)
    assert [seed for _, seed in lives] == [3]


def _template(cluster: Cluster) -> Any:
    return begun(cluster, end=cluster.now() + timedelta(seconds=1)).template


def test_study_that_another_holds_is_left_alone(cluster: Cluster, lives: list[Any]) -> None:
    study = begun(cluster)
    Study.objects.update(held_until=timezone.now() + timedelta(minutes=1))
    assert finish(study).state == StudyState.WAITING
    assert not lives


def test_killed_workers_study_is_taken_up_again(
    cluster: Cluster, lives: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, sent = begun(cluster), []
    Study.objects.update(
        state=StudyState.RUNNING, held_until=timezone.now() - timedelta(seconds=1)
    )
    monkeypatch.setattr(studies, "send", sent.append)
    studies.look(cluster)
    assert sent == [study.pk]
    assert finish(study).state == StudyState.DONE


def test_cancelled_study_stops_and_keeps_what_was_lived(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = begun(cluster)

    def after(lived: int) -> None:
        if lived == 3:
            studies.cancel(study)

    lives = made_up(monkeypatch, after=after)
    assert finish(study).state == StudyState.CANCELLED
    assert len(lives) == 3
    assert CapacityPoint.objects.exists()
    assert not studies.cancel(study)


def test_slice_leaves_the_rest_to_the_next(
    cluster: Cluster, lives: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(working, "SLICE_S", 0.5)
    monkeypatch.setattr(studies, "send", sent.append)
    study = begun(cluster)
    Study.objects.update(cpu_s=1)
    monkeypatch.setattr(working.time, "thread_time", iter(range(1000)).__next__)
    assert finish(study).state == StudyState.RUNNING
    assert (study.held_until, sent) == (None, [study.pk])
    assert len(lives) == 1


def test_bound_ends_a_study_after_whole_replications(cluster: Cluster, lives: list[Any]) -> None:
    study = begun(cluster)
    Study.objects.update(cpu_s=study.most_cpu_s)
    assert finish(study).state == StudyState.DONE
    assert not lives


def test_world_that_cannot_be_replayed_fails_with_its_remedy(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Lived:
        raise ServiceError("cannot_replay", "The engine finds no rest.", "Ask again.")

    monkeypatch.setattr(working, "life", refuse)
    study = finish(begun(cluster))
    assert (study.state, study.fault) == (
        StudyState.FAILED,
        "The engine finds no rest. Ask again.",
    )


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
        Study.objects.create(
            cluster=cluster, end=NOW, days=7, replications=5, most_cpu_s=60, state=state, asked_at=NOW,
            made_at=real - timedelta(hours=age_h),
        )  # fmt: skip
    assert studies.is_due(cluster, real) is expected, name


def test_old_studies_are_forgotten(cluster: Cluster) -> None:
    begun(cluster, end=cluster.now() - timedelta(days=5))
    Study.objects.update(end=cluster.now() - studies.KEPT - timedelta(days=1))
    assert studies.forget(cluster)
    assert not Study.objects.exists()
