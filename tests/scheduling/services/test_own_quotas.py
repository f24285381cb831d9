"""What everybody would have on the quota of their queue alone, in the worker and after it was killed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduling.engine.merit.gittins import UNKNOWN_S
from scheduling.models import Cluster, Outcome, Queue, Sharing, State, Workload
from scheduling.services.queues import leads, own_quotas
from scheduling.services.queues.own_quotas import Layout, OwnQuotas, lead_s
from scheduling.services.queues.sharing import sharing_of
from scheduling.services.queues.standings import RunTimes
from scheduling.services.snapshot import build as snapshots
from tests.scheduling.killing import KilledError, restart
from tests.scheduling.kube import World, policy
from workshop.demo.past.alone import play_back

T0 = datetime(2026, 1, 5, 8, tzinfo=UTC)
LAYOUT = Layout({1: 0}, {"gpu": 0}, ((8000,),), (8000,))
"""Queue 1 owns 8 GPUs, one node."""


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def work(uid: str, gpus: int, submitted: float, started: float | None = None) -> Workload:
    return Workload(
        uid=uid, name=uid, queue_id=1, queue_label="q", gpus=gpus * 1000, submitted_at=at(submitted),
        state=State.PENDING if started is None else State.RUNNING,
        started_at=None if started is None else at(started), members=started is not None,
    )  # fmt: skip


def end(row: Workload, seconds: float) -> Workload:
    row.state, row.finished_at, row.outcome = State.FINISHED, at(seconds), Outcome.SUCCEEDED
    return row


class Watched:
    """A worker's partitions, and the rows that it holds."""

    def __init__(self, *rows: Workload) -> None:
        known = Cluster.objects.first()
        self.cluster = known or policy("observe", "http://unused", "research")
        self.rows = {row.uid: row for row in rows}
        self.own = OwnQuotas(self.cluster)

    def look(self, seconds: float, **ended: Workload) -> list[str]:
        for uid in ended:
            self.rows.pop(uid, None)
        began = self.own.follow(self.rows, ended, LAYOUT, at(seconds))
        return sorted(row.uid for row in began)

    def restart(self) -> None:
        """The process was killed: what it kept is gone, the rows are not."""
        self.own = OwnQuotas(self.cluster)


@pytest.mark.django_db
def test_workload_that_its_quota_alone_would_start_begins_there() -> None:
    watched = Watched(work("a", 6, 0), work("b", 4, 10))

    assert watched.look(20) == ["a"]
    assert watched.rows["a"].virtual_start_at == at(20)
    assert watched.rows["b"].virtual_start_at is None


@pytest.mark.django_db
def test_what_runs_for_real_fills_the_partition_in_order_of_start() -> None:
    watched = Watched(work("late", 8, 0, started=60), work("soon", 8, 10, started=30))

    watched.look(100)

    assert watched.rows["soon"].virtual_start_at == at(30)
    assert watched.rows["late"].virtual_start_at is None


@pytest.mark.django_db
def test_killed_worker_goes_on_from_the_rows() -> None:
    watched, twin = (
        Watched(work("a", 8, 0, started=0), work("b", 8, 10), work("c", 8, 20)) for _ in range(2)
    )
    for each in (watched, twin):
        each.look(30)
    watched.restart()
    watched.look(40)

    for each in (watched, twin):
        each.look(100, a=end(each.rows["a"], 100))
        each.look(101)

    assert watched.rows["b"].virtual_start_at == twin.rows["b"].virtual_start_at == at(100)
    assert watched.rows["c"].virtual_start_at is None


@pytest.mark.django_db
def test_worker_that_was_down_when_a_run_ended_finds_its_place_free() -> None:
    watched = Watched(work("a", 8, 0, started=0), work("b", 8, 10))
    watched.look(20)
    end(watched.rows.pop("a"), 50)

    watched.restart()
    watched.look(60)

    assert watched.rows["b"].virtual_start_at == at(60)


@pytest.mark.django_db
def test_clock_that_jumps_back_changes_nothing() -> None:
    watched = Watched(work("a", 8, 0))
    watched.look(1000)
    watched.rows["b"] = work("b", 8, 1001)

    watched.look(10)
    watched.look(1100, a=end(watched.rows["a"], 1100))

    assert watched.rows["b"].virtual_start_at is not None


@pytest.mark.django_db
def test_clock_that_jumps_ahead_plays_what_lies_between() -> None:
    watched = Watched(work("a", 8, 0, started=0), work("b", 8, 10))
    watched.look(20)
    watched.look(30, a=end(watched.rows["a"], 25))

    watched.look(10_000_000)

    assert watched.rows["b"].virtual_start_at == at(30)


@pytest.mark.django_db
def test_more_work_than_tables_hold_widens_them() -> None:
    watched = Watched(work("a", 8, 0))
    watched.look(1)
    watched.rows |= {f"w{i}": work(f"w{i}", 8, 2) for i in range(600)}

    watched.look(3)
    watched.look(10, a=end(watched.rows["a"], 9))

    begun = [row.uid for row in watched.rows.values() if row.virtual_start_at]
    assert len(begun) == 1


