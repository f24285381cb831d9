"""A life lived on the embedded cluster and in the simulator: what is counted, and that both can be lived."""

from __future__ import annotations

import pytest

from workshop.benches.worker.live_life import Course, Taken, Work, figures
from workshop.benches.worker.live_loop import lived, simulated_course

WORKS = [
    Work("v", 0, "research", "low", 8, 9000, 60),
    Work("u", 0, "research", "low", 2, 9000, 60),
    Work("b", 60, "products", "normal", 4, 900, 60),
]


def course(*, starts: float | None, again: float | None = None, end: float = 9000) -> Course:
    """``v`` and ``u`` leave for ``b`` at 100; the last of them is gone at 200."""
    made = Course(end_s=end)
    made.taken = [Taken(100, "v", "b", 8, keeps=6, nominal=8), Taken(100, "u", "b", 2)]
    made.gone |= {"v": [150.0], "u": [200.0]}
    made.starts |= {name: [at] for name, at in (("b", starts), ("v", again)) if at is not None}
    return made


@pytest.mark.parametrize(("starts", "percent"), [(500.0, 0.0), (501.0, 100.0), (None, 100.0)])
def test_evictions_are_in_vain_unless_their_work_starts_soon_after_they_are_gone(
    starts: float | None, percent: float
) -> None:
    assert figures(WORKS, course(starts=starts))["in_vain_pct"] == percent


def test_set_whose_end_the_life_does_not_show_is_left_out() -> None:
    assert figures(WORKS, course(starts=None, end=450))["evictions"] == 0


def test_work_that_was_cancelled_lost_nobody_in_vain() -> None:
    ended = course(starts=None)
    ended.ended["b"] = 300.0
    assert figures(WORKS, ended)["in_vain_pct"] == 0


def test_victim_that_starts_first_where_the_other_would_fit_overtakes() -> None:
    assert figures(WORKS, course(starts=300.0, again=250.0))["overtaken_pct"] == 50
    assert figures(WORKS, course(starts=300.0, again=350.0))["overtaken_pct"] == 0


def test_gpus_taken_and_nominal_left_are_counted() -> None:
    found = figures(WORKS, course(starts=300.0))
    assert found["taken_per_asked_max"] == 2.5
    assert found["below_nominal_pct"] == 100


@pytest.mark.django_db(transaction=True)
def test_life_on_the_embedded_cluster_is_the_one_of_the_simulator() -> None:
    works = [
        *(Work(f"v{i}", 1, "research", "low", 8, 9000, 120) for i in range(4)),
        Work("b", 150, "products", "normal", 8, 900, 60),
    ]
    hours = 0.6
    live, simulated = lived(works, hours), simulated_course(works, hours)
    assert [one.winner for one in live.taken] == ["b"]
    assert figures(works, live) == figures(works, simulated)
