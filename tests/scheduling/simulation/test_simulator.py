from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest

from scheduling.engine import plan as engine_plan
from scheduling.engine.model import (
    Action,
    Decision,
    GpuClass,
    Members,
    Node,
    Plan,
    PriorityClass,
    Queue,
    Quota,
    Reason,
    Snapshot,
    Workload,
)
from scheduling.simulation.loop import lives
from scheduling.simulation.run.jobs import Submission
from scheduling.simulation.run.options import UnsettledError
from scheduling.simulation.traces.model import gang
from workshop.rivals.queues import Rival, replay_pooled
from workshop.simulator.agenda import Agenda, Turn
from workshop.simulator.laws.room import LawError, broken_laws
from workshop.simulator.options import SimulatorOptions
from workshop.simulator.replay import EngineRun, pool, replay_engine, submissions
from workshop.simulator.simulator import Observer, simulate

from .conftest import ORIGIN, make_trace
from .fakes import Evicting, first_come


def at(seconds: int):
    return ORIGIN + timedelta(seconds=seconds)


def cluster(nodes: int = 1, **quota: int) -> Snapshot:
    return Snapshot(
        now=ORIGIN,
        gpu_classes=(GpuClass("gpu"),),
        nodes=tuple(Node(f"n{i}", "gpu", 8000) for i in range(nodes)),
        queues=(Queue("q", quotas={"gpu": Quota(**quota)}),),
        priority_classes=(
            PriorityClass("train", min_run_time_s=100),
            PriorityClass("firm", 9, False),
        ),
    )


def work(name: str, submit_s: int, duration_s: int, gpus: int = 8, members: int = 1, **kwargs):
    workload = Workload(
        name=name,
        queue="q",
        priority_class="train",
        submitted=at(submit_s),
        gpus=gpus * 1000,
        members=Members(members, members),
        gpu_classes=("gpu",),
    )
    return Submission(workload, duration_s, **kwargs)


def test_agenda_orders_by_time_then_turn_then_sequence() -> None:
    agenda = Agenda()
    for at_s, turn, what in [
        (5, Turn.PLAN, 1),
        (5, Turn.END, 2),
        (5, Turn.ARRIVE, 3),
        (5, Turn.END, 4),
    ]:
        agenda.add(at_s, turn, what)
    agenda.add(1, Turn.PLAN, 0)

    assert agenda.next_s() == 1
    assert [agenda.pop()[2] for _ in range(5)] == [0, 2, 4, 3, 1]
    assert agenda.next_s() is None


def test_workload_starts_when_planned_and_ends_after_its_run_time() -> None:
    outcome = simulate(cluster(), [work("a", 0, 10), work("b", 3, 5)], plan=first_come)

    a, b = outcome.jobs
    assert (a.first_start_s, a.end_s) == (0, 10)
    assert (b.first_start_s, b.end_s) == (10, 15)
    assert outcome.end == at(15)
    assert outcome.unfinished == []


def test_evicted_workload_resumes_from_its_last_checkpoint_and_pays_the_restart() -> None:
    plan = Evicting({at(250): "a"})
    jobs = [work("a", 0, 1000, checkpoint_s=100, restart_s=30), work("b", 250, 5)]

    outcome = simulate(cluster(), jobs, plan=plan)

    a, b = outcome.jobs
    # 250 s done, 200 s kept, 800 s left; "a" was submitted first and takes its place again at once.
    assert [(run.start_s, run.end_s) for run in a.runs] == [(0, 250), (250, 250 + 30 + 800)]
    assert a.evictions == 1
    assert a.lost_gpu_s == 8 * (50 + 30)
    assert (b.first_start_s, b.lost_gpu_s) == (1080, 0)


def test_work_without_checkpoints_starts_over() -> None:
    outcome = simulate(
        cluster(),
        [work("a", 0, 1000, checkpoint_s=None, restart_s=30), work("b", 250, 5)],
        plan=Evicting({at(250): "a"}),
    )

    assert outcome.jobs[0].end_s == 250 + 30 + 1000


