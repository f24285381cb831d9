"""What-if, start forecasts, the future of a queue, and where a predicted start is said."""

import html
import json
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import ApiToken, User
from portal.web.ahead import Ahead
from portal.web.studies import what_if as pages
from portal.web.studies.new_views import LISTED
from scheduling.models import (
    ForecastOutcome,
    ForecastRun,
    Queue,
    Quota,
    StartForecast,
    Study,
    StudyKind,
    StudyState,
    Workload,
)
from scheduling.services.errors import ServiceError
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies import doors, running, what_if
from tests.factories import NOW, example_cluster, make_workload
from tests.foresight import QUESTION, asked, forecast, live_of, with_past

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    return example_cluster()


@pytest.fixture
def admin(cluster):
    client = Client()
    client.force_login(User.objects.get(username="admin"))
    return client


def page(client, name, *args, **query):
    answer = client.get(reverse(f"web:{name}", args=["fra1", *args]), query)
    return answer, answer.content.decode()


def test_answer_says_who_starts_shares_and_waits(cluster, admin, monkeypatch):
    with_past(cluster)
    question = asked(cluster, monkeypatch)
    assert (question.state, question.fault) == (StudyState.DONE, "")
    _, text = page(admin, "study", question.pk)
    for told in (
        "With both changes",
        "At once: who starts",
        "Fair share now",
        "waits by queue",
        "alone",
    ):
        assert told in text


def test_nothing_is_found_of_starts_before_the_futures_are_lived(cluster, admin, monkeypatch):
    with_past(cluster)
    question = asked(cluster, monkeypatch)
    told = {
        key: value
        for key, value in question.answer.items()
        if key not in ("starts", "replay", "alone")
    }
    Study.objects.filter(pk=question.pk).update(answer=told, state=StudyState.RUNNING, progress=5)
    _, text = page(admin, "study", question.pk)
    assert "at once" in text.split('class="finding"')[1].split("</p>")[0]
    for unknown in ("start sooner", "starts sooner", "no change", "not within a week"):
        assert unknown not in text, unknown
    assert "left blank" in text


@pytest.mark.parametrize(
    ("before", "after", "starts", "turn", "moved"),
    [
        ([7200, 9000], [3600, 5000], False, 1, "1 h sooner"),
        ([7200, 9000], None, False, -1, "later"),
        ([7200, 9000], None, True, 1, "2 h sooner"),
        (None, [7200, 9000], False, 1, "sooner"),
        (None, None, True, 1, "sooner"),
        (None, None, False, 0, "no change"),
        ([7200, 9000], [7260, 9000], False, 0, "no change"),
    ],
)  # fmt: skip
def test_start_that_is_seen_on_one_side_only_moves_too(before, after, starts, turn, moved):
    band = {"before": before, "after": after}
    line = {"starts": starts, "sentence": ""}
    axis = Ahead.over([], NOW)
    one = pages._start("ns/work", band, line, {}, axis)
    assert (one.turn, one.moved) == (turn, moved)


def test_values_lie_inside_their_bands(cluster, admin, monkeypatch):
    with_past(cluster)
    replay = asked(cluster, monkeypatch).answer["replay"]
    sides = [side for row in replay["queues"] for side in (row["p50_s"], row["p90_s"])]
    for side in [*sides, *replay["figures"].values()]:
        assert side["low"] <= side["after"] <= side["high"]


def test_newest_study_stands_first(cluster, admin):
    for name, days in (("study-b", 2), ("study-c", 1), ("study-a", 3)):
        Study.objects.create(
            cluster=cluster, kind="experiment", name=name, author="admin", replays=1,
            asked_at=NOW - timedelta(days=days), basis={},
        )  # fmt: skip
    _, text = page(admin, "studies")
    assert text.index("study-c") < text.index("study-b") < text.index("study-a")


def test_question_grows_in_the_address(cluster, admin):
    answer, _ = page(admin, "what_ifs", add="capacity", gpu_class="h100-80gb", nodes="2")
    assert answer.status_code == 302
    text = admin.get(answer.headers["Location"]).content.decode()
    assert "2 nodes h100-80gb more" in text


def test_bad_input_is_shown_again_with_its_field(cluster, admin):
    answer, text = page(admin, "what_ifs", add="capacity", gpu_class="h100-80gb", nodes="many")
    assert answer.status_code == 400
    assert "That is no number." in text
    assert 'value="many"' in text


def test_asking_makes_a_row_and_leads_to_its_page(cluster, admin, monkeypatch):
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(doors, "send", lambda pk: None)
    url = reverse("web:what_ifs", args=["fra1"])
    answer = admin.post(url, {"change": [json.dumps(one) for one in QUESTION], "days": "7"})
    question = Study.objects.get()
    assert answer.headers["Location"].endswith(f"/studies/{question.pk}/")
    _, text = page(admin, "study", question.pk)
    assert "Waits for its turn" in text


