"""Learning and predicting take a tenth of a core each, not more."""

from __future__ import annotations

from scheduling.services.forecasts.budget import Budget


class Dial:
    """A clock that stands until it is turned."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def test_pass_is_followed_by_a_rest_of_ten_times_its_cpu() -> None:
    clock, cpu = Dial(), Dial()
    budget = Budget(clock, cpu)
    with budget.spend(1):
        cpu.at += 3
        clock.at += 3
    clock.at = 1029.0
    assert not budget.allows(1)
    assert budget.allows(2)
    clock.at = 1030.0
    assert budget.allows(1)


def test_pass_that_fails_is_paid_for_as_well() -> None:
    clock, cpu = Dial(), Dial()
    budget = Budget(clock, cpu)
    try:
        with budget.spend(1):
            cpu.at += 1
            raise OSError
    except OSError:
        pass
    assert not budget.allows(1)
