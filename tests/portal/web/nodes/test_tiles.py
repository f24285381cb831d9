"""What the tiles of a node say, and of whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.web.nodes.letters import letters
from portal.web.nodes.tiles import Owner, Promise, Seat, runs
from scheduling.models import Node

G = 1000
VISION = Owner("VI", 1, "vision")


def node(**fields):
    return Node(name="n1", **{"gpus": 8 * G, "ready": True, **fields})


def held(name="w1", gpus=4 * G, *, share=False):
    return Seat(f"uid-{name}", name, gpus, share, VISION)


def shown(*args, wanted=G):
    return [(run.kind, run.count) for run in runs(*args, wanted)]


def test_node_shows_each_workload_then_what_is_free():
    assert shown(node(allocated_gpus=6 * G), [held(gpus=2 * G), held("w2")]) == [
        ("work", 4),
        ("work", 2),
        ("free", 2),
    ]


def test_what_the_reader_may_not_see_has_no_name():
    (other, free) = runs(node(allocated_gpus=3 * G), [], G)
    assert (other.kind, other.count, free.count) == ("other", 3, 5)
    assert "another team" in other.says


def test_free_gpus_too_few_for_what_waits_are_fragmented():
    assert shown(node(allocated_gpus=6 * G), [held(gpus=6 * G)], wanted=4 * G)[-1] == (
        "fragmented",
        2,
    )


def test_shares_of_gpus_stand_on_the_gpus_that_they_fill_together():
    shares = [held("a", 500, share=True), held("b", 700, share=True)]
    (run, _) = runs(node(allocated_gpus=1200), shares, G)
    assert (run.kind, run.count) == ("shared", 2)
    assert "b of vision, a of vision" in run.says


def test_node_that_takes_no_work_is_down_whatever_it_holds():
    assert shown(node(ready=False, allocated_gpus=4 * G), [held()]) == [("down", 8)]


def test_what_pods_outside_the_queues_hold_is_told_apart():
    assert ("outside", 3) in shown(node(foreign_gpus=3 * G), [])


@given(
    gpus=st.integers(0, 16),
    work=st.lists(st.integers(1, 12), max_size=5),
    allocated=st.integers(0, 20),
    foreign=st.integers(0, 20),
)
def test_tiles_are_as_many_as_gpus_whatever_the_rows_say(gpus, work, allocated, foreign):
    found = runs(
        node(gpus=gpus * G, allocated_gpus=allocated * G, foreign_gpus=foreign * G),
        [held(f"w{i}", n * G) for i, n in enumerate(work)],
        G,
    )
    assert sum(run.count for run in found) == gpus


@pytest.mark.parametrize(
    ("names", "pairs"),
    [
        (["pretraining", "products", "a", "a1"], ["PR", "PO", "A0", "A1"]),
        (["search-eval", "search"], ["SE", "SA"]),
    ],
)
def test_letters_tell_queues_apart(names, pairs):
    assert list(letters(names).values()) == pairs


def kept(gpus, *, rival="jobs/ns/next"):
    return Promise(Seat("uid-next", "next", gpus, False, VISION), rival)


def framed(*args):
    return [(run.kind, run.count, bool(run.kept_for)) for run in runs(*args)]


def test_free_gpus_that_are_kept_for_work_that_waits_are_framed():
    found = framed(node(allocated_gpus=4 * G), [held()], G, [kept(3 * G)])
    assert found == [("work", 4, False), ("free", 3, True), ("free", 1, False)]


def test_who_leaves_for_it_is_framed_first_and_idle_gpus_for_the_rest():
    leaves = Seat("uid-w1", "w1", 4 * G, False, VISION, 0, "jobs/ns/next")
    found = framed(node(allocated_gpus=4 * G), [leaves], G, [kept(6 * G)])
    assert found == [("work", 4, True), ("free", 2, True), ("free", 2, False)]


def test_frame_says_for_whom():
    (first, _) = runs(node(), [], G, [kept(3 * G)])
    assert first.says == "3 free, kept for next of vision"


def test_who_leaves_for_another_is_not_framed():
    leaves = Seat("uid-w1", "w1", 4 * G, False, VISION, 0, "jobs/ns/else")
    found = framed(node(allocated_gpus=4 * G), [leaves], G, [kept(2 * G)])
    assert found == [("work", 4, False), ("free", 2, True), ("free", 2, False)]


def test_colour_of_a_workload_is_the_same_at_every_look():
    assert held().tone == held().tone
    assert {held(f"w{i}").tone for i in range(60)} == {1, 2, 3, 4, 5, 6}
