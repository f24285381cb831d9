"""Received against entitled: who was short, who lent to whom, and how alike all fared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.reports.entitlements import NOBODYS, OUTSIDE, Entitlement, entitlement, jain
from portal.reports.fairness import fairness
from portal.reports.scope import report_scope
from portal.reports.words import fairness_finding
from portal.web.reports.fairness import fairness_page
from scheduling.models import Cycle, Decision
from tests.factories import make_workload
from tests.portal.reports.conftest import END, HOUR, Small

pytestmark = pytest.mark.django_db


def found(small: Small, user: object = None, hours: float = 24, **more: object) -> Entitlement:
    filters = small.last(hours, **more)
    made = entitlement(report_scope(small.cluster, filters, user or small.operator), filters)
    assert made is not None
    return made


@pytest.fixture
def shared(small: Small) -> Small:
    """In one hour vision (nominal 8) lends 4 to platform, which holds 6 more than its own 4."""
    small.sample(small.root, small.h100, ready=16)
    small.sample(small.research, small.h100, nominal=12, allocated=4)
    small.sample(small.vision, small.h100, nominal=8, allocated=4, fair_share=4)
    small.sample(small.speech, small.h100, nominal=4, allocated=2, fair_share=4, pending=2)
    small.sample(small.platform, small.h100, nominal=4, allocated=12, fair_share=10)
    return small


def test_queue_that_missed_most_stands_first(shared: Small) -> None:
    rows = found(shared).queues

    assert [(r.name, r.entitled, r.received) for r in rows] == [
        ("speech", 4, 2), ("vision", 4, 4), ("platform", 10, 12),
    ]  # fmt: skip
    assert rows[0].part == pytest.approx(0.5)


def test_short_and_over_do_not_cancel(shared: Small) -> None:
    made = found(shared)

    assert (made.short, made.over) == (pytest.approx(2), pytest.approx(2))
    assert made.part == pytest.approx(1.0)


def test_who_waits_with_less_than_four_fifths_is_starved_and_says_why(shared: Small) -> None:
    work = make_workload(shared.speech, name="asr")
    cycle = Cycle.objects.create(cluster=shared.cluster, number=1, at=END - HOUR / 2)
    for gpu_class, reason in (
        (shared.h100, "fragmented"),
        (None, "fragmented"),
        *[(shared.mig, "above_fair_share")] * 3,
    ):
        Decision.objects.create(
            cycle=cycle, workload=work, action="wait", reason=reason, gpu_class=gpu_class
        )

    made = found(shared)

    (one,) = made.starved
    assert (one.queue, one.gpu_class, one.hours) == ("research/speech", "h100", 1.0)
    assert one.gpus == 2.0
    assert "ragment" in one.why
    assert (made.starved_hours, made.starved_queues) == (1.0, 1)


def test_spell_of_several_hours_is_one(small: Small) -> None:
    for hours_ago, allocated in ((5, 1), (4, 1), (3, 4), (2, 1)):
        small.sample(small.root, small.h100, ready=16, hours_ago=hours_ago)
        small.sample(
            small.speech,
            small.h100,
            hours_ago=hours_ago,
            allocated=allocated,
            fair_share=4,
            pending=2,
        )

    assert [one.hours for one in found(small).starved] == [2.0, 1.0]


def test_what_is_borrowed_was_lent_in_proportion_to_what_stood_idle(shared: Small) -> None:
    lending = found(shared).lending

    of = dict(zip(lending.lenders, lending.of[:, 0].tolist(), strict=True))
    assert lending.borrowers == ("platform",)
    assert of == {
        "vision": pytest.approx(4), "speech": pytest.approx(2), NOBODYS: pytest.approx(2),
    }  # fmt: skip


def test_lender_that_one_may_not_see_is_outside(small: Small) -> None:
    small.sample(small.research, small.h100, nominal=4, allocated=6)
    small.sample(small.vision, small.h100, nominal=4, allocated=6, fair_share=6)
    small.sample(small.platform, small.h100, nominal=8, allocated=0)

    assert found(small, small.lead).lending.lenders == (OUTSIDE,)


def test_slices_count_as_parts_of_a_gpu(small: Small) -> None:
    small.sample(small.root, small.mig, ready=14)
    small.sample(small.vision, small.mig, nominal=14, allocated=14, fair_share=14)

    (row,) = found(small).queues
    assert row.received == pytest.approx(2)


def test_report_of_one_user_has_no_shares(shared: Small) -> None:
    assert fairness(shared.cluster, shared.last(user="ann"), shared.operator).entitlement is None


def test_page_draws_below_framed_and_above_filled_on_one_scale(shared: Small) -> None:
    report = fairness(shared.cluster, shared.last(), shared.operator)
    page = fairness_page(report, show_all=False)

    kinds = {s.row.name: [(b.kind, b.height) for b in s.bars] for s in page["strips"]}
    assert kinds["vision"] == []
    assert kinds["speech"] == [("below", 11.0)]
    assert kinds["platform"] == [("above", 11.0)]
    assert fairness_finding(report).bold.startswith("research/speech received 50 %")


def test_dates_stand_above_the_strips_where_their_days_begin(shared: Small) -> None:
    report = fairness(shared.cluster, shared.last(24 * 14), shared.operator)
    dates = fairness_page(report, show_all=False)["dates"]

    begins = report.filters.start.replace(hour=0)
    assert [text for _, text in dates] == [
        f"{at.day} {at:%b}" for at in (begins + 24 * HOUR * n for n in (1, 8))
    ]
    assert [x for x, _ in dates] == [
        pytest.approx(100 / 15, abs=0.01),
        pytest.approx(800 / 15, abs=0.01),
    ]


def test_index_of_the_range_before_stands_beside_where_it_is_known(shared: Small) -> None:
    make_workload(shared.vision, submitted_at=END - 60 * HOUR)
    for hours_ago in (60, 30):
        shared.sample(shared.root, shared.h100, hours_ago=hours_ago, ready=16)
    shared.sample(shared.vision, shared.h100, hours_ago=30, allocated=1, fair_share=1)
    shared.sample(shared.speech, shared.h100, hours_ago=30, allocated=1, fair_share=3)

    assert found(shared, compare=True).jain_before == pytest.approx(0.8)
    assert found(shared).jain_before is None
    assert found(shared, hours=24 * 7, compare=True).jain_before is None


def test_gpus_that_were_down_stand_above_the_queue_that_missed_most(shared: Small) -> None:
    shared.sample(shared.root, shared.h100, hours_ago=2, installed=16, ready=8)
    report = fairness(shared.cluster, shared.last(), shared.operator)

    drawn = fairness_page(report, show_all=False)["received_figure"].as_dict()["layout"]
    assert len(drawn["shapes"]) == 1
    assert drawn["annotations"][0]["text"] == "8 h100 down"


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 100)), min_size=1, max_size=9))
def test_index_is_between_one_over_n_and_one(pairs: list[tuple[float, float]]) -> None:
    received, entitled = (np.array(values) for values in zip(*pairs, strict=True))

    index = jain(received, entitled)

    assert index is not None
    assert 1 / len(pairs) - 1e-9 <= index <= 1 + 1e-9


def test_index_of_nobody_is_not_known() -> None:
    assert jain(np.array([0.0]), np.array([0.0])) is None
