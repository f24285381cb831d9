"""Work that may run on several classes, of which one is faster, and its quota alone."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from scheduling.models import Cluster, GpuClass, Outcome, Prediction, Queue, State, Workload
from scheduling.services.queues import leads
from scheduling.services.queues.own_quotas import Layout, OwnQuotas, lead_s, longer, ratios_of
from tests.scheduling.kube import policy

pytestmark = pytest.mark.django_db
FAST, SLOW = "h100-80gb", "l4"
RATIOS = {FAST: 1.0, SLOW: 0.25}
"""On the slow class a run takes four times as long."""


class Owner:
    """A queue that owns one node of the slow class, on a cluster with both."""

    def __init__(self) -> None:
        self.cluster: Cluster = policy("observe", "http://unused", "research")
        self.queue = Queue.objects.get(name="research")
        made = [
            GpuClass.objects.get_or_create(cluster=self.cluster, name=name)[0]
            for name in (FAST, SLOW)
        ]
        self.classes = {one.name: one for one in made}
        self.layout = Layout(
            {self.queue.pk: 0}, {FAST: 0, SLOW: 1}, ((0,), (8000,)), (8000, 8000),
            {one.pk: one.name for one in made},
        )  # fmt: skip
        self.live: dict[str, Workload] = {}
        self.own = OwnQuotas(self.cluster)
        self.t0 = self.cluster.now().replace(microsecond=0)

    def at(self, seconds: float) -> datetime:
        return self.t0 + timedelta(seconds=seconds)

    def come(self, uid: str, seconds: float, *, on: str = "", ratios: bool = True) -> Workload:
        row = Workload.objects.create(
            cluster=self.cluster, queue=self.queue, uid=uid, name=uid, namespace="default",
            gpus=8000, gpu_classes=[FAST, SLOW], submitted_at=self.at(seconds),
            state=State.RUNNING if on else State.PENDING, members=int(bool(on)),
            started_at=self.at(seconds) if on else None, gpu_class=self.classes.get(on),
        )  # fmt: skip
        if ratios:
            Prediction.objects.create(
                workload=row, at=self.t0, told_at=self.t0, paces=RATIOS, p10_s=1, p50_s=1,
                p90_s=1, told_p10_s=1, told_p50_s=1, told_p90_s=1,
            )  # fmt: skip
        self.live[uid] = row
        return row

    def look(self, seconds: float, *ended: str) -> list[str]:
        over = {}
        for uid in ended:
            row = over[uid] = self.live.pop(uid)
            row.state, row.finished_at = State.FINISHED, self.at(seconds)
            row.outcome = Outcome.SUCCEEDED
            row.save()
        written = self.own.follow(self.live, over, self.layout, self.at(seconds))
        return sorted(row.uid for row in written)

    def restart(self) -> None:
        """As after kill -9: of what was kept only rows are left."""
        for row in self.live.values():
            row.save()
        self.own = OwnQuotas(self.cluster)


def test_run_that_borrowed_the_fast_class_is_ahead_by_what_the_slow_one_would_take() -> None:
    owner = Owner()
    row = owner.come("a", 0, on=FAST)

    assert owner.look(0) == ["a"]

    assert (row.class_on_own_quota, row.own_pace) == (SLOW, 4.0)
    assert lead_s(row, owner.at(100)) == 300


def test_next_of_the_queue_would_start_when_the_slow_run_would_have_ended() -> None:
    owner = Owner()
    owner.come("a", 0, on=FAST)
    then = owner.come("b", 10)
    owner.look(20)

    owner.look(100, "a")
    owner.look(1000)

    assert then.virtual_start_at == owner.at(400)


def test_killed_worker_finds_from_the_rows_how_long_the_slow_run_goes_on() -> None:
    owner = Owner()
    owner.come("a", 0, on=FAST)
    then = owner.come("b", 10)
    owner.look(20)
    owner.look(100, "a")

    owner.restart()
    owner.look(150)
    owner.look(1000)

    assert then.virtual_start_at == owner.at(400)


def test_start_on_another_class_than_before_is_compared_anew() -> None:
    owner = Owner()
    row = owner.come("a", 0)
    owner.look(0)
    row.state, row.started_at, row.members = State.RUNNING, owner.at(50), 1
    row.gpu_class = owner.classes[SLOW]

    first = owner.look(60)
    row.gpu_class = owner.classes[FAST]
    second = owner.look(70)

    assert (first, second, row.own_pace) == ([], ["a"], 4.0)


def test_work_whose_paces_nobody_knows_takes_as_long_on_either_class() -> None:
    owner = Owner()
    row = owner.come("a", 0, on=FAST, ratios=False)
    owner.look(0)

    assert row.own_pace == 1.0


def test_what_ended_later_only_than_on_a_faster_class_of_its_own_is_told_as_late() -> None:
    owner = Owner()
    row = owner.come("a", 0, on=SLOW)
    owner.look(0)
    row.class_on_own_quota, row.own_pace = FAST, 0.25
    owner.look(1000, "a")

    (late,) = leads.ended_late(Workload.objects.filter(pk=row.pk))

    assert late.late_s == pytest.approx(750)


def test_ratios_are_asked_for_once_and_only_of_work_that_may_choose(
    django_assert_num_queries: pytest.FixtureRequest,
) -> None:
    owner = Owner()
    rows = [owner.come("a", 0), owner.come("b", 1)]
    single = owner.come("c", 2)
    single.gpu_classes = [FAST]

    with django_assert_num_queries(1):  # type: ignore[operator]
        found = ratios_of([*rows, single])
    with django_assert_num_queries(0):  # type: ignore[operator]
        ratios_of([single])

    assert found == {"a": RATIOS, "b": RATIOS}


@pytest.mark.parametrize(
    ("ratios", "times"), [(RATIOS, 4.0), ({}, 1.0), ({FAST: 1.0}, 1.0), ({FAST: 0.0, SLOW: 1.0}, 1.0)]
)  # fmt: skip
def test_run_takes_longer_by_the_ratio_of_both_classes(
    ratios: dict[str, float], times: float
) -> None:
    assert longer(ratios, FAST, SLOW) == times
