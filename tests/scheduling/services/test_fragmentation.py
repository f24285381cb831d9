"""One definition of fragmentation: what waits and the page's capacity agree."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from portal.selectors.overview import capacity
from portal.selectors.reasons import Ends, ended_by
from scheduling.engine import MILLI, Reason, left_over, wanted_member
from scheduling.engine.placement.fragmentation import ROOM
from scheduling.models import GpuClass, Quota, State
from tests.scheduling.kube import World

G = MILLI


def test_capacity_shows_as_fragmented_what_waits_as_scattered(world: World) -> None:
    Quota.objects.update(borrowing_limit_gpus=8000)
    for name, gpus in (("a", 6), ("b", 5)):
        world.job(name, gpus=gpus)
        world.cycles_until(lambda name=name: world.row(name).state == State.RUNNING)
    world.job("wide", gpus=4, queue="products")
    world.cycles_until(lambda: world.row("wide").reason == Reason.FRAGMENTED)
    waits = world.row("wide").numbers
    [one] = capacity(world.cluster, GpuClass.objects.all())
    assert (waits["free"], waits["nodes"]) == (5, 2)
    assert (one.fragmented, one.free) == (5 * G, 0)


@given(
    free=st.lists(st.integers(0, 8), min_size=1, max_size=6),
    size=st.integers(1, 8),
    least=st.integers(1, 6),
    others=st.lists(
        st.tuples(
            st.integers(1, 8), st.sampled_from([r for r in Reason if r is not Reason.FRAGMENTED])
        )
    ),
)
def test_where_somebody_waits_as_scattered_some_gpu_is_fragmented(
    free: list[int], size: int, least: int, others: list[tuple[int, Reason]]
) -> None:
    assume(sum(free) >= least * size > size * sum(f // size for f in free))
    wanted = wanted_member([(size, Reason.FRAGMENTED), *others], [1])
    assert sum(left_over(f, wanted) for f in free) > 0


@given(free=st.integers(0, 16_000), member=st.integers(0, 8_000))
def test_what_is_left_over_is_of_what_is_free_and_less_than_a_member(
    free: int, member: int
) -> None:
    lost = left_over(free, member)
    assert 0 <= lost <= free
    assert lost < member or not member


@pytest.mark.parametrize(
    ("waiting", "running", "member"),
    [
        ([(8, "fragmented"), (4, "fragmented"), (1, "no_free_gpus")], [2], 4),
        ([(4, "no_free_gpus"), (1, "at_limit")], [2], 4),
        ([(4, "at_limit"), (2, "above_fair_share")], [1], 2),
        ([(0, "no_free_gpus")], [1, 2, 8], 2),
        ([], [], 0),
    ],
    ids=["scattered first", "then room", "then all that wait", "then what runs", "nobody"],
)
def test_member_that_counts_is_the_smallest_of_the_first_that_there_are(
    waiting: list[tuple[int, str]], running: list[int], member: int
) -> None:
    assert wanted_member(waiting, running) == member


def test_reasons_of_room_are_those_that_the_help_says_room_ends() -> None:
    assert frozenset(ROOM) == ended_by(Ends.ROOM)
