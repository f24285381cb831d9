"""A life lived on the embedded cluster and in the simulator: what is counted, and that both can be lived."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import ceil

import pytest

from scheduling.engine import model as m
from scheduling.engine import plan
from workshop.benches.worker.live_life import (
    CYCLE_S,
    EvictionForOther,
    LifeCourse,
    drawn,
    figures,
    taken,
)
from workshop.benches.worker.live_loop import lived
from workshop.benches.worker.live_simulation import (
    CLASS,
    ORIGIN,
    Follow,
    is_due,
    others_make_room,
    simulated_course,
    template,
)

ASKED = {"v": 8.0, "u": 2.0, "b": 4.0}


def course(*, starts: float | None, again: float | None = None, end: float = 9000) -> LifeCourse:
    """``v`` and ``u`` leave for ``b`` at 100; the last of them is gone at 200."""
    made = LifeCourse(end_s=end)
    made.taken = [
        EvictionForOther(100, "v", "b", 8, keeps=6, nominal=8),
        EvictionForOther(100, "u", "b", 2),
    ]
    made.gone |= {"v": [150.0], "u": [200.0]}
    made.starts |= {name: [at] for name, at in (("b", starts), ("v", again)) if at is not None}
    return made


@pytest.mark.parametrize(("starts", "percent"), [(500.0, 0.0), (501.0, 100.0), (None, 100.0)])
def test_evictions_are_in_vain_unless_their_work_starts_soon_after_they_are_gone(
    starts: float | None, percent: float
) -> None:
    assert figures(ASKED, course(starts=starts))["in_vain_pct"] == percent


def test_set_whose_end_the_life_does_not_show_is_left_out() -> None:
    assert figures(ASKED, course(starts=None, end=450))["evictions"] == 0


def test_work_that_was_cancelled_lost_nobody_in_vain() -> None:
    ended = course(starts=None)
    ended.ended["b"] = 300.0
    assert figures(ASKED, ended)["in_vain_pct"] == 0


def test_victim_that_starts_first_where_the_other_would_fit_overtakes() -> None:
    assert figures(ASKED, course(starts=300.0, again=250.0))["overtaken_pct"] == 50
    assert figures(ASKED, course(starts=300.0, again=350.0))["overtaken_pct"] == 0


def test_gpus_taken_and_nominal_left_are_counted() -> None:
    found = figures(ASKED, course(starts=300.0))
    assert found["taken_per_asked_max"] == 2.5
    assert found["below_nominal_pct"] == 100


@pytest.mark.parametrize(("at", "percent"), [(750.0, 33.33), (751.0, 0.0)])
def test_victim_for_which_others_leave_soon_is_a_domino(at: float, percent: float) -> None:
    made = course(starts=300.0)
    made.taken.append(EvictionForOther(at, "u", "v", 2))
    assert figures(ASKED, made)["domino_pct"] == percent


@pytest.mark.parametrize(("day", "percent"), [(86_000.0, 25.0), (90_000.0, 0.0)])
def test_fourth_eviction_of_a_day_is_past_the_limit(day: float, percent: float) -> None:
    made = LifeCourse(end_s=99_000)
    made.taken = [EvictionForOther(at, "v", "b", 8) for at in (100.0, 200.0, 300.0, day)]
    assert figures(ASKED, made)["past_limit_pct"] == percent


@pytest.mark.parametrize(("rule", "percent"), [("owed_nominal", 0.0), ("rounded", 25.0)])
def test_what_nominal_owes_is_not_past_the_limit(rule: str, percent: float) -> None:
    made = LifeCourse(end_s=99_000)
    made.taken = [
        EvictionForOther(at, "v", "b", 8, rule=rule) for at in (100.0, 200.0, 300.0, 400.0)
    ]
    assert figures(ASKED, made)["past_limit_pct"] == percent


@pytest.mark.parametrize(("share", "nominal"), [(5.0, 5.0), (9.0, 8.0)])
def test_oversubscribed_nominal_counts_as_far_as_the_share(share: float, nominal: float) -> None:
    numbers = {"keeps": 6.0, "nominal": 8.0, "fair_share": share}
    assert taken(1, "v", "b", 8, "reclaimed", numbers, "rounded").nominal == nominal


@pytest.mark.parametrize(
    ("share", "figure"), [(7.0, "below_share_pct"), (8.0, "below_nominal_pct")]
)
def test_reclaim_is_below_the_share_where_that_is_less_than_nominal(
    share: float, figure: str
) -> None:
    numbers = {"keeps": 6.0, "nominal": 8.0, "fair_share": share}
    made = LifeCourse(end_s=9000, taken=[taken(1, "v", "b", 8, "reclaimed", numbers, "rounded")])
    found = figures(ASKED, made)
    assert {name for name in found if name.startswith("below_") and found[name]} == {figure}


@pytest.mark.parametrize("others", [True, False])
def test_domino_is_needless_where_others_would_make_room(others: bool) -> None:
    names = ["n0", "n1"] if others else ["n0"]
    whole = template()
    world = replace(
        whole,
        nodes=tuple(node for node in whole.nodes if node.name in names),
        queues=tuple(replace(q, quotas={CLASS: m.Quota(NOMINAL[q.name])}) for q in whole.queues),
        workloads=(*map(_running, names), _waiting()),
    )
    assert others_make_room(world, "on-n0", "b") is others


@pytest.mark.parametrize(("queue", "due"), [("research", True), ("products", False)])
def test_reservation_is_due_while_the_share_holds_its_work(queue: str, due: bool) -> None:
    """``products`` has 8 of the 32 GPUs, of which ``queue`` runs the first 8."""
    first, *others = (_running(f"n{i}") for i in range(4))
    world = replace(template(), workloads=(replace(first, queue=queue), *others, _waiting()))
    assert is_due(world, plan(world), "b") is due


NOMINAL = {"research": 0, "products": 8 * m.MILLI, "platform": 0}


def _running(node: str) -> m.Workload:
    """Eight borrowed GPUs on ``node``."""
    work = m.Workload(f"on-{node}", "research", "low", ORIGIN - timedelta(hours=2), 8 * m.MILLI)
    return replace(
        work, phase=m.Phase.RUNNING, gpu_class=CLASS, gpu_classes=(CLASS,), placement={node: 1},
        started=work.submitted,
    )  # fmt: skip


def _waiting() -> m.Workload:
    since = ORIGIN - timedelta(hours=1)
    return m.Workload("b", "products", "normal", since, 8 * m.MILLI, gpu_classes=(CLASS,))


@pytest.mark.django_db(transaction=True)
def test_life_on_the_embedded_cluster_is_the_one_of_the_simulator_to_the_second() -> None:
    """The last eviction waits for a cooldown that ends at a tick."""
    hours = 1.7
    works = drawn(hours, 1)
    live, simulated = lived(works, hours), simulated_course(works, hours)
    assert [steps(live, work.name) for work in works] == [
        steps(simulated, work.name) for work in works
    ]
    assert len(live.taken) == 5
    assert sorted(one[:3] for one in live.taken) == sorted(one[:3] for one in simulated.taken)


def steps(life: LifeCourse, name: str) -> tuple[list[int], list[int], int | None]:
    """When it started, when the next plan after it had left was made, and when it ended."""
    left = [ceil(at / CYCLE_S) * CYCLE_S for at in life.gone.get(name, [])]
    end = life.ended.get(name)
    return list(map(round, life.starts.get(name, []))), left, end and round(end)


@pytest.mark.parametrize(
    ("after_s", "action", "lost"),
    [
        (1800, m.Action.RESERVE, 0),
        (1800, m.Action.ADMIT, 0),
        (1801, m.Action.RESERVE, 1),
        (1801, m.Action.ADMIT, 1),
        (1801, m.Action.WAIT, 0),
    ],
)
def test_reservation_is_lost_unless_its_work_is_served_soon_after_it_was_given_up(
    after_s: int, action: m.Action, lost: int
) -> None:
    follow = Follow(ORIGIN)
    for at_s, told in ((0, m.Action.RESERVE), (120, m.Action.WAIT), (120 + after_s, action)):
        reason = m.Reason.RESERVED if told is m.Action.RESERVE else m.Reason.FRAGMENTED
        line = m.Decision("work", told, reason)
        follow.on_plan(ORIGIN + timedelta(seconds=at_s), None, m.Plan({}, (line,)))
    assert (follow.course.given_up, follow.course.lost) == (1, lost)
    assert len(follow.dropped) == (action is m.Action.WAIT)
