"""Any life of a cluster, embedded or real: what the snapshot of a cycle says of claims and evictions is what
the plan before it left, whatever ends, comes, leaves or dies in between."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.services.cycle import run as cycle
from scheduling.services.cycle.record import claims
from tests.scheduling.control_plane import ON
from tests.scheduling.kube import World
from tests.scheduling.lives import STEPS, Life, begun

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
LASTS = 100 if LONG else STEPS
"""At night lives are longer, and on a real control plane more."""


class DiedError(BaseException):
    """The worker, between the commit of a plan and the first write of it."""


@pytest.fixture(autouse=True)
def no_word_broken(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The worker, which holds itself against it, says the same."""
    yield
    said = [r.getMessage() for r in caplog.get_records("call") if r.name == claims.__name__]
    assert said == []


@pytest.fixture
def life(world: World, request: pytest.FixtureRequest) -> Iterator[Life]:
    with begun(world, request.param) as drawn:
        yield drawn


@pytest.mark.parametrize("life", range(2 if ON and LONG else 1), indirect=True)
def test_snapshot_states_what_the_plan_before_it_left(life: Life) -> None:
    for _ in range(LASTS):
        life.step()
    assert life.kept > 5  # Else nobody's claim was put to the test.


@pytest.mark.parametrize("life", [10], indirect=True)
def test_snapshot_states_what_a_plan_left_whose_worker_died_before_it_wrote(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any, **__: Any) -> Any:
        raise DiedError

    died = 0
    for _ in range(LASTS):
        if life.dice.random() < 0.3:
            life.dice.choice((life.come, life.come_urgent))()
            with monkeypatch.context() as dying:
                dying.setattr(cycle, "_enforce", die)
                with pytest.raises(DiedError):
                    life.world.cycle()
            life.compare()
            died += any(d.action == "evict" for d in life.lived[-1][1].decisions)
            life.restart()
        life.step()
    assert life.kept > 5
    assert died > 0
