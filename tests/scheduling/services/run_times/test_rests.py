"""What was learned of run times reaches the plan, and only what changed is made anew."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from scheduling.cluster.connection.client import Client
from scheduling.engine import model as m
from scheduling.models import ClassOrder, Cluster, Prediction, Predictor, PredictorKind, Workload
from scheduling.services.run_times.predicting import RecentWaits
from scheduling.services.run_times.rests import Rest, RestPredictions, by_end, held_back
from scheduling.services.snapshot import build as snapshots
from scheduling.services.worker import cluster_turns as workers
from tests.scheduling.kube import World, add_node, node, policy
from workshop.testbed.server import Clock, EmbeddedServer

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
    return workers._turns[world.cluster.pk].memory.waiting.works[world.row(name).uid]


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
    assert first.predicted == m.PredictedRunTime(600, 1200)
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
    assert planned(world.cluster, "told").predicted == m.PredictedRunTime(30, 40)


def test_second_reading_finds_only_what_was_predicted_since(world: World) -> None:
    for name in ("a", "b"):
        world.job(name, gpus=16)
    world.cycle()
    rows = [world.row(name) for name in ("a", "b")]
    for row in rows:
        predict(row)
    foreseen = RestPredictions()
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


def choosy(world: World, class_order: str, *, gpus: int = 8) -> None:
    """A job that may use h100, which has room, or quick, which has no node."""
    world.cluster.gpu_classes.create(name="quick", node_labels={"c": "q"}, resource_name="q/gpu")
    world.cluster.class_order = class_order
    world.cluster.mode = "observe"
    world.cluster.save()
    job = world.manifest("choosy", gpus=gpus)
    job["metadata"].setdefault("annotations", {})["weir.dev/gpu-classes"] = "h100,quick"
    world.kube.create("/apis/batch/v1/namespaces/default/jobs", job)
    world.cycle()
    predict(world.row("choosy"))
    world.cluster.mode = "enforce"
    world.cluster.save()


def began(world: World, name: str, waited_s: float, now: datetime, *, gpus: int = 8000) -> None:
    """One that started a minute ago on h100 after such a wait."""
    Workload.objects.create(
        cluster=world.cluster,
        uid=name,
        namespace="default",
        name=name,
        queue=world.cluster.queues.get(name="research"),
        gpus=gpus,
        gpu_class=world.cluster.gpu_classes.get(name="h100"),
        submitted_at=now - timedelta(seconds=60 + waited_s),
        first_started_at=now - timedelta(seconds=60),
    )


@pytest.mark.parametrize(
    ("class_order", "first"), [(ClassOrder.ENDS_FIRST, "quick"), (ClassOrder.LISTED, "h100")]
)
def test_plan_tries_the_class_first_where_work_would_end_first(
    world: World, class_order: str, first: str
) -> None:
    choosy(world, class_order, gpus=16)
    Prediction.objects.update(by_class={"h100": on(0, 900), "quick": on(1, 300)})
    assert planned(world.cluster, "choosy").gpu_classes[0] == first


def after(place: int, p50_s: float, wait_s: float | None) -> dict[str, float | None]:
    return {"place": place, "p50_s": p50_s, "wait_s": wait_s}


@pytest.mark.parametrize(
    ("by_class", "held_s"),
    [
        pytest.param({"a": after(0, 900, 0), "q": after(1, 300, 60)}, {"a": 600}, id="worth it"),
        pytest.param(
            {"a": after(0, 900, 0), "q": after(1, 300, 700)}, {}, id="starts come too late"
        ),
        pytest.param({"a": after(0, 900, 0), "q": after(1, 300, None)}, {}, id="too few starts"),
        pytest.param({"a": after(0, 320, 0), "q": after(1, 300, 0)}, {}, id="hardly faster"),
        pytest.param({"a": after(0, 900, 0), "q": after(1, 900, 0)}, {}, id="alike"),
        pytest.param(
            {"a": after(0, 900, 0), "m": after(1, 500, 0), "q": after(2, 300, 5000)},
            {"a": 400},
            id="the next best is worth it",
        ),
        pytest.param({}, {}, id="nobody knows"),
    ],
)
def test_slower_class_is_held_back_while_the_faster_would_end_first(by_class, held_s) -> None:
    until = {name: AT + timedelta(seconds=s) for name, s in held_s.items()}
    assert {name: one.until for name, one in held_back(by_class, AT).items()} == until


def test_faster_class_that_is_waited_for_is_the_one_that_is_worth_it() -> None:
    ways = {"a": after(0, 900, 0), "m": after(1, 500, 0), "q": after(2, 300, 5000)}
    assert held_back(ways, AT)["a"].faster == "m"


@pytest.mark.parametrize(
    ("class_order", "passed_s", "classes"),
    [
        (ClassOrder.WAITS, 0, ("quick",)),
        (ClassOrder.WAITS, 601, ("quick", "h100")),
        (ClassOrder.ENDS_FIRST, 0, ("quick", "h100")),
    ],
)
def test_work_waits_for_the_faster_class_as_long_as_that_is_worth_it(
    world: World, class_order: str, passed_s: int, classes: tuple[str, ...]
) -> None:
    choosy(world, class_order)
    row = world.row("choosy")
    Prediction.objects.update(by_class={"h100": after(0, 900, 0), "quick": after(1, 300, 60)})
    row.submitted_at -= timedelta(seconds=passed_s)
    row.save()
    assert planned(world.cluster, "choosy").gpu_classes == classes


def test_cycle_starts_it_on_the_slower_class_once_waiting_is_not_worth_it(world: World) -> None:
    choosy(world, ClassOrder.WAITS)
    Prediction.objects.update(
        by_class={"h100": after(0, 90, 0), "quick": after(1, 88 - 8, 0)}, at=world.cluster.now()
    )
    Workload.objects.update(submitted_at=world.cluster.now() - timedelta(seconds=8))
    world.cycle()
    assert world.row("choosy").started_at is None
    world.cycles_until(lambda: world.row("choosy").started_at)
    assert world.row("choosy").gpu_class.name == "h100"


def test_recent_waits_are_of_the_queue_the_class_and_starts_as_large(world: World) -> None:
    now = world.cluster.now()
    for number, waited_s in enumerate([30, 60, 90, 600]):
        began(world, f"like-{number}", waited_s, now)
    began(world, "small", 1, now, gpus=1000)
    waits = RecentWaits(world.cluster, now)
    asking = world.row("like-0")
    assert waits.typical_s(asking, "h100") == 75
    assert waits.typical_s(asking, "quick") is None
    asking.queue = None
    assert waits.typical_s(asking, "h100") is None


def test_rest_counts_from_the_start_that_came_after_it() -> None:
    started = AT + timedelta(hours=1)
    assert REST.whole_s(started) == (600, 1200)
    assert REST.left_s(started, started + timedelta(seconds=100)) == (1.0, 500, 1100)
