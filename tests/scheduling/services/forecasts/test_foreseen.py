"""What was learned of run times reaches the plan, and only what changed is made anew."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from scheduling.cluster.connection.client import Client
from scheduling.engine import model as m
from scheduling.models import ClassOrder, Cluster, Prediction, Predictor, PredictorKind, Workload
from scheduling.services.forecasts.told import Foreseen, Rest, by_end
from scheduling.services.snapshot import build as snapshots
from scheduling.services.worker import held as workers
from scheduling.testbed.server import Clock, EmbeddedServer
from tests.scheduling.kube import World, add_node, node, policy

AT = datetime(2026, 11, 24, 12, tzinfo=UTC)
REST = Rest(AT, 60, 600, 1200)


@pytest.fixture
def world(db: None) -> Iterator[World]:
    """One node of 8 GPUs, queue ``research``."""
    with EmbeddedServer(port=0, clock=Clock(speed=1), startup_s=0.01) as server:
        cluster = policy("enforce", server.url, "research", nominal_gpus=8)
        kube = Client.connect(cluster)
        add_node(kube, node("n1"))
        yield World(cluster, server, kube)
        workers.close_all()
        kube.close()


def predict(work: Workload, *, p50_s: float = 600) -> Prediction:
    predictor, _ = Predictor.objects.get_or_create(
        cluster=work.cluster, version=1, kind=PredictorKind.HISTORY,
        defaults={"window_from": AT, "window_to": AT, "state": b""},
    )  # fmt: skip
    told = {"p10_s": p50_s / 2, "p50_s": p50_s, "p90_s": p50_s * 2}
    first = {f"told_{name}": value for name, value in told.items()} | {"told_at": AT}
    values = {**told, "predictor": predictor, "at": work.cluster.now()}
    return Prediction.objects.update_or_create(
        workload=work, defaults=values, create_defaults={**values, **first}
    )[0]


def waiting(world: World, name: str) -> m.Workload:
    return workers._held[world.cluster.pk].memory.waiting.works[world.row(name).uid]


def planned(cluster: Cluster, name: str) -> m.Workload:
    return next(w for w in snapshots.live(cluster).workloads if w.name.endswith(name))


def test_waiting_work_is_planned_with_what_was_learned_and_kept_while_that_stands(
    world: World,
) -> None:
    for name in ("first", "second"):
        world.job(name, gpus=16)
    world.cycle()
    assert waiting(world, "first").predicted is None
    predict(world.row("first"))
    world.cycle()
    first, second = waiting(world, "first"), waiting(world, "second")
    assert first.predicted == m.Predicted(600, 1200)
    world.cycle()
    assert waiting(world, "first") is first
    assert waiting(world, "second") is second


def test_running_work_is_planned_from_its_start_and_what_is_left(world: World) -> None:
    world.job("runs", gpus=8, run_s=3600)
    world.cycles_until(lambda: world.row("runs").started_at)
    row = world.row("runs")
    Workload.objects.filter(pk=row.pk).update(started_at=row.started_at - timedelta(hours=1))
    said = predict(row)
    work = planned(world.cluster, "runs")
    assert work.started is not None
    assert work.predicted is not None
    end = work.started + timedelta(seconds=work.predicted.p90)
    assert end == said.at + timedelta(seconds=1200)


def test_what_its_author_says_stands(world: World) -> None:
    job = world.manifest("told", gpus=16)
    job["metadata"].setdefault("annotations", {})["weir.dev/predicted-seconds"] = "30,40"
    world.kube.create("/apis/batch/v1/namespaces/default/jobs", job)
    world.cycle()
    predict(world.row("told"))
    assert planned(world.cluster, "told").predicted == m.Predicted(30, 40)


def test_second_reading_finds_only_what_was_predicted_since(world: World) -> None:
    for name in ("a", "b"):
        world.job(name, gpus=16)
    world.cycle()
    rows = [world.row(name) for name in ("a", "b")]
    for row in rows:
        predict(row)
    foreseen = Foreseen()
    assert set(foreseen.renew(world.cluster, ())) == {row.uid for row in rows}
    assert list(foreseen.renew(world.cluster, ())) == []
    predict(rows[0], p50_s=900)
    assert list(foreseen.renew(world.cluster, ())) == [rows[0].uid]
    assert foreseen.by_uid[rows[1].uid].p50_s == 600


def on(place: int, p50_s: float) -> dict[str, float]:
    return {"place": place, "p50_s": p50_s}


@pytest.mark.parametrize(
    ("by_class", "order"),
    [
        ({"slow": on(0, 1000), "quick": on(1, 500)}, ("quick", "slow")),
        ({"slow": on(0, 1000), "hardly": on(1, 950)}, ("slow", "hardly")),
        ({"b": on(1, 60), "a": on(0, 60), "c": on(2, 30)}, ("c", "a", "b")),
        ({"a": on(0, 0.0), "b": on(1, 0.0)}, ("a", "b")),
    ],
)
def test_classes_are_ordered_by_the_end_and_those_alike_as_listed(by_class, order) -> None:
    assert by_end(by_class) == order


@pytest.mark.parametrize(
    ("class_order", "first"), [(ClassOrder.ENDS_FIRST, "quick"), (ClassOrder.LISTED, "h100")]
)
def test_plan_tries_the_class_first_where_work_would_end_first(
    world: World, class_order: str, first: str
) -> None:
    world.cluster.class_order = class_order
    world.cluster.save()
    world.cluster.gpu_classes.create(name="quick", node_labels={"c": "q"}, resource_name="q/gpu")
    job = world.manifest("choosy", gpus=16)
    job["metadata"].setdefault("annotations", {})["weir.dev/gpu-classes"] = "h100,quick"
    world.kube.create("/apis/batch/v1/namespaces/default/jobs", job)
    world.cycle()
    predict(world.row("choosy"))
    Prediction.objects.update(by_class={"h100": on(0, 900), "quick": on(1, 300)})
    assert planned(world.cluster, "choosy").gpu_classes[0] == first


def test_rest_counts_from_the_start_that_came_after_it() -> None:
    started = AT + timedelta(hours=1)
    assert REST.whole_s(started) == (600, 1200)
    assert REST.left_s(started, started + timedelta(seconds=100)) == (1.0, 500, 1100)