def test_eviction_during_the_restart_keeps_what_was_saved_before() -> None:
    jobs = [
        work("a", 0, 1000, checkpoint_s=100, restart_s=30),
        work("b", 250, 5, gpus=1),
        work("c", 260, 5, gpus=1),
    ]

    outcome = simulate(cluster(), jobs, plan=Evicting({at(250): "a", at(260): "a"}))

    assert [(r.start_s, r.end_s) for r in outcome.jobs[0].runs] == [
        (0, 250),
        (250, 260),
        (260, 1090),
    ]


def test_victims_hold_their_gpus_until_they_have_left() -> None:
    seen = []

    class Watch(Observer):
        def on_requeue(self, now, job) -> None:
            seen.append((now, job.name))

    outcome = simulate(
        cluster(),
        [work("a", 0, 1000), work("b", 100, 5)],
        plan=Evicting({at(100): "a"}),
        options=SimulatorOptions(leave_s=20),
        observer=Watch(),
    )

    assert seen == [(at(120), "a")]
    assert outcome.jobs[0].runs[0].end_s == 120


def test_plans_are_no_closer_than_the_cycle() -> None:
    moments = []

    class Watch(Observer):
        def on_plan(self, now, snapshot, plan) -> None:
            moments.append(now)

    jobs = [work(str(i), i, 5, gpus=1) for i in range(8)]
    simulate(
        cluster(), jobs, plan=first_come, options=SimulatorOptions(cycle_s=10), observer=Watch()
    )

    assert moments == [at(0), at(10), at(20)]


def test_plans_on_ticks_are_made_at_each_while_work_is_there_and_at_no_other_time() -> None:
    moments = []

    class Watch(Observer):
        def on_plan(self, now, snapshot, plan) -> None:
            moments.append(now)

    simulate(
        cluster(), [work("a", 3, 25), work("b", 61, 5)], plan=first_come,
        options=SimulatorOptions(cycle_s=10, on_ticks=True), observer=Watch(),
    )  # fmt: skip

    assert moments == [at(10), at(20), at(30), at(40), at(70), at(80)]


def test_wait_until_a_moment_brings_a_plan_at_that_moment() -> None:
    def patient(snapshot: Snapshot) -> Plan:
        if snapshot.now >= at(77):
            return first_come(snapshot)
        wait = Decision("a", Action.WAIT, Reason.VICTIMS_PROTECTED, until=at(77))
        return Plan({}, (wait,))

    assert simulate(cluster(), [work("a", 0, 5)], plan=patient).jobs[0].first_start_s == 77


def test_simulation_stops_at_until_and_leaves_the_rest_unfinished() -> None:
    numbered = (work(f"w{i}", i * 10, 1000, gpus=1) for i in itertools.count())

    outcome = simulate(
        cluster(), numbered, plan=first_come, options=SimulatorOptions(until=at(500))
    )

    assert outcome.end == at(500)
    assert len(outcome.unfinished) == len(outcome.jobs) > 0


def test_engine_that_never_settles_is_stopped() -> None:
    def restless(snapshot: Snapshot) -> Plan:
        evict = [w.name for w in snapshot.workloads if w.placement]
        [node] = snapshot.nodes
        plan = first_come(replace(snapshot, nodes=(Node(node.name, "gpu", 1 << 30),)))
        evictions = [Decision(name, Action.EVICT, Reason.RECLAIMED) for name in evict]
        return replace(plan, decisions=(*evictions, *plan.decisions))

    with pytest.raises(UnsettledError):
        simulate(cluster(), [work("a", 0, 5, gpus=1), work("b", 1, 5, gpus=1)], plan=restless)


def test_observer_hears_the_life_of_a_workload_in_order() -> None:
    heard = []

    class Watch(Observer):
        def on_submit(self, now, job) -> None:
            heard.append((now, "submit"))

        def on_plan(self, now, snapshot, plan) -> None:
            heard.append((now, f"plan {len(plan.decisions)}"))

        def on_start(self, now, job, decision) -> None:
            heard.append((now, f"start {dict(decision.placement)}"))

        def on_finish(self, now, job) -> None:
            heard.append((now, "finish"))

    simulate(cluster(), [work("a", 0, 5)], plan=first_come, observer=Watch())

    assert heard == [
        (at(0), "submit"),
        (at(0), "plan 1"),
        (at(0), "start {'n0': 1}"),
        (at(5), "finish"),
        (at(5), "plan 0"),
    ]


