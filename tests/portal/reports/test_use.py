"""Real use: what idles and for how long, at what cost, and what would have done instead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.notices import idle as notices
from portal.notices.models import Kind, Notice, Preference, When
from portal.reports.requests_and_use import AskedRow, would_do
from portal.reports.use import SHOWN, use
from portal.web.reports.use import UseLine, _first, use_page
from scheduling.models import (
    Announcement,
    Cluster,
    GpuClass,
    GpuUse,
    IdleEnd,
    IdleSpell,
    Prediction,
    Queue,
    State,
    Workload,
)
from tests.factories import make_member, make_user, make_workload
from tests.portal.reports.conftest import END, HOUR, Small

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def small(small: Small) -> Small:
    """Its clock stands at END; h100 cost 2 an hour."""
    Cluster.objects.filter(pk=small.cluster.pk).update(
        clock_real=datetime.now(UTC), clock_start=END, clock_speed=1e-9
    )
    small.cluster.refresh_from_db()
    GpuClass.objects.filter(pk=small.h100.pk).update(price_per_gpu_hour=2)
    GpuClass.history.filter(id=small.h100.pk).update(price_per_gpu_hour=2)  # type: ignore[attr-defined]
    small.sample(small.root, small.h100, installed=16, ready=16)
    return small


def held(queue: Queue, gpu_class: GpuClass, **fields: object) -> Workload:
    return make_workload(queue, **{  # type: ignore[no-any-return]
        "gpus": 4000, "members": 1, "gpu_class": gpu_class, "state": State.RUNNING,
        "started_at": END - 20 * HOUR, "user": "ann", **fields,
    })  # fmt: skip


def idling(
    work: Workload, since: timedelta, until: timedelta | None = None, **more: object
) -> IdleSpell:
    assert work.gpu_class is not None
    return IdleSpell.objects.create(
        workload=work, gpu_class=work.gpu_class, gpus=4000, since=END - since,
        until=None if until is None else END - until, **more,
    )  # fmt: skip


def test_idle_time_is_split_into_where_nothing_ran_and_what_was_partly_used(small: Small) -> None:
    small.sample(small.vision, small.h100, allocated=8, used=2)
    idling(held(small.vision, small.h100), HOUR, 0 * HOUR, ended=IdleEnd.USED)

    report = use(small.cluster, small.last(), small.operator)

    assert report.total.idle == pytest.approx(6)
    assert (report.nothing, report.partly) == (pytest.approx(4), pytest.approx(2))
    (day,) = [d for d in report.days if d.used]
    assert day.used + day.partly + day.nothing == pytest.approx(8)


def test_spell_is_clipped_at_the_ends_of_the_range(small: Small) -> None:
    small.sample(small.vision, small.h100, allocated=40, used=0)
    idling(held(small.vision, small.h100), 30 * HOUR)

    assert use(small.cluster, small.last(5), small.operator).nothing == pytest.approx(20)


def test_pause_shorter_than_what_is_told_of_counts_as_partly_used(small: Small) -> None:
    small.sample(small.vision, small.h100, allocated=8, used=0)
    idling(held(small.vision, small.h100), 29 * MINUTE, 0 * HOUR, ended=IdleEnd.USED)

    assert use(small.cluster, small.last(), small.operator).nothing == 0


def test_what_idles_now_says_since_when_at_what_cost_and_when_it_is_culled(small: Small) -> None:
    Cluster.objects.update(cull_after_s=7200)
    small.cluster.refresh_from_db()
    work = held(small.vision, small.h100, type="interactive")
    idling(work, 90 * MINUTE, first_told_at=END - HOUR)
    idling(held(small.vision, small.h100), 20 * MINUTE)

    (row,) = use(small.cluster, small.last(), small.operator).now

    assert row.spell.workload == work
    assert row.for_s == pytest.approx(5400, abs=1)
    assert row.culled is not None
    assert abs(row.culled - END - 30 * MINUTE) < MINUTE


def test_what_nobody_was_told_of_is_culled_no_sooner_than_after_the_whole_warning(
    small: Small,
) -> None:
    Cluster.objects.update(cull_after_s=3600)
    small.cluster.refresh_from_db()
    idling(held(small.vision, small.h100, type="interactive"), 3 * HOUR)

    (row,) = use(small.cluster, small.last(), small.operator).now

    assert row.culled is not None
    assert abs(row.culled - END - 30 * MINUTE) < MINUTE


@pytest.mark.parametrize(
    ("ended", "won"), [(IdleEnd.GIVEN_BACK, 16), (IdleEnd.CULLED, 16), (IdleEnd.USED, None)]
)
def test_what_a_nudge_won_back_lasts_until_the_run_would_have_ended(
    small: Small, ended: IdleEnd, won: float | None
) -> None:
    work = held(small.vision, small.h100, started_at=END - 8 * HOUR)
    Prediction.objects.create(
        workload=work, at=END, p10_s=0, p50_s=0, p90_s=0, told_at=END,
        told_p10_s=0, told_p50_s=10 * 3600, told_p90_s=20 * 3600,
    )  # fmt: skip
    idling(work, 4 * HOUR, 2 * HOUR, ended=ended, told=1)

    found = use(small.cluster, small.last(), small.operator).nudges.won_back

    assert (found and found.gpu_hours) == (won and pytest.approx(won))
    assert (found and found.cost) == (won and pytest.approx(2 * won))


def test_parts_of_what_became_of_nudges_add_up_to_all(small: Small) -> None:
    for end in (IdleEnd.GIVEN_BACK, IdleEnd.USED, IdleEnd.CULLED):
        work = held(small.vision, small.h100, started_at=END - 8 * HOUR)
        idling(work, 4 * HOUR, 2 * HOUR, ended=end, told=1)

    page = use_page(use(small.cluster, small.last(), small.operator), user=small.operator)

    parts = [part for _, _, part in page["nudge_rows"]]
    assert sorted(parts) == ["0 %", "0 %", "33.3 %", "33.3 %", "33.4 %"]


def test_what_no_run_time_was_predicted_of_won_nothing_that_is_known(small: Small) -> None:
    idling(held(small.vision, small.h100), 4 * HOUR, HOUR, ended=IdleEnd.CULLED, told=1)
    assert use(small.cluster, small.last(), small.operator).nudges.won_back is None


def test_what_fits_as_it_was_asked_stays_among_the_rows_that_would_save_something() -> None:
    rows = [_asked(f"less-{n}", "1 × l4") for n in range(20)] + [
        _asked(f"fits-{n}", "") for n in range(5)
    ]
    assert [row.name for row in _first(rows)][SHOWN - 4 :] == [
        "less-8", "fits-0", "fits-1", "fits-2",
    ]  # fmt: skip
    assert len(_first(rows)) == SHOWN


def _asked(name: str, would_do: str) -> AskedRow:
    return AskedRow(
        name, "vision", 1, "ann", 1, 1.0, "h100", 0, 10.0, 0.0, 0.0, 0.5, would_do, 0.5, 1.0,
        "uid", 1, 1,
    )  # fmt: skip


@pytest.mark.parametrize(("reader", "act"), [("ann", "/submit/?clone={uid}"), ("eve", "/w/{uid}/")])
def test_row_of_what_was_asked_leads_to_its_last_run_and_its_owner_to_the_form(
    small: Small, reader: str, act: str
) -> None:
    small.sample(small.vision, small.h100, allocated=8, used=2)
    make_member(small.vision, name=reader, may_submit=True)
    for name in ("eval-1", "eval-2"):
        newest = held(small.vision, small.h100, name=name)
        GpuUse.objects.create(
            workload=newest, gpu_class=small.h100, start=END - 2 * HOUR,
            gpu_s=20 * 3600, active_gpu_s=2 * 3600,
        )  # fmt: skip
    client = Client()
    client.force_login(User.objects.get(username=reader))
    page = client.get(reverse("reports:use", args=["fra1"]))
    (row,) = page.context["asked"]
    assert (row.row.newest, row.row.would_do) == (newest.uid, "1 × h100")
    assert act.format(uid=newest.uid) in page.content.decode()


def test_costs_are_told_to_who_reads_them_alone(small: Small) -> None:
    idling(held(small.vision, small.h100), 90 * MINUTE)
    (hidden,) = use(small.cluster, small.last(), small.lead).now
    payer = make_member(small.research, name="pay", may_read_costs=True)
    (shown,) = use(small.cluster, small.last(), payer).now

    assert (hidden.cost, hidden.per_hour) == (None, None)
    assert (shown.cost, shown.per_hour) == (pytest.approx(12, abs=0.1), 8.0)


def test_work_of_others_is_counted_and_not_named(small: Small) -> None:
    idling(held(small.vision, small.h100), 90 * MINUTE)
    idling(held(small.platform, small.h100), 90 * MINUTE)

    report = use(small.cluster, small.last(), small.lead)

    assert [row.spell.workload.queue_id for row in report.now] == [small.vision.pk]
    assert report.hidden == 0


def test_user_is_measured_from_the_hours_of_the_own_work(small: Small) -> None:
    mine, other = held(small.vision, small.h100), held(small.vision, small.h100, user="bob")
    for work, active in ((mine, 7200), (other, 100)):
        work.transitions.create(at=END - 2 * HOUR, to_state="admitted", gpus=4000)
        GpuUse.objects.create(
            workload=work, gpu_class=small.h100, start=END - HOUR, gpu_s=14_400, active_gpu_s=active
        )

    report = use(small.cluster, small.last(user="ann"), small.operator)

    assert report.total.used_share == pytest.approx(0.5)


MEMORY = {1: 80.0, 2: 40.0, 3: 5.0}
CLASSES = {
    1: GpuClass(pk=1, name="big", exchange_rate=Decimal(1), price_per_gpu_hour=Decimal(2)),
    2: GpuClass(pk=2, name="half", exchange_rate=Decimal("0.5"), price_per_gpu_hour=Decimal(1)),
    3: GpuClass(
        pk=3, name="slice", exchange_rate=Decimal("0.07"), price_per_gpu_hour=Decimal("0.2")
    ),
}


@pytest.mark.parametrize(
    ("gpus", "activity", "peak", "expected"),
    [
        (8, 0.9, 10, ("", 0.0)),
        (8, 0.39, 10, ("4 × big", 0.5)),
        (8, 0.2, 10, ("2 × big", 0.75)),
        (8, 0.2, 36, ("", 0.0)),
        (1, 0.9, 10, ("", 0.0)),
        (1, 0.3, 10, ("1 × half", 0.5)),
        (1, 0.3, 39, ("", 0.0)),
        (1, 0.05, 4, ("1 × slice", 0.9)),
    ],
)
def test_less_would_do_where_activity_and_memory_fit(
    gpus: float, activity: float, peak: float, expected: tuple[str, float]
) -> None:
    found, part = would_do(CLASSES[1], gpus, activity, peak, MEMORY, CLASSES)

    assert (found, part) == (expected[0], pytest.approx(expected[1]))


def test_owner_is_told_once_a_day_and_again_on_demand(small: Small) -> None:
    owner = make_user("ann")
    spell = idling(held(small.vision, small.h100), 40 * MINUTE)

    notices.look(small.cluster)
    notices.look(small.cluster)
    (one,) = Notice.objects.filter(user=owner)
    assert one.kind == Kind.IDLE
    assert "Nothing has run on 4 GPUs" in one.title

    IdleSpell.objects.filter(pk=spell.pk).update(told_at=END - HOUR)
    spell.refresh_from_db()
    notices.nudge(spell, by=small.operator)
    assert Notice.objects.filter(user=owner).count() == 2


@pytest.mark.parametrize(
    "change", [{"since": END - 10 * MINUTE}, {"until": END}, {"kept_until": END + HOUR}]
)
def test_who_idles_not_for_long_or_on_purpose_is_not_told(
    small: Small, change: dict[str, datetime]
) -> None:
    make_user("ann")
    spell = idling(held(small.vision, small.h100), 40 * MINUTE)
    IdleSpell.objects.filter(pk=spell.pk).update(**change)

    notices.look(small.cluster)

    assert not Notice.objects.exists()


def test_who_wants_no_such_notices_counts_as_told(small: Small) -> None:
    Preference.objects.create(user=make_user("ann"), kind=Kind.IDLE, when=When.OFF)
    spell = idling(held(small.vision, small.h100), 40 * MINUTE)

    notices.look(small.cluster)

    spell.refresh_from_db()
    assert (spell.told, Notice.objects.count()) == (1, 0)


def test_work_that_is_no_persons_is_told_to_its_team(small: Small) -> None:
    idling(held(small.vision, small.h100, user="svc"), 40 * MINUTE)

    notices.look(small.cluster)

    assert [n.user for n in Notice.objects.all()] == [small.researcher]


def post(user: object, verb: str, work: Workload) -> int:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")  # type: ignore[arg-type]
    return client.post(reverse(f"reports:use_{verb}", args=["fra1", work.uid])).status_code


def test_owner_keeps_it_and_who_may_act_on_it_nudges(small: Small) -> None:
    owner = make_member(small.vision, name="ann", may_submit=True)
    stranger = make_member(small.platform, name="zoe", may_submit=True)
    work = held(small.vision, small.h100)
    spell = idling(work, 40 * MINUTE)

    assert [post(u, "keep", work) for u in (owner, small.operator, stranger)] == [302, 404, 404]
    assert [post(u, "nudge", work) for u in (small.operator, stranger)] == [302, 404]

    spell.refresh_from_db()
    assert spell.kept_until is not None
    assert spell.told == 1


def test_act_on_what_idles_no_longer_says_so(small: Small) -> None:
    work = held(small.vision, small.h100)

    client = Client()
    client.force_login(small.operator, backend="django.contrib.auth.backends.ModelBackend")
    address = reverse("reports:use_nudge", args=["fra1", work.uid])

    said = client.post(address, {"next": reverse("reports:waits", args=["fra1"])}, follow=True)

    assert b"are no longer idle" in said.content


def hardly_using(small: Small) -> Workload:
    small.sample(small.vision, small.h100, allocated=8, used=2)
    work = held(small.vision, small.h100, name="eval-1")
    GpuUse.objects.create(
        workload=work, gpu_class=small.h100, start=END - 2 * HOUR,
        gpu_s=20 * 3600, active_gpu_s=2 * 3600,
    )  # fmt: skip
    return work


def test_who_may_act_has_the_owner_told_that_less_would_do_once_a_day(small: Small) -> None:
    owner = make_member(small.vision, name="ann", may_submit=True)
    stranger = make_member(small.platform, name="zoe", may_submit=True)
    work = hardly_using(small)

    tellers = (owner, stranger, small.operator, small.operator)
    assert [tell(user, work) for user in tellers] == [404, 404, 302, 302]

    (notice,) = Notice.objects.all()
    assert (notice.user, notice.kind) == (owner, Kind.IDLE)
    assert notice.title == "eval asks for more than it uses: 1 × h100 would do."
    (line,) = Announcement.objects.filter(kind="work.owner_told")
    assert (line.actor, line.after) == (
        small.operator.get_username(), {"owner": "ann", "would_do": "1 × h100"},
    )  # fmt: skip


def test_report_offers_to_tell_the_owner_and_then_says_when(small: Small) -> None:
    make_member(small.vision, name="ann", may_submit=True)
    work = hardly_using(small)
    offers = [asked_of(user).tells for user in (small.operator, User.objects.get(username="ann"))]
    tell(small.operator, work)

    assert offers == [True, False]
    assert asked_of(small.operator).told_at == END


def test_owner_who_takes_no_such_notices_is_not_said_to_be_told(small: Small) -> None:
    owner = make_member(small.vision, name="ann", may_submit=True)
    Preference.objects.create(user=owner, kind=Kind.IDLE, when=When.OFF)

    said = told(small.operator, hardly_using(small))

    assert b"ann takes no notices of idle GPUs" in said.content
    assert not Announcement.objects.filter(kind="work.owner_told").exists()


def asked_of(user: User) -> UseLine:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    (line,) = client.get(reverse("reports:use", args=["fra1"])).context["asked"]
    assert isinstance(line, UseLine)
    return line


def told(user: User, work: Workload, *, follow: bool = True) -> HttpResponse:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    address = reverse("reports:use_tell", args=["fra1", work.uid])
    return client.post(address, follow=follow)  # type: ignore[return-value]


def tell(user: User, work: Workload) -> int:
    return told(user, work, follow=False).status_code
