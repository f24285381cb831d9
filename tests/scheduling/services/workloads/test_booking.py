"""Readings booked by workload and hour and into the samples: nothing is lost, nothing counts twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.cluster.metrics import PodUse
from scheduling.models import (
    Cluster,
    GpuUse,
    IdleEnd,
    IdleSpell,
    Queue,
    State,
    UsageSample,
    Workload,
)
from scheduling.models.ledger import Resolution
from scheduling.services.ledger.rollup import roll_up
from scheduling.services.workloads import idle
from scheduling.services.workloads.gpu_use import MeasuredGpuUse, add, hours_between, together
from scheduling.services.workloads.measure import book
from tests.scheduling.kube import policy

T0 = datetime(2026, 1, 5, 8, 50, tzinfo=UTC)
BUSY, RESTING = PodUse(4, 0.8, 30_000, 80_000, 1600), PodUse(4, 0.01, 2_000, 80_000, 300)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


class Held:
    """A cluster whose one workload holds four GPUs, and its readings."""

    def __init__(self, type_: str = "training") -> None:
        self.cluster: Cluster = policy("enforce", "http://unused", "research")
        self.queue = Queue.objects.get(name="research")
        self.h100 = self.cluster.gpu_classes.get()
        self.work = Workload.objects.create(
            cluster=self.cluster, queue=self.queue, uid="u1", name="train", namespace="default",
            gpus=4000, members=1, gpu_class=self.h100, state=State.RUNNING, submitted_at=at(-9000),
            started_at=at(-9000), admitted_at=at(-9000), user="imani", type=type_,
        )  # fmt: skip

    def look(self, seconds: float, use: PodUse | None = BUSY) -> None:
        readings = {("default", "train-0"): use} if use else {}
        book(self.cluster, readings, {("default", "train-0"): "u1"}, now=at(seconds))

    def hours(self) -> list[tuple[int, float, float, float]]:
        rows = GpuUse.objects.order_by("start")
        return [(row.start.hour, row.gpu_s, row.active_gpu_s, row.idle_gpu_s) for row in rows]


@pytest.mark.django_db
def test_first_look_books_nothing() -> None:
    held = Held()
    held.look(0)

    assert held.hours() == []


@pytest.mark.django_db
def test_time_between_two_looks_is_booked_by_hour() -> None:
    held = Held()
    held.look(570)
    held.look(630)

    assert held.hours() == [(8, 120.0, 96.0, 0.0), (9, 120.0, 96.0, 0.0)]


@pytest.mark.django_db
def test_look_at_the_same_moment_by_another_worker_books_nothing_more() -> None:
    held = Held()
    held.look(0)
    held.look(60)
    held.look(60)

    assert held.hours() == [(8, 240.0, 192.0, 0.0)]


@pytest.mark.django_db
def test_gap_in_which_nobody_looked_is_left_out() -> None:
    held = Held()
    held.look(0)
    held.look(600)
    held.look(630)

    assert sum(row[1] for row in held.hours()) == 120.0


@pytest.mark.django_db
def test_work_that_began_since_the_last_look_is_booked_from_its_start() -> None:
    held = Held()
    held.look(0, None)
    Workload.objects.update(started_at=at(45))
    held.look(60)

    assert held.hours() == [(8, 60.0, 48.0, 0.0)]


@pytest.mark.django_db
def test_minutes_of_each_queue_up_to_the_root_say_what_was_used() -> None:
    held = Held()
    root = Queue.objects.get(parent=None, cluster=held.cluster)
    for queue in (held.queue, root):
        for minute in (0, 1):
            UsageSample.objects.create(
                queue=queue, gpu_class=held.h100, resolution=Resolution.MINUTE,
                start=at(60 * minute), seconds=60, allocated_gpus=8000,
            )  # fmt: skip
    held.look(0)
    held.look(90)

    used = UsageSample.objects.values_list("used_gpus", flat=True)
    assert list(used) == pytest.approx([6400.0] * 4)


@pytest.mark.django_db
def test_roll_up_takes_what_was_measured_after_it_had_run() -> None:
    held = Held()
    held.cluster.clock_real, held.cluster.clock_start = datetime.now(UTC), at(7200)
    held.cluster.save()
    sample = UsageSample.objects.create(
        queue=held.queue, gpu_class=held.h100, resolution=Resolution.MINUTE, start=at(0), seconds=60,
        allocated_gpus=4000,
    )  # fmt: skip
    roll_up(held.cluster, since=at(0))
    sample.used_gpus = 3000
    sample.save()
    roll_up(held.cluster, since=at(0))

    hour = UsageSample.objects.get(resolution=Resolution.HOUR)
    assert hour.used_gpus == 3000


@pytest.mark.django_db
def test_gpus_on_which_nothing_runs_begin_a_spell_that_use_ends() -> None:
    held = Held()
    for seconds in (0, 60):
        held.look(seconds, RESTING)
    spell = IdleSpell.objects.get()
    assert (spell.since, spell.until, spell.gpus, spell.memory_mib) == (at(0), None, 4000, 2000)

    held.look(600, BUSY)

    spell.refresh_from_db()
    assert (spell.until, spell.ended) == (at(600), IdleEnd.USED)


@pytest.mark.django_db
def test_short_pause_is_forgotten() -> None:
    held = Held()
    held.look(0, RESTING)
    held.look(60, BUSY)

    assert not IdleSpell.objects.exists()


@pytest.mark.django_db
def test_spell_of_work_that_ended_was_given_back() -> None:
    held = Held()
    held.look(0, RESTING)
    Workload.objects.update(state=State.FINISHED, finished_at=at(400))
    held.look(500, None)

    spell = IdleSpell.objects.get()
    assert (spell.until, spell.ended) == (at(400), IdleEnd.GIVEN_BACK)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "due"),
    [
        ({}, True),
        ({"type_": "training"}, False),
        ({"cull": None}, False),
        ({"told": None}, False),
        ({"told": 3500}, False),
        ({"kept": 3700}, False),
        ({"kept": 3500}, True),
        ({"now": 3500}, False),
    ],
)
def test_notebook_is_culled_once_it_idled_and_was_told_for_long_enough(
    change: dict[str, int | None], due: bool
) -> None:
    rule = {"type_": "interactive", "cull": 3600, "told": 1800, "kept": None, "now": 3600} | change
    held = Held(str(rule["type_"]))
    held.cluster.cull_after_s = rule["cull"]
    held.look(0, RESTING)
    told, kept, now = (
        None if v is None else at(v) for v in (rule["told"], rule["kept"], rule["now"])
    )
    IdleSpell.objects.update(first_told_at=told, kept_until=kept)
    assert now is not None

    assert idle.due_to_cull(held.cluster, now).exists() == due


@given(
    st.lists(
        st.tuples(st.integers(1, 9000), st.floats(0, 1), st.integers(1, 16)),
        min_size=1,
        max_size=12,
    )
)
def test_hours_add_up_to_all_that_was_measured(looks: list[tuple[int, float, int]]) -> None:
    rows: dict[datetime, GpuUse] = {}
    now, gpu_s, active_s = T0, 0.0, 0.0
    for seconds, activity, devices in looks:
        use = PodUse(devices, activity, 100.0, 200.0, 10.0)
        for begin, end in hours_between(now, now + timedelta(seconds=seconds)):
            hour = begin.replace(minute=0, second=0)
            add(rows.setdefault(hour, GpuUse(start=hour)), use, (end - begin).total_seconds())
        now += timedelta(seconds=seconds)
        gpu_s += devices * seconds
        active_s += devices * seconds * activity

    assert sum(row.gpu_s for row in rows.values()) == pytest.approx(gpu_s)
    assert sum(row.active_gpu_s for row in rows.values()) == pytest.approx(active_s)
    assert all(row.active_gpu_s <= row.gpu_s * (1 + 1e-9) for row in rows.values())
    assert all(row.memory_mib == pytest.approx(100.0) for row in rows.values())


def test_pods_of_one_workload_count_by_their_gpus() -> None:
    whole = together([PodUse(1, 1.0, 10, 20, 5), PodUse(3, 0.2, 30, 20, 6)])

    assert whole == PodUse(4, pytest.approx(0.4), pytest.approx(25.0), 20.0, 11.0)


def test_work_is_idle_below_a_twentieth() -> None:
    assert [MeasuredGpuUse(Workload(), PodUse(1, a)).is_idle for a in (0.049, 0.05)] == [
        True,
        False,
    ]
