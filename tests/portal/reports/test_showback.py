"""Showback: each row adds up, prices are those of the day, budgets run out when they will."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from portal.accounts.models import User
from portal.display.adding_up import shared_out
from portal.reports.budgets import set_budget, spendings
from portal.reports.models import Budget
from portal.reports.showback import ShowbackReport, showback
from portal.reports.use import use
from portal.reports.utilization import utilization
from portal.reports.words import showback_finding
from portal.web.reports.showback import showback_page
from scheduling.models import Cluster, EvictionRule, GpuClass, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.services.errors import ServiceError
from tests.factories import make_member
from tests.portal.reports.conftest import END, HOUR, Small
from tests.portal.reports.test_preemptions import evict

pytestmark = pytest.mark.django_db


@pytest.fixture
def payer(small: Small) -> User:
    Cluster.objects.filter(pk=small.cluster.pk).update(
        clock_real=datetime.now(UTC), clock_start=END, clock_speed=1e-9
    )
    small.cluster.refresh_from_db()
    set_price(small.h100, "2", END - timedelta(days=40))
    for hours_ago in (1, 2, 3, 5):
        small.sample(small.root, small.h100, installed=16, ready=16, hours_ago=hours_ago)
    return make_member(small.root, name="pay", may_read_costs=True, may_edit_quotas=True)


def set_price(gpu_class: GpuClass, price: str, at: datetime) -> None:
    gpu_class.price_per_gpu_hour = Decimal(price)
    gpu_class._history_date = at
    gpu_class.save()


def report_of(small: Small, user: User, hours: float = 24, **more: object) -> ShowbackReport:
    return showback(small.cluster, small.last(hours, **more), user)


def test_used_idle_and_lost_are_all_that_is_charged(small: Small, payer: User) -> None:
    small.sample(small.vision, small.h100, allocated=8, used=6)
    evict(small, small.vision, small.platform, rule=EvictionRule.RECLAIM)

    (row,) = report_of(small, payer).queues

    lost = row.costs.lost
    assert lost > 0
    assert row.costs.charged == pytest.approx(16)
    assert row.costs.used == pytest.approx(12 - lost)
    assert row.costs.idle == pytest.approx(4)


def test_sentence_says_what_the_rows_as_they_are_rounded_add_up_to(
    small: Small, payer: User
) -> None:
    for queue in (small.vision, small.speech):
        small.sample(queue, small.h100, allocated=4, used=2.3)

    bill = report_of(small, payer)

    assert bill.total.charged == pytest.approx(16)
    assert (bill.shown.charged, bill.shown.idle) == (16, 6)
    assert showback_finding(bill).bold == (
        "€16 in 24 hours, and €6 of it, 37.5 %, paid for GPUs that were held and idle."
    )


def test_idle_gpus_cost_the_same_in_real_use(small: Small, payer: User) -> None:
    set_price(small.h100, "3", END - 2 * HOUR)
    small.sample(small.vision, small.h100, allocated=8, used=6)
    small.sample(small.vision, small.h100, allocated=4, used=1, hours_ago=5)

    bill = report_of(small, payer)
    told = use(small.cluster, small.last(24), payer)

    assert told.idle_cost == bill.total.idle == pytest.approx(2 * 3 + 3 * 2)


def test_what_nobody_measured_counts_as_used_at_the_measured_share(
    small: Small, payer: User
) -> None:
    small.sample(small.vision, small.h100, allocated=8, used=4)
    small.sample(small.vision, small.h100, allocated=8, used=None, hours_ago=2)
    small.sample(small.speech, small.h100, allocated=2, used=None)

    rows = {row.name: row.costs for row in report_of(small, payer).queues}

    assert rows["vision"].used == pytest.approx(16)
    assert (rows["speech"].used, rows["speech"].idle) == (pytest.approx(4), 0)


def test_measured_is_what_utilization_does_not_call_unmeasured(small: Small, payer: User) -> None:
    """The work held 4 GPUs all day, of which two hours were sampled and one was measured."""
    small.hold(small.vision, small.h100, 4, END - 12 * HOUR, 12 * HOUR)
    for hours_ago, used in ((1, 2.0), (2, None)):
        UsageSample.objects.create(
            queue=small.vision, gpu_class=small.h100, resolution=Resolution.HOUR, seconds=3600,
            start=END - HOUR * hours_ago, allocated_gpus=4000,
            used_gpus=used and used * 1000,
        )  # fmt: skip
    bill = report_of(small, payer)
    total = utilization(small.cluster, small.last(24), payer).total
    assert bill.measured_share == pytest.approx(1 - total.unmeasured / total.allocated)
    assert bill.measured_share == pytest.approx(4 / 48)
    assert use(small.cluster, small.last(24), payer).measured_share == pytest.approx(4 / 48)


def test_hours_cost_what_their_class_did_on_the_day(small: Small, payer: User) -> None:
    set_price(small.h100, "3", END - 2 * HOUR)
    small.sample(small.vision, small.h100, allocated=4, used=4, hours_ago=1)
    small.sample(small.vision, small.h100, allocated=4, used=4, hours_ago=5)

    report = report_of(small, payer)

    assert report.total.charged == pytest.approx(4 * 3 + 4 * 2)
    row = next(r for r in report.classes if r.name == "h100")
    assert (row.price, row.changed) == (3.0, True)


def test_slices_count_as_parts_of_a_gpu_and_cost_their_own_price(small: Small, payer: User) -> None:
    set_price(small.mig, "0.2", END - timedelta(days=40))
    small.sample(small.vision, small.mig, allocated=14, used=14)

    report = report_of(small, payer)

    assert report.total.gpu_hours == pytest.approx(2)
    assert report.total.charged == pytest.approx(2.8)


def test_who_reads_no_costs_of_all_of_it_is_told_so(small: Small, payer: User) -> None:
    small.sample(small.vision, small.h100, allocated=8, used=6)
    part = make_member(small.vision, name="some", may_read_costs=True)

    assert report_of(small, small.lead).is_empty
    assert not report_of(small, part, queue="vision").is_empty


def test_who_reads_no_costs_is_led_to_what_the_own_work_cost(small: Small, payer: User) -> None:
    small.sample(small.vision, small.h100, allocated=8, used=6)
    client = Client()
    client.force_login(small.researcher, backend="django.contrib.auth.backends.ModelBackend")

    page = client.get(reverse("reports:showback", args=["fra1"])).content.decode()

    mine = reverse("web:my_work", args=["fra1"])
    assert f'The cost of your own work stands in <a href="{mine}">My work</a>' in page


def test_persons_and_others_add_up_to_the_total(small: Small, payer: User) -> None:
    small.sample(small.vision, small.h100, allocated=8, used=6)

    report = report_of(small, payer)

    assert sum(row.charged for row in report.users) == pytest.approx(report.total.charged)


def test_used_of_a_person_is_their_own_less_what_they_lost(small: Small, payer: User) -> None:
    small.sample(small.vision, small.h100, allocated=8, used=6)
    evict(small, small.vision, small.platform, rule=EvictionRule.RECLAIM)
    small.vision.workloads.update(user="ann")
    (row,) = report_of(small, payer).queues
    assert row.costs.lost > 0
    assert sum(one.used for one in report_of(small, payer).users) == pytest.approx(row.costs.used)


def test_used_of_persons_is_what_was_measured_of_their_own_work(small: Small, payer: User) -> None:
    """Both held 4 GPUs for an hour at 2 each; one of them used all, one a quarter."""
    small.sample(small.vision, small.h100, allocated=4, used=4)
    small.sample(small.speech, small.h100, allocated=4, used=1)
    for queue, name, active in ((small.vision, "ann", 1.0), (small.speech, "ben", 0.25)):
        work = queue.workloads.get()
        work.user = name
        work.save()
        work.gpu_use.create(
            gpu_class=small.h100, start=END - HOUR, gpu_s=4 * 3600, active_gpu_s=4 * 3600 * active
        )
    report = report_of(small, payer)
    shares = {row.name: row.used_share for row in report.users}
    assert shares == {"ann": pytest.approx(1.0), "ben": pytest.approx(0.25)}
    assert sum(row.used for row in report.users) == pytest.approx(report.total.used)


def test_page_adds_up_in_whole_money(small: Small, payer: User) -> None:
    for hours_ago, used in ((1, 1.1), (2, 2.35), (3, 0.7)):
        small.sample(small.vision, small.h100, allocated=3.3, used=used, hours_ago=hours_ago)
        small.sample(small.speech, small.h100, allocated=1.7, used=used / 2, hours_ago=hours_ago)

    page = showback_page(report_of(small, payer), user=payer)

    leaves = [line.money for line in page["lines"] if not line.is_sum]
    assert sum(m.charged for m in leaves) == page["sums"].charged
    assert sum(charged for _, _, charged in page["class_rows"]) == page["sums"].charged
    assert sum(charged for _, charged in page["user_rows"]) == page["sums"].charged
    (department,) = [line.money for line in page["lines"] if line.is_sum]
    assert department == sum(leaves[1:], leaves[0])


def test_department_shows_what_its_budget_has_spent(small: Small, payer: User) -> None:
    """Four parts of 0.7, each rounded for itself, would make it 4."""
    for queue in (small.vision, small.speech):
        small.sample(queue, small.h100, allocated=0.7, used=0.35)
    today = END.date()
    set_budget(queue=small.research, amount=Decimal(1000), begin=today, end=today, by=payer)
    bill = report_of(small, payer)
    page = showback_page(bill, user=payer)
    (department,) = [line.money.charged for line in page["lines"] if line.is_sum]
    (row,) = page["budgets"]
    assert row.one.spent == pytest.approx(2.8)
    assert department == round(row.one.spent) == 3
    leaves = [line.money for line in page["lines"] if not line.is_sum]
    assert sum(one.charged for one in leaves) == 3


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=8), st.integers(-3, 3))
def test_parts_shared_out_sum_to_the_whole_and_stay_near(values: list[float], off: int) -> None:
    total = round(sum(values)) + off

    parts = shared_out(values, total)

    assert sum(parts) == total
    assert all(abs(part - value) <= 1 + abs(off) for part, value in zip(parts, values, strict=True))


def spend(small: Small, days: int, gpus: float, last: float | None = None) -> None:
    for day in range(1, days + 1):
        held = gpus if last is None or day > 1 else last
        small.sample(small.vision, small.h100, hours_ago=24 * day, allocated=held)


def budget_of(small: Small, amount: int, ahead: int, behind: int = 10) -> Budget:
    today = END.date()
    return Budget(
        queue=small.vision, amount=Decimal(amount), begin=today - timedelta(days=behind),
        end=today + timedelta(days=ahead),
    )  # fmt: skip


def test_budget_runs_out_on_the_day_that_days_like_the_last_reach(
    small: Small, payer: User
) -> None:
    spend(small, days=10, gpus=5)

    (one,) = spendings(small.cluster, [budget_of(small, 125, ahead=10)], small.cluster.now())

    assert (one.spent, one.left) == (pytest.approx(100), pytest.approx(25))
    assert one.runs_out == END.date() + timedelta(days=3)
    assert one.at_end == pytest.approx(200)


def test_budget_says_what_a_day_costs(small: Small, payer: User) -> None:
    spend(small, days=10, gpus=5)

    (one,) = spendings(small.cluster, [budget_of(small, 500, ahead=4)], small.cluster.now())

    assert one.a_day == pytest.approx(10)


def test_budgets_of_one_time_add_up_and_those_within_another_count_once(
    small: Small, payer: User
) -> None:
    spend(small, days=10, gpus=5)
    today = END.date()
    time = {"begin": today - timedelta(days=10), "end": today + timedelta(days=4), "by": payer}
    for queue, amount in ((small.vision, 100), (small.research, 500), (small.platform, 50)):
        set_budget(queue=queue, amount=Decimal(amount), **time)

    found = showback_page(report_of(small, payer), user=payer)["budget_sum"]

    assert (found.count, found.amount) == (2, 550)
    assert found.spent == sum(
        round(row.one.spent)
        for row in showback_page(report_of(small, payer), user=payer)["budgets"]
        if row.one.budget.queue != small.vision
    )


def test_budgets_of_several_times_have_no_sum(small: Small, payer: User) -> None:
    today = END.date()
    for queue, days in ((small.vision, 1), (small.platform, 2)):
        end = today + timedelta(days=days)
        set_budget(queue=queue, amount=Decimal(9), begin=today, end=end, by=payer)

    assert showback_page(report_of(small, payer), user=payer)["budget_sum"] is None


def test_finding_says_what_the_budget_that_runs_out_spends_a_day_and_whose_gpus_idle(
    small: Small, payer: User
) -> None:
    for day in range(1, 11):
        for queue, used in ((small.vision, 1), (small.speech, 4)):
            small.sample(queue, small.h100, hours_ago=24 * day, allocated=5, used=used)
        small.sample(small.research, small.h100, hours_ago=24 * day, allocated=10)
    today = END.date()
    set_budget(
        queue=small.research, amount=Decimal(250), by=payer,
        begin=today - timedelta(days=10), end=today + timedelta(days=10),
    )  # fmt: skip

    said = showback_finding(report_of(small, payer)).rest

    assert said.startswith("research spends €20 a day and will have used its budget on ")
    assert said.endswith("80 % of what it paid for idle GPUs is vision's.")


def test_budget_that_lasts_runs_out_on_no_day(small: Small, payer: User) -> None:
    spend(small, days=10, gpus=5)

    (one,) = spendings(small.cluster, [budget_of(small, 500, ahead=10)], small.cluster.now())

    assert one.runs_out is None


def test_days_that_differ_widen_the_band(small: Small, payer: User) -> None:
    spend(small, days=10, gpus=5, last=15)

    (one,) = spendings(small.cluster, [budget_of(small, 500, ahead=4)], small.cluster.now())

    widths = [each.p50 - each.low for each in one.ahead]
    assert widths[0] > 0
    assert widths == sorted(widths)
    assert widths[3] == pytest.approx(2 * widths[0])


def test_few_days_give_no_forecast(small: Small, payer: User) -> None:
    spend(small, days=2, gpus=5)

    (one,) = spendings(small.cluster, [budget_of(small, 500, ahead=4)], small.cluster.now())

    assert (one.ahead, one.at_end, one.runs_out) == ([], None, None)


def test_budgets_of_a_queue_do_not_overlap(small: Small, payer: User) -> None:
    first = {"queue": small.vision, "amount": Decimal(5), "by": payer}
    set_budget(begin=date(2026, 10, 1), end=date(2026, 12, 31), **first)
    with pytest.raises(ServiceError) as refused:
        set_budget(begin=date(2026, 12, 31), end=date(2027, 3, 31), **first)
    set_budget(begin=date(2026, 10, 1), end=date(2026, 11, 30), **{**first, "amount": Decimal(7)})

    assert refused.value.code == "overlaps"
    (only,) = Budget.objects.all()
    assert (only.amount, only.end) == (7, date(2026, 11, 30))


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_budget_is_set_and_dropped_on_its_page_by_who_divides_from_above(
    small: Small, payer: User
) -> None:
    address = reverse("reports:budgets", args=["fra1"])
    typed = {"queue": "vision", "amount": "5000", "begin": "2026-11-01", "end": "2026-11-30"}

    assert client_of(small.researcher).get(address).status_code == 404
    assert client_of(payer).post(address, {**typed, "amount": "many"}).status_code == 400
    assert client_of(payer).post(address, typed).status_code == 302
    (made,) = Budget.objects.all()
    drop = reverse("reports:budget_drop", args=["fra1", made.pk])
    assert client_of(small.researcher).post(drop).status_code == 404
    assert client_of(payer).post(drop).status_code == 302
    assert not Budget.objects.exists()


# FOCUS


def test_focus_charges_what_showback_does_and_has_a_row_a_price_and_month(
    small: Small, payer: User
) -> None:
    for hours_ago in (790, 20, 5):
        small.sample(small.vision, small.h100, allocated=4, used=3, hours_ago=hours_ago)
    set_price(small.h100, "5", END - timedelta(hours=10))
    report = report_of(small, payer, hours=800)

    table = report.exports["focus"]()

    rows = table.as_dicts()
    assert rows
    assert list(rows[0]) == list(table.columns)
    assert sum(row["BilledCost"] for row in rows) == pytest.approx(report.total.charged)
    assert {row["ListUnitPrice"] for row in rows} == {2.0, 5.0}
    assert len({row["BillingPeriodStart"] for row in rows}) >= 2
    for row in rows:
        assert (
            row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"]
            <= row["BillingPeriodEnd"]
        )  # fmt: skip
        assert row["PricingQuantity"] * row["ListUnitPrice"] == pytest.approx(
            row["BilledCost"], abs=1e-4
        )
        parts = row["x_UsedCost"] + row["x_IdleCost"] + row["x_LostCost"]
        assert parts == pytest.approx(row["BilledCost"], abs=1e-4)
        assert row["ChargeCategory"] == "Usage"
        assert row["ChargePeriodStart"].endswith("Z")


MANDATORY = {
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd",
    "ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost",
    "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "ServiceCategory",
    "ServiceName",
}  # fmt: skip
"""Columns that FOCUS 1.2 asks of every data set."""
ASKED_FOR = {
    "ChargeFrequency", "ConsumedQuantity", "ConsumedUnit", "ContractedUnitPrice", "ListUnitPrice",
    "PricingCategory", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType",
    "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails", "SkuPriceId", "SubAccountId",
    "SubAccountName", "Tags",
}  # fmt: skip
"""Those that it recommends, or asks of whoever measures, has prices, places, resources, tags."""
NEVER_EMPTY = MANDATORY - {"ChargeClass"}


def test_focus_has_the_columns_of_the_specification_and_calls_others_its_own(
    small: Small, payer: User
) -> None:
    small.sample(small.vision, small.h100, allocated=4, used=3)
    table = report_of(small, payer).exports["focus"]()
    (row,) = table.as_dicts()

    own = {name for name in table.columns if name.startswith("x_")}
    assert set(table.columns) - own == MANDATORY | ASKED_FOR
    assert len(table.columns) == len(set(table.columns))
    assert [name for name in NEVER_EMPTY if row[name] in (None, "")] == []
    assert json.loads(row["SkuPriceDetails"]) == {"GpuClass": row["SkuId"]}


def test_focus_goes_by_page_and_api_to_who_reads_costs_alone(
    small: Small, payer: User, client: Client
) -> None:
    small.sample(small.vision, small.h100, allocated=4, used=3)
    page = reverse("reports:showback", args=[small.cluster.name])
    told = f"/api/v1/clusters/{small.cluster.name}/reports/showback"
    client.force_login(payer)

    shown = client.get(page, {"range": "24h"}).content.decode()
    saved = b"".join(client.get(page, {"format": "csv", "table": "focus"}).streaming_content)
    rows = client.get(told, {"table": "focus"}).json()
    wrong = client.get(told, {"table": "nothing"})

    assert "table=focus" in shown
    assert saved.decode().startswith("BillingAccountId,")
    assert list(rows) == ["report", "focus"]
    assert rows["focus"][0]["SubAccountName"] == "vision"
    assert wrong.status_code == 400
    assert "focus" in wrong.content.decode()
    client.force_login(make_member(small.root, name="other"))
    assert client.get(told, {"table": "focus"}).status_code == 400
