"""A task takes its share of a core, not more; what somebody waits for has its turn later."""

from __future__ import annotations

from typing import Any

import pytest
from celery import current_app
from celery.app.task import Context

from portal.config.schedule import Duty
from scheduling.services.worker import budget as budgets
from scheduling.services.worker.budget import MOST, Budget, BudgetedTask


class Dial:
    """A clock that stands until it is turned."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Dial:
    return Dial()


@pytest.fixture
def cpu() -> Dial:
    return Dial()


@pytest.fixture
def budget(clock: Dial, cpu: Dial) -> Budget:
    return Budget(0.1, clock, cpu)


def test_run_is_followed_by_a_rest_of_its_cpu_over_its_share(
    budget: Budget, clock: Dial, cpu: Dial
) -> None:
    with budget.spend(1):
        cpu.at += 3
        clock.at += 3
    assert budget.rest_s(1) == pytest.approx(27)
    assert budget.rest_s(2) == 0
    clock.at = 1030.0
    assert budget.rest_s(1) == 0


@pytest.mark.parametrize(("took_s", "given_back"), [(0.4, 0), (0.5, 1)])
def test_memory_is_given_back_after_a_heavy_run(
    budget: Budget, cpu: Dial, monkeypatch: pytest.MonkeyPatch, took_s: float, given_back: int
) -> None:
    times: list[None] = []
    monkeypatch.setattr(budgets, "give_back", lambda: times.append(None))
    with budget.spend(1):
        cpu.at += took_s
    assert len(times) == given_back


def test_run_that_fails_is_paid_for_as_well(budget: Budget, cpu: Dial) -> None:
    def fail() -> None:
        with budget.spend(1):
            cpu.at += 1
            raise OSError("away")

    with pytest.raises(OSError, match="away"):
        fail()
    assert budget.rest_s(1) > 0


def test_three_clusters_together_take_one_share(budget: Budget, cpu: Dial) -> None:
    for key in (1, 2, 3):
        with budget.spend(key):
            pass
    with budget.spend(1):
        cpu.at += 1
    assert budget.rest_s(1) == pytest.approx(30)


def test_what_may_run_again_is_not_remembered_for_ever(budget: Budget) -> None:
    for key in range(3 * MOST):
        with budget.spend(key):
            pass
    assert len(budget._until) <= MOST + 1


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Any:
    """A task of a worker that has spent its share already; ``ran`` and ``sent`` say what came of it."""
    name = "tests.budgeted"
    settings.WEIR_DUTIES = {name: Duty(name, share=0.1)}
    spent = Budget(0.1, Dial())
    spent._until = {(7,): 1060.0, (): 1060.0}
    monkeypatch.setattr(budgets, "_budgets", {name: spent})

    class Work(BudgetedTask):
        def __init__(self) -> None:
            self.ran: list[Any] = []
            self.sent: list[Any] = []

        def run(self, *args: Any) -> None:
            self.ran.append(args)

        def apply_async(self, **options: Any) -> None:
            self.sent.append(options)

    made = Work()
    made.name = name
    made.bind(current_app._get_current_object())
    made.request_stack.push(Context(called_directly=False))
    return made


def test_request_that_comes_too_early_is_dropped(task: Any) -> None:
    task(7)
    assert (task.ran, task.sent) == ([], [])


def test_request_about_another_cluster_runs(task: Any) -> None:
    task(8)
    assert task.ran == [(8,)]


def test_what_is_awaited_has_its_turn_later(task: Any, settings: Any) -> None:
    settings.WEIR_DUTIES = {task.name: Duty(task.name, share=0.1, is_awaited=True)}
    task(8)
    assert task.ran == []
    assert [sent["countdown"] for sent in task.sent] == [60.0]


def test_who_calls_it_as_a_function_is_not_kept(task: Any) -> None:
    task.request_stack.push(Context(called_directly=True))
    task(7)
    assert task.ran == [(7,)]
