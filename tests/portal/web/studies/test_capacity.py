"""The page of capacity: the answer first, the curves, what is set and begun from it, and the same by REST."""

from __future__ import annotations

import csv
import html
import re
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.audit.models import AuditEntry
from portal.reports.capacity import capacity, newest_study
from portal.web.studies import capacity as page
from scheduling.models import Cluster, GpuClass, Study, StudyState, Workload
from scheduling.services.events import deliver_due
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies import doors
from tests.capacity import H100, WAITS, set_slo, studied
from tests.factories import NOW, example_cluster
from tests.foresight import live_of, with_past

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(doors, "send", lambda study_id: None)
    return example_cluster()


@pytest.fixture
def admin(cluster: Cluster) -> Client:
    client = Client()
    client.force_login(User.objects.get(username="admin"))
    return client


def text_of(answer: Any) -> str:
    plain = re.sub(r"<[^>]+>", " ", answer.content.decode())
    return " ".join(html.unescape(plain).replace("\xa0", " ").split())


def seen(client: Client, **query: str) -> str:
    answer = client.get(reverse("web:capacity", args=["fra1"]), query)
    assert answer.status_code == 200
    return text_of(answer)


def found(cluster: Cluster) -> Any:
    return capacity(cluster, newest_study(cluster), User.objects.get(username="admin"))


def test_short_class_says_what_it_needs_and_what_it_has(cluster: Cluster, admin: Client) -> None:
    studied(cluster)
    set_slo(cluster, 120)
    told = seen(admin)
    assert f"To hold its SLO of 2 h, {H100} needs 152 GPUs; it has 128." in told
    assert "24 GPUs (3 nodes) short." in told
    assert "SLO missed" in told


def test_class_with_room_says_how_much(cluster: Cluster, admin: Client) -> None:
    studied(cluster)
    set_slo(cluster, 330)
    assert "Holds, no node to spare." in seen(admin)
    set_slo(cluster, 500)
    assert "At least 8 GPUs more than it needs." in seen(admin)


def test_slo_that_no_number_holds_is_said(cluster: Cluster, admin: Client) -> None:
    studied(cluster)
    set_slo(cluster, 30)
    told = seen(admin)
    assert f"No number up to 152 GPUs that was tried holds the SLO of 30 min of {H100}" in told
    assert "> 152" in told


def test_without_an_slo_the_curve_stands_alone(cluster: Cluster, admin: Client) -> None:
    studied(cluster)
    told = seen(admin)
    assert "no SLO set" in told
    assert f"{H100} has no SLO set; replayed on its 128 GPUs, the P90 wait is 5 h 20 min." in told


def test_too_few_replays_or_workloads_tell_no_figure(cluster: Cluster, admin: Client) -> None:
    studied(cluster, spread=(1, 1.1, 1.2))
    set_slo(cluster, 120)
    assert "too few to say" in seen(admin)
    Study.objects.all().delete()
    studied(cluster, workloads=12)
    assert "too few to say" in seen(admin)


def test_uneven_curve_is_told_as_it_was_replayed(cluster: Cluster, admin: Client) -> None:
    studied(cluster, {0: 320, 1: 100, 2: 150, 3: 90})
    set_slo(cluster, 120)
    told = seen(admin)
    assert "needs 136 GPUs" in told
    assert "Uneven: more were tried and do not hold it." in told
    (curve,) = page.multiples(found(cluster))
    heights = [y for _, y in curve.rings]
    assert heights[2] < heights[1]


def test_before_any_study_the_page_says_how_to_get_one(cluster: Cluster, admin: Client) -> None:
    assert "No study of capacity is made yet." in seen(admin)


def test_nodes_that_are_added_lead_to_their_what_if(cluster: Cluster, admin: Client) -> None:
    studied(cluster)
    steps = page.steps(found(cluster).answer(H100))
    assert [step.what for step in steps] == ["as it is", "+1 node", "+2 nodes", "+3 nodes"]
    answer = admin.get(f"{reverse('web:what_ifs', args=['fra1'])}?{steps[2].what_if}")
    assert f"2 nodes {H100} more" in text_of(answer)


def test_numbers_below_the_axis_do_not_meet(cluster: Cluster) -> None:
    studied(cluster)
    set_slo(cluster, 170)
    (one,) = page.multiples(found(cluster))
    xs = sorted(mark.x for mark in one.marks)
    assert all(b - a >= page.LABEL_PX for a, b in pairwise(xs))
    assert {"128", "144"} <= {mark.text for mark in one.marks}


def test_csv_and_json_tell_the_same_needed(cluster: Cluster, admin: Client) -> None:
    studied(cluster)
    set_slo(cluster, 120)
    address = reverse("web:capacity", args=["fra1"])
    lines = b"".join(admin.get(address, {"format": "csv"}).streaming_content).decode().splitlines()  # type: ignore[attr-defined]
    (row,) = [one for one in csv.DictReader(lines) if one["gpu_class"] == H100]
    (told,) = [
        one for one in admin.get(address, {"format": "json"}).json()["classes"] if one["gpu_class"] == H100
    ]  # fmt: skip
    assert (row["needed"], row["over"], row["state"]) == ("152.0", "-24.0", "missed")
    assert (told["needed"], told["over"]) == (152.0, -24.0)
    assert (told["needed_low_edge"], told["needed_high_edge"]) == (152.0, 152.0)