def test_questions_beyond_a_page_are_on_the_next_one_and_keep_what_is_typed(cluster, admin):
    for number in range(LISTED + 1):
        Study.objects.create(
            cluster=cluster,
            kind=StudyKind.REPLAY,
            name=f"number-{number:02}",
            author="admin",
            asked_at=cluster.now() + timedelta(minutes=number),
        )
    change = json.dumps(QUESTION[0])
    url = reverse("web:what_ifs", args=["fra1"])
    first = admin.get(url, {"change": change}).content.decode()
    last = admin.get(url, {"change": change, "page": 2}).content.decode()
    assert "number-00" not in first
    assert "number-00" in last
    assert "change=" in first.split('aria-label="Pages"')[1].split("Next")[0]


def test_question_at_once_replays_no_days(cluster, admin, monkeypatch):
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(doors, "send", lambda pk: None)
    url = reverse("web:what_ifs", args=["fra1"])
    admin.post(url, {"change": [json.dumps(one) for one in QUESTION], "days": "now"})
    assert Study.objects.get().kind == StudyKind.NOW


def test_cancelled_question_is_not_worked_on(cluster, monkeypatch):
    monkeypatch.setattr(snapshots, "live", live_of)
    question = what_if.ask(cluster=cluster, document=QUESTION, author="admin")
    assert doors.cancel(question)
    running.work(question.pk)
    question.refresh_from_db()
    assert question.state == StudyState.CANCELLED


def test_question_that_is_cancelled_meanwhile_stays_cancelled(cluster, monkeypatch):
    monkeypatch.setattr(snapshots, "live", live_of)
    question = what_if.ask(cluster=cluster, document=QUESTION, author="admin")

    def past_of(*args, **more):
        doors.cancel(question)
        return real(*args, **more)

    real = what_if.past_of
    monkeypatch.setattr(what_if, "past_of", past_of)
    running.work(question.pk)
    question.refresh_from_db()
    assert question.state == StudyState.CANCELLED


def test_unknown_queue_is_refused_before_anything_is_kept(cluster, monkeypatch):
    monkeypatch.setattr(snapshots, "live", live_of)
    bad = [{**QUESTION[1], "queue": "nowhere"}]
    with pytest.raises(ServiceError) as caught:
        what_if.ask(cluster=cluster, document=bad, author="admin")
    assert caught.value.field == "changes.0.queue"
    assert not Study.objects.exists()


def test_future_forecasts_and_workload_say_the_same(cluster, admin):
    with_past(cluster)
    forecast(cluster)
    told = StartForecast.objects.exclude(p50_at=None).select_related("workload")
    assert told, "somebody is told a time"
    stamp = told[0].p50_at.isoformat()
    for name, args in (("queue_future", ["fra1"]), ("workload", [told[0].workload.uid])):
        _, text = page(admin, name, *args)
        assert stamp in text, name
    _, text = page(admin, "start_forecasts")
    assert "workloads started before the P90 that they were told" in text
    assert "Why " in text


def test_error_by_day_names_both_axes_and_its_ends(cluster, admin):
    for day in range(8):
        told = cluster.now() - timedelta(days=8 - day)
        for number in range(6):
            ForecastOutcome.objects.create(
                workload=make_workload(cluster.queues.get(name="recommend"), name=f"w{day}-{number}"),
                at_submission=True, told_at=told, p50_s=1800, p90_s=3600, raw_p50_s=1800,
                raw_p90_s=3600, naive_s=900, started_at=told + timedelta(hours=1),
            )  # fmt: skip
    _, text = page(admin, "start_forecasts")
    found = re.search(r'<p class="error-ticks".*?</p>', text)
    assert found
    assert re.findall(r"<span>(.*?)</span>", found[0]) == ["75 %", "38 %", "0 %"]
    days = re.search(r'<svg class="chart axis error-days".*?</svg>', text)
    assert days
    assert re.findall(r">([^<>]+)</text>", days[0])[:2] == ["11 Nov", "18 Nov"]
    assert "day of the start</p>" in text


def test_place_alone_is_told_with_the_reason_where_too_little_is_known(cluster, admin):
    forecast(cluster, futures=2)
    row = StartForecast.objects.select_related("workload").first()
    assert row.p50_at is None
    _, text = page(admin, "workload", row.workload.uid)
    assert row.why_not in text


def test_api_answers_with_the_address_of_what_is_worked_out(cluster, monkeypatch):
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(doors, "send", lambda pk: None)
    token = ApiToken.issue(User.objects.get(username="admin"), "test")[1]
    client = Client(headers={"Authorization": f"Bearer {token}"})
    url = reverse("api:studies", args=["fra1"])
    answer = client.post(
        url, {"kind": "replay", "changes": QUESTION}, content_type="application/json"
    )
    assert answer.status_code == 202
    one = client.get(answer.headers["Location"]).json()
    assert (one["state"], one["progress"]) == ("waiting", 0)
    assert client.delete(answer.headers["Location"]).status_code == 204
    assert client.get(answer.headers["Location"]).json()["state"] == "cancelled"


