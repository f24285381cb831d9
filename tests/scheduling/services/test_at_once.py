"""GPUs at once: whose work waits because of what they hold, in what order it passes, and what is said."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduling.cluster.adapters import Sighting
from scheduling.cluster.vocabulary import labels
from scheduling.engine import model as m
from scheduling.models import Cluster, PriorityClass, Queue, State
from scheduling.services.queues.entitlements import Entitlements
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.queues.service_classes import ServiceClass, ServiceClasses
from scheduling.services.snapshot.at_once import at_limit, hindered
from scheduling.services.snapshot.obstacles import Obstacle
from scheduling.services.snapshot.situations import Situation, WorkloadFacts
from scheduling.services.tables.row_cache import RowCache
from tests.scheduling.kube import JOBS, Json, World

NOW = datetime(2026, 1, 5, tzinfo=UTC)
MINE = ServiceClass("ann", "vision", "vision", "researcher", max_gpus_at_once=8000)
PRIORITIES = (
    PriorityClass(name="high", value=90),
    PriorityClass(name="normal", value=50, is_default=True),
)
Row = tuple[Sighting, WorkloadFacts]


def rows(*held: ServiceClass) -> PolicyRows:
    root = Queue(pk=1, name="root", path="")
    leaves = [
        Queue(pk=2 + i, name=path.rsplit("/", 1)[-1], path=path, parent=root)
        for i, path in enumerate(("vision", "vision/nights", "search"))
    ]
    return PolicyRows(
        cluster=Cluster(name="c"), gpu_classes=(), node_pools=(), queues=(root, *leaves),
        entitlements=Entitlements((), (), {}, timedelta(), NOW), priority_classes=PRIORITIES,
        shares=(), usage={}, evicted_today={}, user_usage={},
        service_classes=ServiceClasses(held, frozenset({"vision"})),
    )  # fmt: skip


def work(name: str, gpus: float, situation: Situation = Situation.WAITING, **more: Any) -> Row:
    given: dict[str, Any] = {
        "uid": name, "kind": "Job", "namespace": "vision", "name": name, "generation": 1,
        "queue_label": "vision", "user": "ann", "priority_class": "", "gpus": round(gpus * 1000),
        "cpus": 0, "memory_mib": 0, "min_members": 1, "max_members": 1, "members": 1,
        "gpu_classes": (), "created": NOW,
    }  # fmt: skip
    return Sighting(**(given | more)), WorkloadFacts(situation)


def runs(name: str, gpus: float, **more: Any) -> Row:
    return work(name, gpus, Situation.HOLDING, **more)


def stopped(*works: Row, held: tuple[ServiceClass, ...] = (MINE,)) -> dict[str, str]:
    """Name -> sentence of those that have to wait."""
    known = {observed.uid: what for observed, what in works}
    found = at_limit([observed for observed, _ in works], known, rows(*held))
    assert all(why.reason is m.Reason.USER_AT_LIMIT for _, why in found)
    return {observed.name: why.sentence for observed, why in found}


@pytest.mark.parametrize(
    ("others", "waits"),
    [
        pytest.param([], [], id="holds nothing"),
        pytest.param([runs("r", 4)], [], id="just room"),
        pytest.param([runs("r", 4.5)], ["w"], id="half a GPU too many"),
        pytest.param([runs("r", 8, user="bob")], [], id="somebody else holds them"),
        pytest.param([runs("r", 8, queue_label="search")], [], id="in a queue out of reach"),
        pytest.param([runs("r", 8, queue_label="nights")], ["w"], id="in a queue below"),
        pytest.param([runs("r", 2, max_members=4)], ["w"], id="as large as it may grow"),
        pytest.param(
            [work("r", 8, Situation.LEAVING, placement={"n": 1})], ["w"], id="its pods still go"
        ),
        pytest.param([work("r", 8, Situation.DONE)], [], id="done and gone"),
        pytest.param([work("r", 8, Situation.MOVING)], ["w"], id="on the move"),
    ],
)
def test_work_waits_when_its_user_holds_too_much(others: list[Row], waits: list[str]) -> None:
    assert list(stopped(*others, work("w", 4))) == waits


@pytest.mark.parametrize(
    ("line", "waits"),
    [
        pytest.param([work("a", 5), work("b", 5)], ["b"], id="not both in one cycle"),
        pytest.param([work("a", 4), work("b", 4)], [], id="both fit"),
        pytest.param(
            [work("a", 5), work("b", 5, priority_class="high")], ["a"], id="higher priority first"
        ),
        pytest.param(
            [work("a", 5, created=NOW + timedelta(1)), work("b", 5)], ["a"], id="then the older"
        ),
        pytest.param([work("a", 5), work("b", 5), work("c", 3)], ["b"], id="smaller ones go on"),
        pytest.param([work("a", 5, hold=True), work("b", 5)], [], id="held ones keep no room"),
        pytest.param([work("a", 0), work("b", 8)], [], id="work without GPUs"),
    ],
)
def test_line_of_one_user_passes_up_to_the_limit(line: list[Row], waits: list[str]) -> None:
    assert list(stopped(*line)) == waits


def test_blocked_work_keeps_no_room_and_is_told_its_own_cause() -> None:
    first, known = work("a", 5)
    why = Obstacle(m.Reason.GANG_INCOMPLETE, "It lacks pods.")
    assert stopped((first, replace(known, blocked=why)), work("b", 5)) == {}


def test_one_class_of_service_with_room_is_enough() -> None:
    wider = ServiceClass("ann", "vision", "vision", "lead", max_gpus_at_once=12000)
    assert stopped(runs("r", 8), work("w", 4), held=(MINE, wider)) == {}
    endless = ServiceClass("ann", "vision", "vision", "lead")
    assert stopped(runs("r", 80), work("w", 4), held=(MINE, endless)) == {}


def test_class_of_service_that_forbids_the_work_lends_no_room() -> None:
    small = ServiceClass("ann", "vision", "vision", "lead", max_gpus=1000)
    assert list(stopped(runs("r", 8), work("w", 4), held=(MINE, small))) == ["w"]


def test_sentence_names_persona_limit_and_what_is_held() -> None:
    found = stopped(runs("r", 2), work("a", 4), work("b", 3, created=NOW + timedelta(1)))
    assert found["b"] == (
        "Persona researcher of team vision lets its user hold 8 GPUs at once. They hold 2 now, their work"
        " before it in line asks for 4, and this asks for 3: it starts when 1 of theirs is given back."
    )


def test_what_is_said_as_before_stays_the_very_same() -> None:
    holding, waiting = runs("r", 8), work("w", 4)
    shown, policy = [holding[0], waiting[0]], rows(MINE)
    first = {holding[0].uid: holding[1], waiting[0].uid: waiting[1]}
    second = dict(first)
    kept = hindered(first, at_limit(shown, first, policy), {})
    hindered(second, at_limit(shown, second, policy), kept)
    assert second["w"] is first["w"]


def two_at_once(cluster: Cluster, unchanged: RowCache) -> ServiceClasses:
    mine = ServiceClass("ann", "research", "research", "researcher", max_gpus_at_once=2000)
    return ServiceClasses((mine,), frozenset({"research"}))


def of_ann(world: World, name: str) -> Json:
    manifest = world.manifest(name, gpus=2)
    manifest["metadata"]["annotations"] = {labels.USER: "ann"}
    return manifest


def test_work_above_the_limit_starts_by_itself_once_there_is_room(
    world: World, settings: Any
) -> None:
    settings.WEIR_SERVICE_CLASSES = f"{__name__}.two_at_once"
    world.kube.create(JOBS, of_ann(world, "w1"))
    world.kube.create(JOBS, of_ann(world, "w2"))
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)
    world.cycle()
    waits = world.row("w2")
    assert (waits.state, waits.reason) == (State.PENDING, m.Reason.USER_AT_LIMIT)
    assert "lets its user hold 2 GPUs at once. They hold 2 now" in waits.sentence

    world.kube.delete(f"{JOBS}/w1")
    world.cycles_until(lambda: world.row("w2").state == State.RUNNING)