def test_same_input_gives_the_same_history() -> None:
    def history() -> list:
        outcome = simulate(
            cluster(2),
            [work(f"w{i}", i % 7, 3 + i % 5, 4) for i in sorted(range(40), key=lambda i: i % 7)],
            plan=first_come,
        )
        return [(job.name, [(r.start_s, r.end_s) for r in job.runs]) for job in outcome.jobs]

    assert history() == history()


@pytest.mark.parametrize(
    ("change", "law"),
    [
        ({"placement": {"n0": 2}, "members": 2}, "node n0 holds 16000 of 8000"),
        ({"members": 2}, "got 1 members"),
        ({"placement": {}, "members": 0}, "got 0 members"),
    ],
)
def test_law_checker_names_what_a_bad_admission_breaks(change: dict, law: str) -> None:
    good = Decision(
        "a", Action.ADMIT, Reason.BORROWS, gpu_class="gpu", members=1, placement={"n0": 1}
    )
    snapshot = replace(cluster(), workloads=(work("a", 0, 5).workload,))

    assert list(broken_laws(snapshot, Plan({}, (good,)))) == []
    broken = " ".join(broken_laws(snapshot, Plan({}, (replace(good, **change),))))
    assert law in broken


def test_law_checker_sees_limits_of_ancestors_and_silent_waits() -> None:
    snapshot = replace(
        cluster(2, nominal=0, borrowing_limit=8000),
        queues=(
            Queue("top", quotas={"gpu": Quota(0, 4000)}),
            Queue("q", "top", quotas={"gpu": Quota(0, 9000)}),
        ),
        workloads=(work("a", 0, 5).workload, work("b", 0, 5).workload),
    )
    admit = Decision(
        "a", Action.ADMIT, Reason.BORROWS, gpu_class="gpu", members=1, placement={"n0": 1}
    )

    assert list(broken_laws(snapshot, Plan({}, (admit,)))) == [
        "queue top holds 8000 of 4000 milli-GPU of gpu",
        "b waits without a reason",
    ]


def test_law_checker_protects_min_run_time_and_non_preemptible_work() -> None:
    young = replace(
        work("young", 0, 5).workload, started=at(-50), placement={"n0": 1}, gpu_class="gpu"
    )
    firm = replace(young, name="firm", priority_class="firm", started=at(-500))
    snapshot = replace(
        cluster(2),
        workloads=(
            replace(young, phase="running"),
            replace(firm, phase="running"),
            work("x", -500, 5).workload,
        ),
    )
    evictions = tuple(
        Decision(name, Action.EVICT, Reason.RECLAIMED, for_workload="x")
        for name in ("young", "firm")
    )

    promise = Decision("x", Action.RESERVE, Reason.AWAITS_VICTIMS)

    broken = list(broken_laws(snapshot, Plan({}, (*evictions, promise))))
    assert [line for line in broken if "to evict" in line] == [
        "young is to evict after 50 of 100 s",
        "firm is to evict though firm is not preemptible",
    ]


def test_checked_simulation_stops_at_the_first_broken_law() -> None:
    def torn(snapshot: Snapshot) -> Plan:
        plan = first_come(snapshot)
        return replace(plan, decisions=tuple(replace(d, members=3) for d in plan.decisions))

    with pytest.raises(LawError, match="got 1 members"):
        simulate(cluster(), [work("a", 0, 5)], plan=torn, options=SimulatorOptions(checked=True))


@pytest.mark.parametrize(
    ("gpus", "members"), [(1, 1), (8, 1), (12, 2), (16, 2), (13, 13), (166, 83)]
)
def test_gang_is_the_fewest_equal_parts_that_fit_a_node(gpus: int, members: int) -> None:
    assert gang(gpus, 8) == members


