"""A consolidation that an operator ordered, carried out once whatever happens between two lines."""

from __future__ import annotations

from typing import Any

import pytest

from portal.accounts.models import User
from scheduling.models import (
    Cluster,
    ClusterMode,
    Consolidation,
    ConsolidationState,
    Eviction,
    EvictionRule,
    GpuClass,
    Quota,
    State,
)
from scheduling.services.clusters import consolidation_orders
from scheduling.services.cycle.enforce.acts import MOVED
from scheduling.services.errors import ServiceError
from scheduling.services.worker.cycles import run_cycle
from tests.scheduling.killing import KilledError, die_at_write, restart
from tests.scheduling.kube import JOBS, World

Of = ConsolidationState


def scattered(world: World) -> None:
    """``small`` alone on one node with 2 GPUs, ``large`` on the other with 5; nobody has to rest."""
    Quota.objects.update(borrowing_limit_gpus=8000)
    Cluster.objects.update(cooldown_s=0)
    for name, gpus in (("first", 6), ("large", 5), ("small", 2)):
        world.job(name, gpus=gpus)
        world.cycles_until(lambda name=name: world.row(name).state == State.RUNNING)
    world.kube.delete(f"{JOBS}/first", {"propagationPolicy": "Background"})
    world.cycles_until(lambda: world.row("first").state == State.FINISHED)
    assert world.row("small").placement != world.row("large").placement


def ordered(world: World, **more: Any) -> Consolidation:
    world.cluster.refresh_from_db()
    fields = {
        "cluster": world.cluster,
        "gpu_class": GpuClass.objects.get(),
        "nodes": 1,
        "most_moves": 1,
        "author": User(username="ada"),
    }
    return consolidation_orders.order(**(fields | more))


def moved(world: World) -> bool:
    small = world.row("small")
    return small.state == State.RUNNING and small.placement == world.row("large").placement


def outcome() -> Consolidation:
    return Consolidation.objects.get()


def test_next_cycle_moves_what_frees_the_node_and_says_so(world: World) -> None:
    scattered(world)
    ordered(world)
    world.cycles_until(lambda: moved(world))
    done = outcome()
    assert (done.state, done.outcome.split(";")[0]) == (Of.DONE, "Moved 1 of 1")
    [row] = done.moves
    assert (row["name"], row["moved"]) == ("small", True)
    assert done.cycle is not None
    eviction = Eviction.objects.get()
    assert (eviction.rule, eviction.for_workload) == (EvictionRule.CONSOLIDATE, None)
    assert "as an operator ordered" in eviction.sentence
    assert world.row("large").eviction_count == 0


def test_what_the_plan_lets_start_does_not_sit_where_somebody_moves_to(world: World) -> None:
    scattered(world)
    world.job("late", gpus=6)
    world.catch_up()
    ordered(world)
    world.cycles_until(lambda: moved(world) and world.row("late").state == State.RUNNING)
    assert outcome().state == Of.DONE
    assert Eviction.objects.count() == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", [1, 2])
def test_killed_at_a_write_it_is_carried_out_once(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int, after: bool
) -> None:
    scattered(world)
    ordered(world)
    with monkeypatch.context() as fragile:
        die_at_write(fragile, number, after=after)
        with pytest.raises(KilledError):
            run_cycle(world.cluster.pk)
    restart(world)
    world.cycles_until(lambda: moved(world) and outcome().state == Of.DONE)
    for _ in range(2):
        world.cycle()
    assert Eviction.objects.count() == 1
    assert world.row("small").eviction_count == 1


@pytest.mark.parametrize("line", ["claim", "settle"])
def test_killed_before_a_line_of_the_ledger_it_is_carried_out_once(
    world: World, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    scattered(world)
    ordered(world)

    def die(*args: Any) -> None:
        raise KilledError

    with monkeypatch.context() as fragile:
        fragile.setattr(consolidation_orders, line, die)
        with pytest.raises(KilledError):
            world.cycle()
    assert outcome().state == (Of.WAITING if line == "claim" else Of.MOVING)
    restart(world)
    world.cycles_until(lambda: moved(world) and outcome().state == Of.DONE)
    assert Eviction.objects.count() == 1


def test_cycle_that_finds_it_taken_commits_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    scattered(world)
    order = ordered(world)
    plan = consolidation_orders.open_order

    def cancelled_meanwhile(*args: Any) -> Any:
        found = plan(*args)
        consolidation_orders.cancel(order, author=User(username="ada"))
        return found

    with monkeypatch.context() as late:
        late.setattr(consolidation_orders, "open_order", cancelled_meanwhile)
        assert world.cycle().skipped == "taken"
    world.cycle()
    assert outcome().state == Of.CANCELLED
    assert world.row("small").eviction_count == 0


def test_nothing_to_move_is_said_and_ends_it(world: World) -> None:
    world.job("w1", gpus=2)
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)
    ordered(world)
    world.cycle()
    done = outcome()
    assert done.state == Of.NOT_DONE
    assert "Nothing was moved" in done.outcome


def test_write_that_failed_is_told_in_the_words_of_the_api_server(world: World) -> None:
    scattered(world)
    ordered(world)
    world.server.faults.configure(server_error=1.0, path="/jobs/small")
    world.cycle()
    world.server.faults.clear()
    done = outcome()
    assert done.state == Of.NOT_DONE
    assert "small was not: the API server refused" in done.outcome


def test_second_order_of_a_cluster_is_refused_while_one_waits(world: World) -> None:
    ordered(world)
    with pytest.raises(ServiceError, match="waits already"):
        ordered(world)


def test_order_for_a_cluster_that_is_observed_is_refused(world: World) -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    with pytest.raises(ServiceError, match="does not enforce"):
        ordered(world)


def test_moved_work_is_said_to_start_again_where_it_went(world: World) -> None:
    scattered(world)
    ordered(world)
    world.cycles_until(lambda: moved(world))
    events = world.kube.get("/api/v1/namespaces/default/events")["items"]
    assert [e["message"] for e in events if e["message"] == MOVED] == [MOVED]