def test_study_of_the_address_is_shown(cluster: Cluster, admin: Client) -> None:
    earlier = studied(cluster, {0: 60}, end=NOW - timedelta(days=9))
    studied(cluster)
    set_slo(cluster, 120)
    chosen = admin.get(
        reverse("web:capacity", args=["fra1"]), {"study": str(earlier.pk)}, follow=True
    )
    assert chosen.redirect_chain[0][0].startswith(reverse("web:study", args=["fra1", earlier.pk]))
    assert "needs 128 GPUs, the fewest tried" in text_of(chosen)
    gone = admin.get(reverse("web:capacity", args=["fra1"]), {"study": "999999"})
    assert gone.status_code == 404


def test_open_study_hides_nothing_that_was_told(cluster: Cluster, admin: Client) -> None:
    studied(cluster)
    studied(cluster, {}, state="running", progress=40, end=NOW, days=7)
    told = seen(admin)
    assert "40 %" in told
    assert "the 30 days" in told


def test_earlier_study_is_held_against_what_came(cluster: Cluster, admin: Client) -> None:
    with_past(cluster)
    end = NOW - timedelta(days=8)
    studied(cluster, {0: 60}, end=end, days=7)
    rows = Workload.objects.filter(submitted_at__gte=end, submitted_at__lt=end + timedelta(days=7))
    for row in rows:
        row.first_started_at = row.submitted_at + timedelta(minutes=66)
        row.save()
    (came,) = found(cluster).came
    assert (came.forecast.median_s, came.came_s, came.holds) == (3600, 66 * 60, True)
    assert "in the band" in seen(admin)
    rows.update(first_started_at=NOW)
    (came,) = found(cluster).came
    assert not came.holds


def test_study_without_a_day_after_it_is_not_tested(cluster: Cluster, admin: Client) -> None:
    studied(cluster)
    assert "A day has to come after a study." in seen(admin)


def test_slo_is_set_logged_and_taken_back(cluster: Cluster, admin: Client) -> None:
    address = reverse("web:capacity_slo", args=["fra1"])
    for minutes, kept in (("120", 7200), ("", None)):
        answer = admin.post(address, {"gpu_class": H100, "minutes": minutes})
        assert answer.status_code == 302
        assert GpuClass.objects.get(name=H100).wait_slo_s == kept
    assert GpuClass.history.filter(name=H100, wait_slo_s=7200).exists()
    deliver_due()
    entry = AuditEntry.objects.filter(kind="gpu_class.saved").first()
    assert (entry.before["wait_slo_s"], entry.after["wait_slo_s"]) == (7200, None)


@pytest.mark.parametrize("minutes", ["two", "0", "-5", "1.5", "99999999"])
def test_slo_that_is_none_is_refused_and_stays_typed(
    cluster: Cluster, admin: Client, minutes: str
) -> None:
    answer = admin.post(
        reverse("web:capacity_slo", args=["fra1"]), {"gpu_class": H100, "minutes": minutes}
    )
    assert answer.status_code == 400
    assert f'value="{minutes}"' in answer.content.decode()
    assert GpuClass.objects.get(name=H100).wait_slo_s is None


def test_study_is_begun_left_found_again_and_cancelled(cluster: Cluster, admin: Client) -> None:
    with_past(cluster)
    address = reverse("web:capacity", args=["fra1"])
    assert admin.post(address, {"days": "7"}).status_code == 302
    study = Study.objects.get()
    assert (study.author, study.days, study.state) == ("admin", 7, StudyState.WAITING)
    assert "waits for its turn" in seen(admin)
    refused = admin.post(address, {"days": "7"})
    assert refused.status_code == 400
    assert "A study is being made already." in text_of(refused)
    admin.post(reverse("web:study_cancel", args=["fra1", study.pk]))
    study.refresh_from_db()
    assert study.state == StudyState.CANCELLED


def test_number_of_days_that_is_none_is_refused(cluster: Cluster, admin: Client) -> None:
    refused = admin.post(reverse("web:capacity", args=["fra1"]), {"days": "many"})
    assert refused.status_code == 400
    assert "Ask for 1 to 30." in text_of(refused)


@pytest.fixture
def api(cluster: Cluster) -> APIClient:
    client = APIClient()
    client.force_login(User.objects.get(username="admin"))
    return client


def test_study_is_begun_read_and_dropped_by_rest(cluster: Cluster, api: APIClient) -> None:
    with_past(cluster)
    listed = reverse("api:studies", args=["fra1"])
    begun = api.post(listed, {"kind": "capacity", "days": 7, "replications": 6}, format="json")
    assert begun.status_code == 202
    told = api.get(begun.headers["Location"]).json()
    assert (told["state"], told["replays"]) == ("waiting", 6)
    assert api.get(listed).json()["results"][0]["id"] == told["id"]
    for gone in (200, 404):
        assert api.delete(begun.headers["Location"]).status_code == 204
        assert api.get(begun.headers["Location"]).status_code == gone


def test_curve_is_read_by_rest(cluster: Cluster, api: APIClient) -> None:
    study = studied(cluster)
    told = api.get(reverse("api:study", args=["fra1", study.pk])).json()["answer"]
    assert [row["steps_more"] for row in told["curve"]] == list(WAITS)
    assert told["curve"][1]["p90_median_s"] == 320 * 60


def test_slo_is_set_by_rest(cluster: Cluster, api: APIClient) -> None:
    address = reverse("api:gpu_class", args=["fra1", H100])
    answer = api.put(address, {"name": H100, "wait_slo_s": 7200}, format="json")
    assert (answer.status_code, answer.json()["wait_slo_s"]) == (200, 7200)
    refused = api.put(address, {"name": H100, "wait_slo_s": 5}, format="json")
    assert refused.status_code == 400


def test_page_asks_the_database_no_more_for_more_classes(
    cluster: Cluster, admin: Client, django_assert_max_num_queries: Any
) -> None:
    studied(cluster)
    set_slo(cluster, 120)
    with django_assert_max_num_queries(60):
        seen(admin)
