"""Sentences and headlines."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest

import scheduling.engine
from scheduling.engine import Decision, Lapse, Plan, Reason, Rule, headline
from scheduling.engine.reasons import figures as kinds
from scheduling.engine.reasons.catalogue import ACTS, DECLARED, WAITS, figures_of, sentence
from scheduling.engine.reasons.facts import Facts
from scheduling.engine.reasons.rules import LAPSES, RULES
from scheduling.engine.reasons.wording import above, amount, share, span
from tests.said import figures


def test_every_reason_has_a_headline_of_a_few_words() -> None:
    for reason in Reason:
        assert 1 <= len(headline(reason).split()) <= 5


def test_every_reason_is_declared_once() -> None:
    assert set(DECLARED) == set(Reason)
    assert not ACTS.keys() & WAITS.keys()


def test_figures_of_every_reason_have_a_unit_and_fit_a_row() -> None:
    for declared in DECLARED.values():
        assert list(kinds.units(declared.figures)) == list(kinds.names(declared.figures))
        assert len(kinds.names(declared.figures)) <= kinds.WIDEST


def test_no_kernel_writes_a_figure_by_its_position() -> None:
    engine = Path(scheduling.engine.__file__).parent
    by_number = re.compile(r"figures\[\w+(\.\w+)*, \d|figures\[\d|figures\[:\d")

    assert [p.name for p in engine.rglob("*.py") if by_number.search(p.read_text())] == []


WITHOUT_NUMBERS = {
    Reason.HELD,
    Reason.MISROUTED,
    Reason.NO_SUCH_CLASS,
    Reason.NOT_ALLOWED,
    Reason.RUN_TIME_OVER,
    Reason.NOT_BEFORE,
    Reason.AFTER_OTHERS,
    Reason.ARRAY_AT_LIMIT,
}
UNTIL = {
    Reason.CLAIM_LAPSED,
    Reason.RESERVED,
    Reason.HOURS_SPENT,
    Reason.VICTIMS_PROTECTED,
    Reason.BUDGET_SPENT,
}
SOON = {Reason.WAITS_FOR_TURN, Reason.RESERVED_FOR_OTHER}


@pytest.mark.parametrize("reason", Reason)
def test_every_sentence_states_the_numbers_there_are(reason: Reason) -> None:
    at = datetime(2026, 1, 5, 12, 30, tzinfo=UTC)
    row = figures(reason, tuple(1000.0 * n for n in (11, 12, 13, 14, 15, 16, 17)))
    lapse = Lapse.OVERDUE if reason is Reason.CLAIM_LAPSED else ""
    facts = Facts(
        reason, "team", "firm", "gpu", row, 2000, 3, 4, "other", "other-team", rule=lapse, until=at
    )

    text = sentence(facts)

    assert any(c.isdigit() for c in text) == (reason not in WITHOUT_NUMBERS)
    assert ("2026-01-05 12:30 UTC" in text) == (reason in UNTIL)
    assert ("as expected" in text) == (reason in SOON)


def test_every_rule_and_every_cause_of_a_lapse_is_declared() -> None:
    assert set(RULES) == set(Rule)
    assert set(LAPSES) == set(Lapse)


@pytest.mark.parametrize(
    ("rule", "held", "keeps", "first"),
    [
        (Rule.ABOVE_FAIR_SHARE, 8e3, 5e3, "firm held 8 gpu, 3 above its fair share of 5;"),
        (
            Rule.OWED_NOMINAL,
            8e3,
            4e3,
            "This takes from inside the fair share of firm, 5: it keeps 4.",
        ),
        (
            Rule.LENT_NOMINAL,
            4e3,
            3e3,
            "This takes from inside the fair share of firm, 5: it keeps 3.",
        ),
        (Rule.LENT_NOMINAL, 4e3, 1e3, "This leaves firm below its nominal of 2: it keeps 1."),
        (Rule.ROUNDED, 3e3, 2e3, "This takes from inside the fair share of firm, 5: it keeps 2."),
    ],
)
def test_reclaim_says_first_what_its_rule_leaves_below_share_or_nominal(
    rule: Rule, held: float, keeps: float, first: str
) -> None:
    row = kinds.Departure(held, 5e3, keeps, 1e3, 2e3)

    text = sentence(Facts(Reason.RECLAIMED, "team", "firm", "gpu", row, rule=rule))

    assert text.startswith(first)
    assert " -" not in text


@pytest.mark.parametrize("lapse", Lapse)
def test_lapse_says_its_cause_and_how_many_left_in_vain(lapse: Lapse) -> None:
    facts = Facts(Reason.CLAIM_LAPSED, "team", "", "gpu", kinds.ClaimEnd(8e3, 2), rule=lapse)

    text = sentence(facts)

    assert text.startswith("8 gpu are kept for it no longer: ")
    assert text.endswith(" 2 workloads left for it in vain.")


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
    ("milli", "text"), [(25375, "25.4"), (625, "0.6"), (250, "0.2"), (40, "0.04"), (3960, "3.96")]
)
def test_fair_share_is_told_to_a_tenth(milli: int, text: str) -> None:
    assert share(milli) == text


@pytest.mark.parametrize(
    ("held", "fair", "text"),
    [(26000, 25375, "0.6"), (7000, 6750, "0.2"), (28000, 27960, "0.04"), (500, 480, "0.02")],
)
def test_what_is_above_a_share_follows_from_the_figures_beside_it(
    held: int, fair: int, text: str
) -> None:
    assert above(held, fair) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (59, "59 s"),
        (120, "2 min"),
        (7200, "2 h"),
        (9840, "2 h 44 min"),
        (29_340, "8 h 09 min"),
        (86_400, "1 d"),
        (108_000, "1 d 6 h"),
    ],
)
def test_span_reads_as_people_say_it(seconds: int, text: str) -> None:
    assert span(seconds) == text


def test_incomplete_gang_says_how_many_members_there_are() -> None:
    facts = Facts(Reason.GANG_INCOMPLETE, "team", "", "", least=4, members=3)

    assert (
        sentence(facts) == "3 of at least 4 members exist; the gang starts when they are all there."
    )


@pytest.mark.parametrize(
    ("row", "text"),
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
    row: tuple[float, ...], text: str
) -> None:
    of = figures_of(Reason.STALE_GANG, row)

    assert sentence(Facts(Reason.STALE_GANG, "team", "", "h100", of)) == text


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
