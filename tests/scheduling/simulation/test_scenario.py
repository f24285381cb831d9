from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from workshop.demo.work.kinds import ALL, CI, FINETUNE, PRETRAIN, SERVICE, SWEEP
from workshop.scenario import Kind, Organisation, Rhythm, RunTime, Size, Source, generate, stream
from workshop.scenario.rhythm import factor, week

START = datetime(2026, 11, 2, 10, 20, tzinfo=UTC)  # a Monday
STEADY = Kind(
    "steady",
    ("steady",),
    (("normal", 1.0),),
    RunTime(3600, 0.5, 60, 86_400),
    (Size(1, 1, 3), Size(4, 8, 1)),
    ("h100",),
    Rhythm.FLAT,
)


def organisation(*kinds: Kind, load: float = 0.9, **kwargs) -> Organisation:
    sources = (
        Source("a", ("ann", "ben", "cy"), {"h100": 3}, tuple((k, 1.0) for k in kinds)),
        Source("b", ("dee",), {"h100": 1}, tuple((k, 1.0) for k in kinds), {"h100": ("a100",)}),
    )
    return Organisation(sources, {"h100": 400}, load, **kwargs)


def gpu_seconds(submissions) -> float:
    return sum(s.workload.gpus / 1000 * s.workload.members.min * s.duration_s for s in submissions)


def test_same_seed_gives_the_same_stream_and_another_seed_another() -> None:
    org = organisation(STEADY)

    assert generate(org, START, 1, 7) == generate(org, START, 1, 7)
    assert generate(org, START, 1, 7) != generate(org, START, 1, 8)


def test_stream_can_go_on_from_any_moment() -> None:
    org = organisation(STEADY, replace(SWEEP, on=("h100",)))
    whole = generate(org, START, 1, 7)
    moment = START + timedelta(hours=9, minutes=17)

    rest = list(islice(stream(org, moment, 7), 40))

    assert rest == [s for s in whole if s.submitted >= moment][:40]


def test_submissions_come_in_order_with_names_of_their_own() -> None:
    drawn = generate(organisation(STEADY), START, 3, 1)

    assert [s.submitted for s in drawn] == sorted(s.submitted for s in drawn)
    assert len({s.workload.name for s in drawn}) == len(drawn)
    assert drawn[0].submitted >= START
    assert drawn[-1].submitted < START + timedelta(days=3)


def test_load_is_the_share_of_capacity_asked_for() -> None:
    drawn = generate(organisation(STEADY, load=0.9), START, 28, 1)

    assert gpu_seconds(drawn) / (400 * 28 * 86_400) == pytest.approx(0.9, rel=0.05)


def test_queues_ask_in_proportion_to_their_demand() -> None:
    drawn = generate(organisation(STEADY), START, 28, 1)

    by_a = gpu_seconds(s for s in drawn if s.workload.queue == "a")
    assert by_a / gpu_seconds(drawn) == pytest.approx(0.75, abs=0.04)


def test_class_falls_back_where_the_source_says_so() -> None:
    drawn = generate(organisation(STEADY), START, 1, 1)

    assert {(s.workload.queue, s.workload.gpu_classes) for s in drawn} == {
        ("a", ("h100",)),
        ("b", ("h100", "a100")),
    }


def test_first_users_submit_most() -> None:
    drawn = [s.workload.user for s in generate(organisation(STEADY), START, 14, 1)]

    assert drawn.count("ann") > drawn.count("ben") > drawn.count("cy") > 0


@pytest.mark.parametrize("rhythm", list(Rhythm))
def test_rhythm_averages_one_over_the_week(rhythm: Rhythm) -> None:
    assert sum(week(rhythm)) / 168 == pytest.approx(1)


def test_office_rhythm_follows_local_time() -> None:
    berlin, monday_nine = ZoneInfo("Europe/Berlin"), datetime(2026, 11, 2, 8, tzinfo=UTC)

    assert factor(Rhythm.OFFICE, monday_nine, berlin) == week(Rhythm.OFFICE)[9]
    sunday_nine = factor(Rhythm.OFFICE, monday_nine - timedelta(days=1), berlin)
    assert sunday_nine == pytest.approx(week(Rhythm.OFFICE)[9] / 4)


def test_run_time_quantiles_keep_to_their_bounds() -> None:
    run_time = RunTime(600, 1.0, 60, 7200)

    assert (run_time.at(0.5), run_time.at(1e-9), run_time.at(1 - 1e-9)) == (600, 60, 7200)
    assert 600 < run_time.mean_s() < 1200


def test_sweep_members_share_all_but_name_time_and_run_time() -> None:
    eager = replace(STEADY, sweep=(1.0, 3, 3))

    first = generate(organisation(eager), START, 1, 1)
    stem = first[0].workload.name.rsplit("-", 1)[0]
    sweep = [s for s in first if s.workload.name.startswith(stem + "-")]

    assert len(sweep) == 3
    assert len({(s.workload.user, s.workload.gpus, s.workload.members) for s in sweep}) == 1


def test_some_end_early_and_say_how() -> None:
    drawn = generate(organisation(STEADY), START, 28, 1)
    failed = sum(s.outcome == "failed" for s in drawn) / len(drawn)

    assert {s.outcome for s in drawn} == {"succeeded", "failed", "cancelled"}
    assert failed == pytest.approx(STEADY.failing, abs=0.02)


@pytest.mark.parametrize("kind", [PRETRAIN, FINETUNE, SWEEP, CI, SERVICE])
def test_kinds_at_hand_are_gangs_of_at_most_thirty_two_gpus(kind: Kind) -> None:
    assert max(size.total_gpus for size in kind.sizes) <= 32
    assert set(kind.on) <= set(ALL)
    assert kind.mean_gpu_s() > 0