def test_api_names_the_field_at_fault(cluster):
    token = ApiToken.issue(User.objects.get(username="admin"), "test")[1]
    client = Client(headers={"Authorization": f"Bearer {token}"})
    bad = {
        "kind": "replay",
        "changes": [{"kind": "capacity", "gpu_class": "h100-80gb", "nodes": 0}],
    }
    answer = client.post(
        reverse("api:studies", args=["fra1"]), bad, content_type="application/json"
    )
    assert answer.status_code == 400
    assert "changes.0.nodes" in answer.json()["fields"]


def test_workload_of_the_api_has_its_forecast(cluster):
    with_past(cluster)
    forecast(cluster)
    row = StartForecast.objects.exclude(p50_at=None).select_related("workload").first()
    token = ApiToken.issue(User.objects.get(username="admin"), "test")[1]
    client = Client(headers={"Authorization": f"Bearer {token}"})
    told = client.get(reverse("api:workload", args=["fra1", row.workload.uid])).json()
    assert told["start_forecast"]["p50_at"].startswith(f"{row.p50_at:%Y-%m-%dT%H:%M}")
    assert Workload.objects.get(pk=row.workload_id).is_waiting


def test_added_capacity_has_its_price_of_a_week(cluster, admin, monkeypatch):
    with_past(cluster)
    question = asked(cluster, monkeypatch)
    _, text = page(admin, "study", question.pk)
    assert "16 h100-80gb more, a week" in text
    assert "€5,644.80" in text


def test_quota_of_an_answer_opens_typed_into_the_grid_and_is_not_saved(cluster, admin, monkeypatch):
    with_past(cluster)
    _, text = page(admin, "study", asked(cluster, monkeypatch).pk)
    address = html.unescape(re.search(r'href="([^"]*draft=1[^"]*)"', text)[1])
    before = Quota.objects.count()
    grid = admin.get(address).content.decode()
    assert "Typed in from a what-if, and not saved yet." in grid
    speech, h100 = Queue.objects.get(name="speech"), cluster.gpu_classes.get(name="h100-80gb")
    cell = re.search(rf'<input[^>]*name="cell-{speech.pk}-{h100.pk}-nominal"[^>]*>', grid)[0]
    assert 'value="4"' in cell
    assert Quota.objects.count() == before


def test_edit_of_the_grid_is_asked_about_before_it_is_saved(cluster, admin):
    speech, h100 = Queue.objects.get(name="speech"), cluster.gpu_classes.get(name="h100-80gb")
    typed = {f"cell-{speech.pk}-{h100.pk}-nominal": "4", "what_if": "1"}
    answer = admin.post(reverse("web:quotas", args=["fra1", "research"]), typed)
    assert answer.headers["Location"].startswith(reverse("web:what_ifs", args=["fra1"]))
    assert "speech h100-80gb: nominal 4" in admin.get(answer.headers["Location"]).content.decode()


def test_edit_with_a_fault_is_shown_again_instead(cluster, admin):
    speech, h100 = Queue.objects.get(name="speech"), cluster.gpu_classes.get(name="h100-80gb")
    typed = {f"cell-{speech.pk}-{h100.pk}-nominal": "four", "what_if": "1"}
    answer = admin.post(reverse("web:quotas", args=["fra1", "research"]), typed)
    assert answer.status_code == 400
    assert "is not a figure" in answer.content.decode()


def test_who_does_not_operate_is_not_led_from_the_grid_to_a_what_if(cluster):
    client = Client()
    client.force_login(User.objects.get(username="lead"))
    address = reverse("web:quotas", args=["fra1", "research"])
    assert 'name="what_if"' not in client.get(address).content.decode()


def test_future_names_the_run_that_a_start_hangs_on(cluster, admin):
    with_past(cluster)
    forecast(cluster)
    told = StartForecast.objects.exclude(p50_at=None).select_related("workload").first()
    run = Workload.objects.filter(cluster=cluster, state="running").first()
    move = {"end_s": 3600, "late_end_s": 7200, "start_s": 3600, "late_start_s": 7200}
    ForecastRun.objects.update(moves=[{"workload": told.workload.uid, "run": run.uid, **move}])
    gpu_class = told.workload.gpu_classes[0]
    _, text = page(admin, "queue_future", "fra1", **{"class": gpu_class})
    assert "What would move a start" in text
    moved = told.at + 2 * (told.p50_at - told.at)
    assert moved.isoformat() in text
