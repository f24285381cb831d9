"""What is learned of checkpoints, from whom, and for whom it speaks."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from scheduling.cluster.adapters import Sighting
from scheduling.models import CheckpointHabit, Cluster, Eviction, State, Workload
from scheduling.services.cycle import run as cycle
from scheduling.services.snapshot import build as snapshots
from scheduling.services.snapshot.build import WorkloadFacts, checkpoint_of
from scheduling.services.snapshot.situations import Situation
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.workloads.checkpoints import FELLOWS, KEPT, Habits, Source, outlook, save
from tests.scheduling.killing import KilledError, restart
from tests.scheduling.kube import JOBS, World, policy

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
I = 1800  # noqa: E741 - the interval of the rule

Recent = Sequence[tuple[str, Sequence[int]]]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def told(count: int, interval_s: int = I, name: str = "t") -> list[tuple[str, list[int]]]:
    return [(f"{name}{i}", [interval_s]) for i in range(count)]


def silent(count: int) -> list[tuple[str, list[int]]]:
    return [(f"s{i}", []) for i in range(count)]


def habit(recent: Recent, *, queue: int = 1, user: str = "ann") -> CheckpointHabit:
    return CheckpointHabit(queue_id=queue, user=user, recent=[list(pair) for pair in recent])


def run(
    uid: str = "w",
    *,
    queue: int | None = 1,
    user: str = "ann",
    state: str = State.RUNNING,
    declared: int | None = None,
    announced: float | None = None,
) -> Workload:
    """A run that began at START."""
    return Workload(
        uid=uid,
        queue_id=queue,
        user=user,
        state=state,
        started_at=START,
        checkpoint_interval_s=declared,
        checkpointed_at=None if announced is None else at(announced),
    )


def announce(habits: Habits, work: Workload, *moments: float, heard: float | None = None) -> None:
    """``work`` announces each of ``moments`` when it has passed (or all at ``heard``)."""
    for moment in moments:
        habits.hear(work, at(moment), at(moment if heard is None else heard))
        work.checkpointed_at = at(moment)


def recent_of(habits: Habits) -> list[tuple[str, tuple[int, ...]]]:
    return [tuple(pair) for row in habits.changed() for pair in row.recent]


# --- which source wins


def observed(announced: float | None, declared: int | None) -> Sighting:
    return Sighting(
        uid="w", kind="Job", namespace="d", name="w", generation=1, queue_label="q", user="ann",
        priority_class="", gpus=1000, cpus=0, memory_mib=0, min_members=1, max_members=1, members=1,
        gpu_classes=(), created=START, checkpoint_interval_s=declared,
        checkpointed=None if announced is None else at(announced),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("announced", "declared", "presumed", "expected"),
    [
        (None, None, None, None),
        (None, None, 1800, 1800),
        (600, None, 1800, 600),  # announced beats learned, however old
        (-600, None, 1800, 1800),  # that was an earlier run
        (-600, None, None, -600),
        (None, 1000, 1800, 2000),  # declared beats learned
        (2100, 1000, None, 2100),
        (1500, 1000, None, 2000),
        (0, None, 1800, 0),
    ],
)
def test_last_checkpoint_is_announced_else_declared_else_learned(
    announced: float | None, declared: int | None, presumed: float | None, expected: float | None
) -> None:
    guess = None if presumed is None else at(presumed)
    known = WorkloadFacts(Situation.HOLDING, started=START, ran=True, presumed=guess)
    found = checkpoint_of(observed(announced, declared), known, at(2500))
    assert found == (None if expected is None else at(expected))


def test_what_does_not_hold_gpus_is_presumed_nothing() -> None:
    known = WorkloadFacts(Situation.LEAVING, started=START, presumed=at(I))
    assert checkpoint_of(observed(None, None), known, at(2500)) is None


# --- for how long a learned interval speaks


@pytest.mark.parametrize(
    ("elapsed", "expected"),
    [(0, None), (I - 1, None), (I, I), (I + 900, I), (2 * I - 1, I), (2 * I, None), (50 * I, None)],
)
def test_silent_run_is_presumed_one_checkpoint_until_a_second_is_missed(
    elapsed: float, expected: float | None
) -> None:
    found = Habits([habit(told(9))]).presumed(run(), at(elapsed))
    assert found == (None if expected is None else at(expected))


@pytest.mark.parametrize(
    "work",
    [
        run(declared=600),
        run(announced=0),
        run(queue=None),
        run(state=State.ADMITTED),
        run(state=State.EVICTED),
    ],
)
def test_nothing_is_presumed_of_what_speaks_for_itself_or_does_not_run(work: Workload) -> None:
    assert Habits([habit(told(9))]).presumed(work, at(I)) is None


# --- from whom it is learned


@pytest.mark.parametrize(
    ("rows", "user", "expected"),
    [
        ([], "ann", None),
        ([habit(told(4))], "ann", None),  # too few
        ([habit(told(5))], "ann", (Source.USER_IN_QUEUE, 5, 5)),
        ([habit(told(8) + silent(1))], "ann", None),  # one of nine is too many
        ([habit(told(9) + silent(1))], "ann", (Source.USER_IN_QUEUE, 9, 10)),
        # ... then what the user does in other queues,
        ([habit(told(2)), habit(told(3), queue=2)], "ann", (Source.USER, 5, 5)),
        # ... then what others do in this one.
        ([habit(told(4), user="bob"), habit(told(1))], "ann", (Source.QUEUE, 5, 5)),
        ([habit(told(5), queue=2, user="bob")], "ann", None),
        # The nearest that knows enough decides, also when it says no.
        ([habit(silent(5)), *(habit(told(20), queue=q) for q in (2, 3, 4))], "ann", None),
        (
            [habit(silent(4)), *(habit(told(20), queue=q) for q in (2, 3))],
            "ann",
            (Source.USER, 40, 44),
        ),
        ([habit(silent(4)), habit(told(20), user="bob")], "ann", None),  # four of 24
        # Who is nobody known has no fellows but those of the queue.
        ([habit(told(9), queue=2, user="")], "", None),
        ([habit(told(9), user="bob")], "", (Source.QUEUE, 9, 9)),
    ],
)
def test_interval_is_learned_from_the_nearest_who_are_enough(
    rows: Iterable[CheckpointHabit], user: str, expected: tuple[Source, int, int] | None
) -> None:
    found = Habits(rows).learned(run(user=user))
    assert (found and (found.source, found.announcing, found.seen)) == expected
    assert found is None or found.interval_s == I


def test_own_intervals_of_an_earlier_run_come_before_those_of_fellows() -> None:
    rows = habit([("w", [600, 700]), *told(9)])
    found = Habits([rows]).learned(run("w"))
    assert (found.source, found.interval_s, found.announcing) == (Source.OWN, 700, 2)
    assert Habits([rows]).learned(run("v")).source == Source.USER_IN_QUEUE
    once = Habits([habit([("w", [600])])])
    assert once.learned(run("w")) is None


@pytest.mark.parametrize(
    ("recent", "interval_s"),
    [
        (told(5, 100), 100),
        ([(f"t{i}", [i * 100, 50]) for i in range(1, 6)], 400),  # of 100 ... 500
        ([*told(4, 100), ("paused", [100, 90_000])], 100),
    ],
)
def test_interval_is_one_that_three_of_four_kept_to_throughout(
    recent: Recent, interval_s: int
) -> None:
    assert Habits([habit(recent)]).learned(run()).interval_s == interval_s


# --- what is heard


def test_interval_is_the_time_without_a_checkpoint_while_it_ran() -> None:
    habits = Habits([])
    work = run()
    announce(habits, work, 900, 2700, 4500)
    assert recent_of(habits) == [("w", (900, 1800, 1800))]
    work.started_at = at(90_000)  # evicted, and started again
    announce(habits, work, 91_000)
    assert recent_of(habits) == [("w", (900, 1800, 1800, 1000))]


@pytest.mark.parametrize(
    ("state", "moment", "heard"),
    [
        (State.ADMITTED, 900, 900),  # not all of the gang ran
        (State.RUNNING, -900, 900),  # of an earlier run
        (State.RUNNING, 59, 900),  # one of a gang after the other
        (State.RUNNING, 10_000, 900),  # in the future
        (State.FINISHED, 900, 900),
    ],
)
def test_moments_that_tell_no_interval_are_not_learned_from(
    state: str, moment: float, heard: float
) -> None:
    habits = Habits([])
    announce(habits, run(state=state), moment, heard=heard)
    assert habits.changed() == []


def test_members_of_a_gang_that_announce_one_after_another_tell_one_interval() -> None:
    habits = Habits([])
    announce(habits, run(), 1800, 1802, 1805, 3600, 3602, 3605)
    assert recent_of(habits) == [("w", (1800, 1795))]


def test_checkpoint_a_minute_is_heard_of() -> None:
    habits = Habits([])
    announce(habits, run(), 60, 120)
    assert recent_of(habits) == [("w", (60, 60))]


def test_what_is_remembered_is_bounded_and_the_oldest_goes_first() -> None:
    habits = Habits([])
    for n in range(FELLOWS + 3):
        announce(habits, run(f"w{n}"), *(100 * (i + 1) for i in range(KEPT + 2)))
    announce(habits, run("w3"), 5000)
    heard = recent_of(habits)
    assert [uid for uid, _ in heard] == [f"w{n}" for n in range(4, FELLOWS + 3)] + ["w3"]
    assert {len(intervals) for _, intervals in heard} == {KEPT}


def test_who_stays_silent_for_two_intervals_speaks_against_its_fellows() -> None:
    habits = Habits([habit(told(9))])
    assert habits.presumed(run("a"), at(I)) == at(I)
    for uid in ("a", "b"):
        habits.presumed(run(uid), at(2 * I))
    assert habits.presumed(run("c"), at(I)) is None
    assert recent_of(habits)[-2:] == [("a", ()), ("b", ())]
    habits.presumed(run("a"), at(3 * I))
    assert habits.changed() == []


@pytest.mark.parametrize(("ran_s", "counts"), [(I - 1, False), (I, True)])
def test_run_that_ended_silent_counts_once_it_was_longer_than_an_interval(
    ran_s: float, counts: bool
) -> None:
    habits = Habits([habit(told(9))])
    habits.end(run("a"), at(ran_s))
    assert bool(habits.changed()) is counts


def test_silence_is_not_held_against_who_declares_or_announced() -> None:
    habits = Habits([habit(told(9))])
    for work in (run("a", declared=600), run("b", announced=30)):
        habits.presumed(work, at(9 * I))
        habits.end(work, at(9 * I))
    assert habits.changed() == []


def test_where_nobody_announces_nothing_is_written() -> None:
    habits = Habits([])
    habits.presumed(run(), at(9 * I))
    habits.end(run(), at(9 * I))
    assert habits.changed() == []


def test_late_announcement_takes_back_the_evidence_of_silence() -> None:
    habits = Habits([habit(told(9))])
    habits.presumed(run("a"), at(2 * I))
    announce(habits, run("a"), 2 * I + 60)
    assert recent_of(habits)[-1] == ("a", (2 * I + 60,))


# --- on later data


def error_s(*, works: int, lost: float, mute: float, seed: int) -> tuple[float, float, float]:
    """Mean error of the time since the last checkpoint, learned and by the baseline (all since the
    start), and the worst that the first exceeds the second by, over moments of work that came later
    than the work learned from.

    Work checkpoints every 25 to 35 min and announces it but for a share ``lost``; a share ``mute`` does
    neither.
    """
    dice = random.Random(seed)
    habits = Habits([])
    errors: list[tuple[float, float]] = []
    for number in range(works):
        work = run(f"w{number}")
        step, is_mute = dice.uniform(1500, 2100), dice.random() < mute
        done = [] if is_mute else [step * n for n in range(1, 9)]
        heard = [moment for moment in done if dice.random() >= lost]
        for now in range(60, 15_000, 300):
            for moment in [m for m in heard if m <= now]:
                heard.remove(moment)
                announce(habits, work, moment, heard=now)
            said = work.checkpointed_at
            guess = said or habits.presumed(work, at(now)) or START
            truth = at(max([m for m in done if m <= now], default=0))
            if number >= works / 2:
                errors.append(
                    tuple(abs((g - truth).total_seconds()) for g in (guess, said or START))
                )
        habits.end(work, at(15_000))
    learned, baseline = (sum(e) / len(errors) for e in zip(*errors, strict=True))
    return learned, baseline, max(a - b for a, b in errors)


@pytest.mark.parametrize("seed", range(5))
def test_where_announcements_get_lost_learning_is_nearer_the_truth_on_later_work(seed: int) -> None:
    learned, baseline, _ = error_s(works=200, lost=0.15, mute=0.0, seed=seed)
    assert learned < baseline


@pytest.mark.parametrize("mute", [0.05, 0.3])
def test_work_that_never_checkpoints_looks_cheaper_by_one_interval_at_most(mute: float) -> None:
    *_, worst = error_s(works=200, lost=0.0, mute=mute, seed=1)
    assert 0 < worst <= 2100


# --- as rows


@pytest.fixture
def cluster(db: None) -> Cluster:
    return policy("enforce", "http://localhost", "research", "products")


def test_habits_outlive_the_process_that_heard_them(cluster: Cluster) -> None:
    research, products = (cluster.queues.get(name=n) for n in ("research", "products"))
    habits = Habits([])
    for n in range(5):
        announce(habits, run(f"w{n}", queue=research.pk), I, 2 * I)
    announce(habits, run("x", queue=products.pk, user="bob"), 900)
    save(habits.changed())
    announce(habits, run("y", queue=products.pk, user="bob"), 700)
    save(habits.changed())

    again = Habits.of(cluster)
    assert CheckpointHabit.objects.count() == 2
    assert again.learned(run(queue=research.pk)) == habits.learned(run(queue=research.pk))
    assert again.learned(run(queue=research.pk)).interval_s == I
    row = CheckpointHabit.objects.get(user="bob")
    assert row.recent == [["x", [900]], ["y", [700]]]


def test_outlook_of_a_page_is_what_the_cycle_goes_by(
    cluster: Cluster, django_assert_num_queries: Any
) -> None:
    research = cluster.queues.get(name="research")
    habit(told(9), queue=research.pk).save()
    work = run(queue=research.pk)
    work.cluster = cluster
    with django_assert_num_queries(1):
        found = outlook(work, at(I + 60))
    assert (found.presumed_at, found.due_at) == (at(I), None)
    assert found.learned.interval_s == I
    work.checkpointed_at = at(I + 30)
    found = outlook(work, at(I + 60))
    assert (found.presumed_at, found.due_at) == (None, at(2 * I + 30))
    assert outlook(work, at(4 * I)).due_at is None
    work.checkpoint_interval_s = 60
    assert outlook(work, at(I)) is None


# --- in a cycle


def later(world: World, minutes: float) -> None:
    """Put the cluster's clock ``minutes`` ahead of the wall's, by which its pods start."""
    now = timezone.now()
    Cluster.objects.filter(pk=world.cluster.pk).update(
        clock_real=now, clock_start=now + timedelta(minutes=minutes), clock_speed=1
    )


def submit(world: World, name: str, *, gpus: int = 1, user: str = "ann") -> None:
    manifest = world.manifest(name, gpus=gpus)
    manifest["metadata"]["annotations"]["weir.dev/user"] = user
    world.kube.create(JOBS, manifest)


def says(world: World, name: str, minutes: float) -> None:
    """The workload announces that it checkpointed ``minutes`` after it started."""
    moment = world.row(name).started_at + timedelta(minutes=minutes)
    note = {"weir.dev/checkpointed-at": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}
    world.edit(name, {"metadata": {"annotations": note}})


def up(world: World, *names: str) -> None:
    world.cycles_until(lambda: all(world.row(n).state == State.RUNNING for n in names))


def heard(world: World) -> list[tuple[str, list[int]]]:
    rows = CheckpointHabit.objects.filter(queue__cluster=world.cluster)
    names = {w.uid: w.name for w in Workload.objects.filter(cluster=world.cluster)}
    return [(names[uid], intervals) for row in rows for uid, intervals in row.recent]


@pytest.mark.parametrize("user", ["ann", "bob"])
def test_among_equals_the_one_with_a_learned_checkpoint_is_evicted(world: World, user: str) -> None:
    for name in ("ann", "bob"):
        submit(world, name, gpus=8, user=name)
    up(world, "ann", "bob")
    for name in ("ann", "bob"):
        recent = told(9) if name == user else silent(5)
        habit(recent, queue=world.row(name).queue_id, user=name).save()
    workers.close_all()  # as if it had been learned before this process began
    later(world, 40)
    world.job("owner", gpus=8, queue="products")
    world.cycles_until(Eviction.objects.exists)

    eviction = Eviction.objects.select_related("workload").get()
    assert eviction.workload.name == user
    assert eviction.lost_gpu_s == pytest.approx(8 * 600, abs=8 * 60)


def test_announced_moments_are_learned_across_a_restart(world: World) -> None:
    submit(world, "w1")
    up(world, "w1")
    for minutes in (30, 60):
        later(world, minutes)
        says(world, "w1", minutes)
        world.cycle()
        workers.close_all()
        world.cycle()
    assert heard(world) == [("w1", pytest.approx([1800, 1800], abs=1))]  # stamps are whole seconds


def test_process_that_dies_before_the_commit_learns_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(world, "w1")
    up(world, "w1")
    later(world, 30)
    says(world, "w1", 30)
    world.catch_up()
    for place in ("save", "_follow_claims", "_enforce"):  # before, within and after the transaction
        with monkeypatch.context() as patched:
            patched.setattr(cycle, place, _dies)
            with pytest.raises(KilledError):
                world.cycle()
        restart(world)
    world.cycle()
    world.cycle()
    assert heard(world) == [("w1", pytest.approx([1800], abs=1))]


def _dies(*args: object, **more: object) -> None:
    raise KilledError


def test_snapshot_without_a_worker_presumes_the_same(world: World) -> None:
    submit(world, "w1")
    up(world, "w1")
    row = world.row("w1")
    habit(told(9), queue=row.queue_id).save()
    later(world, 40)
    world.cluster.refresh_from_db()
    [work] = snapshots.live(world.cluster).workloads
    assert work.checkpointed == row.started_at + timedelta(seconds=I)


def test_cycles_in_which_nothing_is_announced_write_no_habits(world: World) -> None:
    submit(world, "w1")
    up(world, "w1")
    later(world, 30)
    says(world, "w1", 30)
    world.cycle()
    CheckpointHabit.objects.update(recent=[])
    later(world, 40)
    world.cycle()
    assert CheckpointHabit.objects.get().recent == []