@pytest.mark.django_db
def test_past_is_played_back_as_it_would_have_been_lived() -> None:
    rows = [
        end(work("a", 8, 0, started=0), 100),
        end(work("b", 8, 10, started=10), 60),
        end(work("c", 8, 20, started=60), 200),
    ]

    play_back(rows, LAYOUT, policy("observe", "http://unused", "research"))

    assert [row.virtual_start_at for row in rows] == [at(0), at(100), at(150)]


@pytest.mark.parametrize(
    ("started", "virtual", "saved_s", "pace", "lead"),
    [
        (None, 100, 0, 1, -900),
        (None, 100, 1000, 1, 100),
        (50, 100, 0, 1, 50),
        (400, 100, 0, 1, -300),
        (400, 100, 0, 2, 300),
        (None, 100, 400, 0.5, -700),
    ],
)
def test_lead_is_how_much_later_it_would_be_as_far_alone(
    started: float | None, virtual: float, saved_s: float, pace: float, lead: float
) -> None:
    row = work("a", 1, 0, started)
    row.virtual_start_at, row.saved_s, row.own_pace = at(virtual), saved_s, pace

    assert lead_s(row, at(1000)) == lead


def test_cancelled_runs_say_nothing_of_run_times() -> None:
    times = RunTimes()
    ran = [end(work(f"w{i}", 1, 0, started=0), 60) for i in range(3)]
    cancelled = end(work("x", 1, 0, started=0), 9000)
    cancelled.outcome = Outcome.CANCELLED

    times.note([*ran, cancelled])

    assert times.expected_s([work("new", 1, 0)], [0.0]) == [60.0]


@pytest.mark.django_db(transaction=True)
def test_cycle_keeps_when_each_would_have_begun(world: World) -> None:
    world.job("inside", gpus=8)
    world.job("beyond", gpus=8)
    world.catch_up()
    world.cycle()

    begun = {row.name for row in Workload.objects.exclude(virtual_start_at=None)}

    assert len(begun) == 1
    assert Workload.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_worker_killed_before_it_committed_finds_the_same_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.job("inside", gpus=8)
    world.catch_up()
    with monkeypatch.context() as dying:
        dying.setattr(own_quotas, "save", lambda began: (_ for _ in ()).throw(KilledError))
        with pytest.raises(KilledError):
            world.cycle()
    restart(world)

    world.catch_up()
    world.cycle()

    assert world.row("inside").virtual_start_at is not None


@pytest.mark.django_db(transaction=True)
def test_snapshot_says_how_work_stands_where_its_subtree_promises(world: World) -> None:
    Queue.objects.filter(name="research").update(sharing="promise")
    world.job("mine", gpus=8)
    world.catch_up()
    world.cycle()

    snapshot = snapshots.live(world.cluster)

    (mine,) = snapshot.workloads
    (queue,) = (q for q in snapshot.queues if q.name == "research")
    assert mine.virtual_start is not None
    assert mine.rank_s == UNKNOWN_S
    assert queue.sharing is Sharing.PROMISE
    assert queue.evictions_left == pytest.approx(0.05)


@pytest.mark.django_db
def test_queues_share_as_the_nearest_above_says_and_all_below_merit_alike() -> None:
    cluster = policy("observe", "http://unused", "research", "products")
    research = Queue.objects.get(name="research")
    research.sharing = "promise"
    research.save()
    below = Queue.objects.create(
        cluster=cluster, name="below", parent=research, sharing="throughput"
    )

    found = sharing_of(list(Queue.objects.all()), Sharing.FAIR_SHARE)

    assert found[below.pk] == (Sharing.PROMISE, research.pk)
    assert found[Queue.objects.get(name="products").pk] == (Sharing.FAIR_SHARE, None)


@pytest.mark.django_db
def test_cluster_that_shares_by_merit_speaks_for_every_queue() -> None:
    policy("observe", "http://unused", "research", "products")
    Queue.objects.filter(name="research").update(sharing="fair_share")
    root = Queue.objects.get(parent=None)

    found = sharing_of(list(Queue.objects.all()), Sharing.PROMISE)

    assert set(found.values()) == {(Sharing.PROMISE, root.pk)}


@pytest.mark.django_db
def test_leads_are_told_by_queue_and_who_ended_late() -> None:
    cluster = policy("observe", "http://unused", "research")
    queue = Queue.objects.get(name="research")
    for uid, began, real in (("early", 500, 0), ("late", 0, 500)):
        row = end(work(uid, 1, 0, started=real), 1000 + real)
        row.cluster, row.queue, row.virtual_start_at = cluster, queue, at(began)
        row.namespace = "default"
        row.save()

    ended = leads.ended(cluster, at(0), at(10_000))

    assert leads.by_queue(ended)[queue.pk] == leads.QueueLead(ended=2, late=1, lead_s=0.0)
    (late,) = leads.ended_late(ended)
    assert (late.workload.uid, late.late_s) == ("late", 500.0)
