"""Sentences and headlines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime

import pytest

from scheduling.engine import Decision, Plan, Reason, headline
from scheduling.engine.reasons.catalogue import NAMES, sentence
from scheduling.engine.reasons.waits import SENTENCES, Facts
from scheduling.engine.reasons.wording import amount, span


def test_every_reason_has_a_headline_of_a_few_words() -> None:
    for reason in Reason:
        assert 1 <= len(headline(reason).split()) <= 5


def test_every_reason_that_plans_give_has_a_sentence() -> None:
    assert set(SENTENCES) == set(Reason)
    assert set(NAMES) <= set(Reason)


WITHOUT_NUMBERS = {
    Reason.HELD,
    Reason.MISROUTED,
    Reason.NO_SUCH_CLASS,
    Reason.NOT_ALLOWED,
    Reason.RUN_TIME_OVER,
}
UNTIL = {Reason.RESERVED, Reason.HOURS_SPENT, Reason.VICTIMS_PROTECTED, Reason.BUDGET_SPENT}
SOON = {Reason.WAITS_FOR_TURN: 3, Reason.RESERVED_FOR_OTHER: 4}


@pytest.mark.parametrize("reason", Reason)
def test_every_sentence_states_the_numbers_there_are(reason: Reason) -> None:
    at = datetime(2026, 1, 5, 12, 30, tzinfo=UTC)
    figures = tuple(1000.0 * n for n in (11, 12, 13, 14, 15, 16))
    facts = Facts(
        reason, "team", "firm", "gpu", figures, 2000, 3, 4, "other", "other-team", until=at
    )

    text = sentence(facts)

    assert any(c.isdigit() for c in text) == (reason not in WITHOUT_NUMBERS)
    assert ("2026-01-05 12:30 UTC" in text) == (reason in UNTIL)
    assert ("as predicted" in text) == (reason in SOON)


@pytest.mark.parametrize(
    ("milli", "text"),
    [
        (16000, "16"),
        (5750, "5.8"),
        (250, "0.25"),
        (0, "0"),
        (1500, "1.5"),
        (100000, "100"),
        (3960, "3.96"),
    ],
)
def test_amount_of_gpus_is_short(milli: int, text: str) -> None:
    assert amount(milli) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(59, "59 s"), (120, "2 min"), (7200, "2 h"), (9840, "2 h 44 min")]
)
def test_span_reads_as_people_say_it(seconds: int, text: str) -> None:
    assert span(seconds) == text


def test_incomplete_gang_says_how_many_members_there_are() -> None:
    facts = Facts(Reason.GANG_INCOMPLETE, "team", "", "", (), least=4, members=3)

    assert (
        sentence(facts) == "3 of at least 4 members exist; the gang starts when they are all there."
    )


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        (
            (1, 3, 300, 1000),
            "Only 1 of at least 3 members has been running for 5 min, no less than the grace; team gets 1"
            " h100 back.",
        ),
        (
            (0, 3, 300, 0),
            "None of the 3 members that it needs has been running for 5 min, no less than the grace.",
        ),
        ((0, 1, 300, 0), "It has not been running for 5 min, no less than the grace."),
    ],
)
def test_stale_gang_says_how_many_run_and_what_that_gives_back(
    figures: tuple[float, ...], text: str
) -> None:
    assert sentence(Facts(Reason.STALE_GANG, "team", "", "h100", figures)) == text


def test_wait_has_position_in_its_queue(planned: Callable[..., Plan]) -> None:
    made = planned(
        nodes=[{"name": "n1", "gpu_class": "h100", "gpus": 1}],
        queues=[{"name": "team", "quotas": {"h100": {"nominal": 1}}}],
        workloads=[
            {
                "name": f"w{i}",
                "queue": "team",
                "priority_class": "train",
                "gpu_classes": ["h100"],
                "submitted": f"2026-01-05T09:0{i}:00Z",
            }
            for i in range(3)
        ],
    )

    assert [(d.workload, d.position) for d in made.decisions] == [
        ("w0", None),
        ("w1", 1),
        ("w2", 2),
    ]


def test_what_can_never_start_takes_no_place_and_asks_for_nothing(
    planned: Callable[..., Plan],
) -> None:
    job = {"queue": "team", "priority_class": "train", "gpu_classes": ["h100"]}
    made = planned(
        nodes=[{"name": "n1", "gpu_class": "h100", "gpus": 1}],
        queues=[{"name": "team", "quotas": {"h100": {"nominal": 1}}}],
        workloads=[
            {**job, "name": "runs", "submitted": "2026-01-05T09:00:00Z"},
            {**job, "name": "never", "gpus": 2, "submitted": "2026-01-05T09:01:00Z"},
            {**job, "name": "waits", "submitted": "2026-01-05T09:02:00Z"},
        ],
    )

    positions = {d.workload: (d.reason.value, d.position) for d in made.decisions}
    assert positions["never"] == ("never_fits", None)
    assert positions["waits"][1] == 1
    assert made.fair_share["team"]["h100"].demand == 2000


def test_decision_is_plain_data() -> None:
    assert "sentence" in {field.name for field in fields(Decision)}
