"""The single evictions behind the matrix: which are told, to whom, with what became of the victim."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from portal.reports.filters import OUTSIDE
from portal.reports.preemptions import preemptions
from portal.reports.scope import report_scope
from scheduling.models import Eviction, EvictionRule, State, Transition, Workload
from scheduling.services.words.sentences import OTHERS_QUEUE, OTHERS_WORK
from tests.factories import make_member, make_workload
from tests.portal.reports.conftest import END, HOUR, Small
from tests.portal.reports.test_pages import client_of, filled, url  # noqa: F401 - a fixture
from tests.portal.reports.test_preemptions import evict

pytestmark = pytest.mark.django_db


def told(small: Small, user: object = None, **filters: object) -> list[str]:
    """Names of the victims, newest first."""
    report = preemptions(small.cluster, small.last(**filters), user or small.operator)  # type: ignore[arg-type]
    return [one.name for one in report.evicted.newest()]


def ran(work: Workload, at: object) -> None:
    Transition.objects.create(workload=work, at=at, to_state=State.RUNNING)


def test_without_a_pair_all_are_told_newest_first(small: Small) -> None:
    old = evict(small, small.vision, small.platform, at=END - 3 * HOUR)
    new = evict(small, small.speech, rule=EvictionRule.STALE_GANG)
    assert told(small) == [new.workload.name, old.workload.name]


@pytest.mark.parametrize(
    ("pair", "count"),
    [
        ({"evicted": "vision"}, 2),
        ({"asking": "platform"}, 2),
        ({"evicted": "vision", "asking": "platform"}, 1),
        ({"evicted": "speech", "asking": "vision"}, 0),
        ({"evicted": "speech", "asking": OUTSIDE}, 0),
    ],
)
def test_pair_of_queues_narrows_to_its_cell(small: Small, pair: dict[str, str], count: int) -> None:
    evict(small, small.vision, small.platform)
    evict(small, small.vision, small.vision, rule=EvictionRule.PREEMPT)
    evict(small, small.speech, small.platform)
    assert len(told(small, **pair)) == count


def test_cells_and_their_single_evictions_agree(small: Small) -> None:
    for victim, winner in ((small.vision, small.platform), (small.speech, small.vision)):
        for _ in range(2):
            evict(small, victim, winner)
    matrix = preemptions(small.cluster, small.last(), small.operator).matrix
    for i, evicted in enumerate(matrix.names):
        for j, asking in enumerate(matrix.names):
            assert len(told(small, evicted=evicted, asking=asking)) == matrix.counts[i][j]


def test_winner_outside_is_a_cell_of_its_own_and_keeps_its_name(small: Small) -> None:
    evict(small, small.vision, small.platform)
    evict(small, small.vision, small.speech)
    report = preemptions(small.cluster, small.last(asking=OUTSIDE), small.lead)
    (one,) = report.evicted.newest()
    assert (one.winner, one.for_queue) == (OTHERS_WORK, OTHERS_QUEUE)
    assert "platform" not in str(report.evicted.table())


def test_victim_that_ran_again_says_after_how_long(small: Small) -> None:
    one = evict(small, small.vision, small.platform, at=END - 2 * HOUR)
    ran(one.workload, END - 3 * HOUR)
    ran(one.workload, END - 2 * HOUR + timedelta(minutes=7))
    ran(one.workload, END - HOUR)
    report = preemptions(small.cluster, small.last(), small.operator)
    assert [single.again_s for single in report.evicted.newest()] == [420.0]


@pytest.mark.parametrize(
    ("state", "fate"), [(State.REQUEUED, "waits"), (State.FINISHED, "ended without running again")]
)
def test_victim_that_did_not_run_again_says_what_became_of_it(
    small: Small, state: str, fate: str
) -> None:
    one = evict(small, small.vision, small.platform)
    Workload.objects.filter(pk=one.workload_id).update(state=state)
    (single,) = preemptions(small.cluster, small.last(), small.operator).evicted.newest()
    assert single.fate == fate


def test_loss_in_money_takes_the_price_of_the_day(small: Small) -> None:
    payer = make_member(small.root, name="pay", may_read_costs=True, may_operate=True)
    for price, at in (("2", END - 90 * HOUR), ("3", END - 10 * HOUR)):
        small.h100.price_per_gpu_hour = Decimal(price)
        small.h100._history_date = at
        small.h100.save()
    evict(small, small.vision, small.platform, at=END - 20 * HOUR, lost_hours=4)
    evict(small, small.vision, small.platform, at=END - 2 * HOUR, lost_hours=4)
    report = preemptions(small.cluster, small.last(), payer)
    assert [one.cost for one in report.evicted.newest()] == [pytest.approx(12), pytest.approx(8)]
    assert report.cost == pytest.approx(20)
    assert report.matrix.costs is not None
    assert sum(map(sum, report.matrix.costs)) == pytest.approx(20)
    assert [row.cost for row in report.queues] == [pytest.approx(20)]


def test_loss_in_money_is_kept_from_who_reads_no_costs(small: Small) -> None:
    evict(small, small.vision, small.platform)
    report = preemptions(small.cluster, small.last(), small.lead)
    assert report.cost is None
    assert report.matrix.costs is None
    assert [one.cost for one in report.evicted.newest()] == [None]
    assert report.as_dict()["lost_cost"] is None


def test_workload_evicted_again_is_told_with_its_chain(small: Small) -> None:
    work = make_workload(small.vision)
    for rule, winner, ago in (
        (EvictionRule.RECLAIM, small.platform, 5),
        (EvictionRule.RECLAIM, small.platform, 4),
        (EvictionRule.PREEMPT, small.vision, 3),
    ):
        one = evict(small, small.vision, winner, rule=rule, at=END - ago * HOUR)
        Eviction.objects.filter(pk=one.pk).update(workload=work)
    evict(small, small.speech, small.platform)
    (again,) = preemptions(small.cluster, small.last(), small.operator).evicted.again()
    assert (again.times, again.lost) == (3, pytest.approx(3))
    assert again.chain == [("2 × reclaim", "platform"), ("preempt", "vision")]


def test_table_has_every_eviction_of_the_cell_and_no_other(small: Small) -> None:
    for _ in range(30):
        evict(small, small.vision, small.platform)
    evict(small, small.speech, small.platform)
    report = preemptions(small.cluster, small.last(evicted="vision"), small.operator)
    table = report.evicted.table()
    assert len(table.rows) == 30
    assert {row[table.columns.index("evicted_from")] for row in table.rows} == {"research/vision"}


def test_evictions_of_other_classes_are_of_no_cell(small: Small) -> None:
    evict(small, small.vision, small.platform)
    filters = small.last(gpu_classes=("mig",))
    assert not report_scope(small.cluster, filters, small.operator).classes.get(small.h100.pk)
    assert told(small, gpu_classes=("mig",)) == []


def test_cell_of_the_page_leads_to_its_evictions(filled: Small) -> None:  # noqa: F811
    client = client_of(filled.operator)
    page = client.get(url("preemptions")).content.decode()
    assert "evicted=vision&amp;for=platform#singles" in page
    narrowed = client.get(url("preemptions", "?evicted=vision&for=platform"))
    assert [one.queue for one in narrowed.context["singles"]] == ["research/vision"]
    assert "of vision, for platform" in narrowed.content.decode()


def test_other_tabs_forget_the_cell(filled: Small) -> None:  # noqa: F811
    page = client_of(filled.operator).get(url("preemptions", "?evicted=vision&for=platform"))
    assert not any("evicted" in tab.url for tab in page.context["tabs"])


def test_cell_of_an_unknown_queue_is_a_fault_at_its_field(filled: Small) -> None:  # noqa: F811
    answer = client_of(filled.operator).get(url("preemptions", "?evicted=nowhere", "json"))
    assert answer.status_code == 400
    assert "evicted" in answer.json()["errors"]
