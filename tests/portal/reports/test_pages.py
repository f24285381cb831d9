"""The pages: who may open them, what stands in the address, CSV and JSON, and faults at their fields."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse

from scheduling.models import Cluster, EvictionRule
from tests.factories import make_user, make_workload
from tests.portal.reports.conftest import END, HOUR, Small
from tests.portal.reports.test_energy import took
from tests.portal.reports.test_fairness import over
from tests.portal.reports.test_preemptions import evict
from tests.portal.reports.test_reservations import decided
from tests.portal.reports.test_waits import started

KINDS = (
    "utilization", "energy", "waits", "starts", "longest", "reservations", "preemptions", "fairness",
    "fragmentation",
)  # fmt: skip


@pytest.fixture
def filled(small: Small) -> Small:
    """Something in each report of vision (research) and of platform; the clock stands near END."""
    Cluster.objects.filter(pk=small.cluster.pk).update(
        clock_real=datetime.now(UTC), clock_start=END
    )
    for hours_ago in (1, 2):
        at = {"hours_ago": hours_ago}
        small.sample(small.root, small.h100, installed=16, ready=16, **at)
        small.sample(small.research, small.h100, nominal=12, allocated=6, **at)
        small.sample(small.vision, small.h100, nominal=8, allocated=6, used=3, **at)
        small.sample(small.platform, small.h100, nominal=4, allocated=4, used=1, **at)
    started(small.vision, small.h100, wait_s=60, user="ann")
    started(small.platform, small.h100, wait_s=7200, user="=cmd()")
    over(small, small.vision, ahead_s=7200, user="ann")
    over(small, small.platform, ahead_s=-1800, user="=cmd()")
    evict(small, small.vision, small.platform)
    evict(small, small.platform, small.vision, rule=EvictionRule.PREEMPT)
    for queue, user in ((small.vision, "ann"), (small.platform, "=cmd()")):
        took(queue, small.h100, kwh=1, gpu_hours=2)
        work = make_workload(queue, user=user)
        decided(work, 2, "reserved", until=END)
        decided(work, 1, "starts")
    return small


def url(kind: str, query: str = "", suffix: str = "") -> str:
    name = f"reports:{kind}_{suffix}" if suffix else f"reports:{kind}"
    return f"{reverse(name, args=['fra1'])}{query}"


def client_of(user: object) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")  # type: ignore[arg-type]
    return client


@pytest.mark.django_db
@pytest.mark.parametrize("kind", KINDS)
def test_link_with_a_queue_that_one_may_not_see_keeps_its_other_filters(
    filled: Small, kind: str
) -> None:
    query = "?range=7d&queue=nowhere&user=ann&type=training&class=h100&compare=none"
    page = client_of(filled.operator).get(url(kind, query))
    filters = page.context["filters"]
    assert (filters.preset, filters.user, filters.type) == ("7d", "ann", "training")
    assert (filters.queue, filters.compare) == ("", False)


@pytest.mark.django_db
@pytest.mark.parametrize("kind", KINDS)
def test_report_sends_strangers_to_sign_in(filled: Small, kind: str) -> None:
    response = Client().get(url(kind))
    assert response.status_code == 302
    assert "next=" in response["Location"]


@pytest.mark.django_db
@pytest.mark.parametrize("suffix", ["", "csv", "json"])
@pytest.mark.parametrize("kind", KINDS)
def test_report_is_absent_for_people_without_a_queue(filled: Small, kind: str, suffix: str) -> None:
    assert client_of(make_user()).get(url(kind, suffix=suffix)).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("kind", KINDS)
def test_operator_sees_all_queues(filled: Small, kind: str) -> None:
    text = client_of(filled.operator).get(url(kind)).content.decode()
    assert 'id="finding"' in text
    assert "platform" in text


@pytest.mark.django_db
@pytest.mark.parametrize("person", ["lead", "researcher"])
@pytest.mark.parametrize("kind", KINDS)
def test_others_see_their_subtree_alone(filled: Small, kind: str, person: str) -> None:
    user = getattr(filled, person)
    page = client_of(user).get(url(kind)).content.decode()
    assert 'id="finding"' in page
    for text in (page, client_of(user).get(url(kind, suffix="json")).content.decode()):
        assert "platform" not in text
        assert "cmd" not in text


@pytest.mark.django_db
@pytest.mark.parametrize("kind", KINDS)
def test_queue_of_others_is_refused_like_one_that_does_not_exist(filled: Small, kind: str) -> None:
    answers = [
        client_of(filled.lead).get(url(kind, f"?queue={name}")) for name in ("platform", "nowhere")
    ]
    assert [answer.status_code for answer in answers] == [400, 400]
    texts = [answer.content.decode() for answer in answers]
    assert "There is no queue platform." in texts[0]
    assert "There is no queue nowhere." in texts[1]


@pytest.mark.django_db
@pytest.mark.parametrize("preset", ["this-month", "last-month"])
def test_month_is_a_range_of_page_and_export(filled: Small, preset: str) -> None:
    operator = client_of(filled.operator)
    page = operator.get(url("showback", f"?range={preset}"))
    assert page.context["filters"].preset == preset
    assert f"?range={preset}" in page.content.decode()
    told = operator.get(url("showback", f"?range={preset}", "json")).json()["filters"]
    assert told["from"] in {"2026-09-30T22:00:00+00:00", "2026-10-31T23:00:00+00:00"}


@pytest.mark.django_db
@pytest.mark.parametrize("kind", KINDS)
def test_report_takes_no_other_method(filled: Small, kind: str) -> None:
    assert client_of(filled.operator).post(url(kind)).status_code == 405


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?from=2026-11-18&to=2026-11-10", "The range ends before it begins."),
        ("?from=yesterday", "yesterday is no day."),
        ("?to=2026-11-10", "Say from when the range reaches."),
        ("?from=2027-01-01", "This lies in the future."),
        ("?from=1999-01-01", "At most five years."),
        ("?from=0001-01-01", "is no day."),
        ("?class=v100", "There is no GPU class v100."),
        ("?type=mining", "There is no type mining."),
        ("?range=1y", "There is no such range."),
    ],
)
def test_fault_stands_at_its_field_and_what_was_typed_stays(
    filled: Small, query: str, message: str
) -> None:
    response = client_of(filled.operator).get(url("utilization", query))
    text = response.content.decode()
    assert response.status_code == 400
    assert message in text
    if query.startswith("?from"):
        assert f'value="{query.split("=")[1].split("&", maxsplit=1)[0]}"' in text


@pytest.mark.django_db
def test_fault_in_json_names_the_field(filled: Small) -> None:
    response = client_of(filled.operator).get(url("waits", "?from=soon", suffix="json"))
    assert response.status_code == 400
    assert list(response.json()["errors"]) == ["from"]


@pytest.mark.django_db
@pytest.mark.parametrize("kind", KINDS)
def test_csv_has_the_rows_of_json(filled: Small, kind: str) -> None:
    client = client_of(filled.operator)
    response = client.get(url(kind, suffix="csv"))
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"].startswith(f'attachment; filename="fra1-{kind}-')
    rows = list(csv.DictReader(io.StringIO(b"".join(response).decode())))
    name = response["Content-Disposition"].split("-")[-1].removesuffix('.csv"')
    told = client.get(url(kind, suffix="json")).json()[name]
    assert len(rows) == len(told) > 0
    assert list(rows[0]) == list(told[0])


@pytest.mark.django_db
def test_csv_of_another_table_by_name(filled: Small) -> None:
    client = client_of(filled.operator)
    response = client.get(url("preemptions", "?format=csv&table=matrix"))
    assert b"evicted_from,for,evictions" in b"".join(response)
    assert client.get(url("preemptions", "?format=csv&table=users")).status_code == 404


@pytest.mark.django_db
def test_link_reproduces_the_view_later(filled: Small) -> None:
    client = client_of(filled.operator)
    page = client.get(url("waits", "?range=24h&queue=research"))
    later = client.get(page.context["link"])
    assert later.context["filters"].start == page.context["filters"].start
    assert later.context["report"].total == page.context["report"].total


@pytest.mark.django_db
def test_day_in_the_address_is_a_local_day(filled: Small) -> None:
    client = client_of(filled.operator)
    filters = client.get(url("waits", "?from=2026-11-18&to=2026-11-18")).context["filters"]
    assert filters.start.isoformat() == "2026-11-17T23:00:00+00:00"
    assert filters.end.isoformat() == "2026-11-18T23:00:00+00:00"


@pytest.mark.django_db
def test_page_says_plainly_that_nobody_measures(small: Small) -> None:
    small.sample(small.root, small.h100, installed=16, ready=16, hours_ago=1)
    small.sample(small.vision, small.h100, nominal=8, allocated=6, hours_ago=1)
    query = f"?from={END - 2 * HOUR:%Y-%m-%dT%H:%MZ}&to={END:%Y-%m-%dT%H:%MZ}"
    text = client_of(small.operator).get(url("utilization", query)).content.decode()
    assert 'id="not-measured"' in text
    assert "Really used" not in text


@pytest.mark.django_db
@pytest.mark.parametrize("kind", KINDS)
def test_empty_report_says_what_to_do(small: Small, kind: str) -> None:
    response = client_of(small.operator).get(url(kind))
    assert response.status_code == 200
    assert "Choose a" in response.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("kind", KINDS)
def test_page_has_no_inline_style_or_script(filled: Small, kind: str) -> None:
    text = client_of(filled.operator).get(url(kind)).content.decode()
    assert " style=" not in text
    assert "<style" not in text
    inline = [part for part in text.split("<script")[1:] if "src=" not in part.split(">")[0]]
    assert all('type="application/json"' in part.split(">")[0] for part in inline)
