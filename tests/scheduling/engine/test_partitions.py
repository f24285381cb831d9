"""Own partitions played along: what starts when on its queue's own nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduling.engine.compile.structs import as_struct
from scheduling.engine.merit import partitions
from scheduling.engine.merit.partitions import OVER, UNKNOWN, Partitions, empty_partitions


class Own:
    """Queues with so many GPUs each on nodes of 8, one class; runs are numbered as they come."""

    def __init__(self, *gpus: int, classes: int = 1) -> None:
        nominal = np.array([[g * 1000 for g in gpus]] * classes, np.int64)
        sizes = np.full(classes, 8000, np.int64)
        self.tables: Partitions = empty_partitions(nominal, sizes, 32, classes, 8)
        self.struct: Any = as_struct(self.tables)
        self.runs = 0

    def come(self, at: int, gpus: int, queue: int = 0, members: int = 1, wish: Any = (0,)) -> int:
        run, t = self.runs, self.tables
        self.runs += 1
        t.queue[run], t.need[run], t.members[run] = queue, gpus * 1000, members
        t.wish[:, run] = -1
        t.wish[: len(wish), run] = wish
        partitions.play(self.struct, at - 1)
        partitions.submit_run(self.struct, run)
        partitions.play(self.struct, at)
        return run

    def end(self, run: int, run_s: int, at: int) -> None:
        partitions.play(self.struct, at - 1)
        partitions.end_run(self.struct, run, run_s, at)
        partitions.play(self.struct, at)

    def start(self, run: int) -> int:
        return int(self.tables.start[run])


def test_who_fits_starts_at_once_and_who_does_not_waits() -> None:
    own = Own(8)

    first, second = own.come(10, 6), own.come(20, 4)

    assert (own.start(first), own.start(second)) == (10, UNKNOWN)


def test_who_fits_passes_who_does_not() -> None:
    own = Own(8)
    own.come(10, 6)

    own.come(20, 4)
    small = own.come(30, 2)

    assert own.start(small) == 30


def test_queue_without_nominal_starts_nothing() -> None:
    own = Own(0, 8)

    assert own.start(own.come(10, 1)) == UNKNOWN


def test_run_that_ended_sooner_for_real_holds_its_place_as_long_as_it_ran() -> None:
    own = Own(8)
    first, second = own.come(10, 8), own.come(20, 8)

    own.end(first, 100, at=60)
    partitions.play(own.struct, 500)

    assert own.start(second) == 110


def test_run_that_ended_later_for_real_ends_there_at_once() -> None:
    own = Own(8)
    first, second = own.come(10, 8), own.come(20, 8)

    own.end(first, 100, at=400)

    assert own.start(second) == 400


def test_run_that_ended_before_it_began_there_ends_its_run_time_after_it_begins() -> None:
    own = Own(8)
    first, second = own.come(0, 8), own.come(10, 8)
    third = own.come(20, 8)

    own.end(second, 50, at=80)
    own.end(first, 100, at=100)
    partitions.play(own.struct, 1000)

    assert (own.start(second), own.start(third)) == (100, 150)


def test_what_was_withdrawn_leaves_the_line() -> None:
    own = Own(8)
    first, gone = own.come(0, 8), own.come(10, 8)
    last = own.come(20, 8)

    own.end(gone, 0, at=30)
    own.end(first, 40, at=40)

    assert own.start(last) == 40
    assert own.tables.state[gone] == OVER


def test_gang_takes_whole_nodes_and_its_rest_the_freest() -> None:
    own = Own(24)
    own.come(0, 2)

    gang = own.come(10, 4, members=3)

    assert own.start(gang) == 10
    assert sorted(own.tables.usage[gang][:2].tolist()) == [4000, 8000]


def test_first_class_with_room_is_taken() -> None:
    own = Own(8, classes=2)
    own.come(0, 8, wish=(0,))

    other = own.come(10, 8, wish=(0, 1))

    assert own.start(other) == 10


def test_time_between_two_looks_is_played_in_order() -> None:
    one, many = Own(8), Own(8)
    for own in (one, many):
        runs = [own.come(0, 8) for _ in range(4)]
        for run in runs:
            own.end(run, 100, at=1)
    for at in range(0, 400, 7):
        partitions.play(many.struct, at)
    partitions.play(one.struct, 1000)
    partitions.play(many.struct, 1000)

    assert (
        [one.start(r) for r in range(4)] == [many.start(r) for r in range(4)] == [0, 100, 200, 300]
    )


@pytest.mark.parametrize(("gpus", "fits"), [(8, True), (9, False)])
def test_what_had_begun_goes_on_where_it_fits(gpus: int, fits: bool) -> None:
    own = Own(8)
    t = own.tables
    t.queue[5], t.need[5], t.members[5] = 0, gpus * 1000, 1
    t.wish[:, 5] = 0

    assert partitions.restore_run(own.struct, 5, 77, UNKNOWN, -1) is fits


def test_run_holds_its_place_for_as_long_as_it_takes_on_the_class_that_it_has_there() -> None:
    own = Own(8, classes=2)
    first, second = own.come(0, 8, wish=(1, 0)), own.come(0, 8, wish=(1,))
    own.tables.pace[0, first], own.tables.pace[1, first] = 2.5, 9.0

    own.end(first, 100, at=100)
    partitions.play(own.struct, 1000)

    assert own.start(second) == 250


@pytest.mark.parametrize(("before", "chosen"), [(-1, 0), (0, 0), (1, 1)])
def test_what_had_begun_goes_on_where_it_was(before: int, chosen: int) -> None:
    own = Own(8, classes=2)
    t = own.tables
    t.queue[5], t.need[5], t.members[5] = 0, 8000, 1
    t.wish[:, 5] = (1, 0)

    partitions.restore_run(own.struct, 5, 77, UNKNOWN, before)

    assert t.on[5] == chosen