@pytest.mark.parametrize(
    ("gpus", "nodes", "members"),
    [(249, 32, 249), (249, 42, 83), (165, 32, 55), (238, 32, 119), (256, 32, 32), (12, 2, 2)],
)
def test_gang_fits_the_pool_wherever_so_many_gpus_are_there(
    gpus: int, nodes: int, members: int
) -> None:
    assert gang(gpus, 8, nodes) == members


def test_a_gang_that_needs_more_gpus_than_the_pool_has_is_split_as_for_any_pool() -> None:
    assert gang(40, 8, 4) == gang(40, 8) == 5


def test_pool_gives_queues_their_static_share_as_nominal() -> None:
    trace = make_trace((0, 10, 8, "a"), (0, 30, 8, "b"), (100, 1, 1, "b"))
    snapshot = pool(replace(trace, queue_nodes={"a": 1, "b": 2}), 4)

    nominal = {queue.name: queue.quotas["gpu"].nominal for queue in snapshot.queues}
    assert nominal == {"a": 10_667, "b": 21_333}
    assert [s.workload.name for s in submissions(trace)] == ["job-0", "job-1", "job-2"]


def test_replay_with_a_fifo_planner_agrees_with_the_fifo_rival() -> None:
    trace = make_trace(
        *(
            (i * 7 % 90, 5 + i * 13 % 40, 1 << (i % 4), "ab"[i % 2])
            for i in sorted(range(60), key=lambda i: i * 7 % 90)
        )
    )

    ours = replay_engine(trace, 2, EngineRun(SimulatorOptions(checked=True), plan=first_come))
    rival = replay_pooled(trace, Rival.FIFO_SKIP, 2)

    assert ours.wait_s.mean() == pytest.approx(rival.wait_s.mean(), rel=0.15)
    assert ours.evictions.sum() == 0
    assert (ours.end_s - ours.start_s == trace.duration_s).all()


def test_work_ends_sooner_on_a_faster_class() -> None:
    options = SimulatorOptions(speeds={"gpu": 2.0})
    [job] = simulate(cluster(), [work("a", 0, 101)], plan=first_come, options=options).jobs
    assert job.end_s == 51


def test_eviction_on_a_faster_class_keeps_what_was_done_there() -> None:
    outcome = simulate(
        cluster(),
        [work("a", 0, 8000), work("b", 2000, 10)],
        plan=Evicting({at(2000): "a"}),
        options=SimulatorOptions(speeds={"gpu": 2.0}),
    )
    job = outcome.jobs[0]
    ran_s = sum(run.end_s - run.start_s for run in job.runs)
    assert job.evictions == 1
    assert ran_s == 4000 + 200 + job.submission.restart_s


def test_claim_is_due_when_the_last_who_leaves_for_it_is_gone(monkeypatch) -> None:
    """Planned on a frame, on snapshots and by the compiled loop."""
    template = replace(
        cluster(2),
        queues=(Queue("q", quotas={"gpu": Quota(16000)}), Queue("other")),
        priority_classes=(PriorityClass("train"),),
    )
    quick, slow = work("quick", 0, 9000, leave_s=20), work("slow", 0, 9000, leave_s=50)
    borrowers = [
        replace(one, workload=replace(one.workload, queue="other")) for one in (quick, slow)
    ]
    jobs = [*borrowers, work("gang", 100, 60, members=2)]
    due: dict[int, set[object]] = {}

    class Watch(Observer):
        def on_plan(self, now, snapshot, plan) -> None:
            due[number].update(w.room_due for w in snapshot.workloads if w.awaits_victims)

    for number, planner in enumerate((None, engine_plan)):
        due[number] = set()
        simulate(
            template, jobs, plan=planner, options=SimulatorOptions(until=at(400)), observer=Watch()
        )

    assert due == {0: {at(150)}, 1: {at(150)}}
    frames = []
    lived = lives.live_through
    monkeypatch.setattr(lives, "live_through", lambda f, *a: frames.append(f) or lived(f, *a))
    life = lives.live_submissions(template, jobs, SimulatorOptions(leave_s=50, until=at(130)))
    assert frames[0].work.room_due[life.jobs.slot[2]] == at(150).timestamp()
