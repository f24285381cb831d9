"""Experiments: begun by a form, looked at, cancelled, promoted through their doors; pages and API."""

import json
from base64 import b64encode
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.web.frame.pages import PAGE
from scheduling.models import Study, StudyState
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies import doors
from tests.factories import NOW, example_cluster
from tests.foresight import live_of
from tests.lab import CHANGES, NODES, ORDER, empty_experiment, experiment, lived, with_work

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(monkeypatch):
    found = example_cluster()
    with_work(found)
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(doors, "send", lambda pk: None)
    return found


@pytest.fixture
def admin(cluster):
    client = Client()
    client.force_login(User.objects.get(username="admin"))
    return client


def address(name, *args):
    return reverse(f"web:{name}", args=["fra1", *args])


FORM = {
    "name": "Order in November",
    "first": str((NOW - timedelta(days=8)).date()),
    "last": str((NOW - timedelta(days=4)).date()),
    "warm_up_days": "2",
    "replays": "6",
    "draws": "near",
}


def test_empty_list_says_what_to_do(admin):
    assert "No study yet" in admin.get(address("studies")).content.decode()


@pytest.mark.parametrize(
    ("of", "listed"),
    [
        ("", ["asked-by-a-lead"]),
        ("experiments", ["asked-by-a-lead"]),
        ("adaptation", ["asked-by-nobody"]),
        ("capacity", []),
        ("x", ["asked-by-a-lead"]),
    ],
)
def test_experiments_of_adaptation_are_listed_apart_from_those_of_people(
    admin, cluster, of, listed
):
    empty_experiment(cluster, "asked-by-a-lead")
    empty_experiment(cluster, "asked-by-nobody", author="")
    text = admin.get(address("studies"), {"of": of} if of else {}).content.decode()
    assert [name for name in ("asked-by-a-lead", "asked-by-nobody") if name in text] == listed
    assert ("Weir, " in text) == ("asked-by-nobody" in listed)
    assert "Adaptation 1</a>" in text


def test_studies_beyond_a_page_are_on_the_next_one(admin, cluster):
    for number in range(PAGE + 2):
        empty_experiment(cluster, f"number-{number:03}")
    first = admin.get(address("studies")).content.decode()
    last = admin.get(address("studies"), {"page": 2, "of": "experiments"}).content.decode()
    assert "number-051" in first
    assert "number-001" not in first
    assert "1–50 of 52" in first
    assert "number-001" in last
    assert "of=experiments" in last.split('aria-label="Pages"')[1]


def test_api_lists_the_kinds_that_are_asked_for(admin, cluster):
    empty_experiment(cluster, "asked-by-a-lead")
    empty_experiment(cluster, "asked-by-nobody", author="")
    at = "/api/v1/clusters/fra1/studies"
    assert admin.get(at).json()["count"] == 2
    told = admin.get(at, {"kind": "adapting"}).json()["results"]
    assert [(one["name"], one["author"]) for one in told] == [("asked-by-nobody", "")]
    refused = admin.get(at, {"kind": "x"})
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_choice")


def test_form_begins_with_a_period_that_the_ledger_has(admin):
    text = admin.get(address("experiment_new")).content.decode()
    assert 'type="date" value="2026-11-18"' in text
    assert "judged" in text


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"policy-setting": "order", "policy-value": "rank"}, "Order inside a queue: rank"),
        ({"queue-queue": "research", "queue-sharing": "promise"}, "above nominal promise"),
        ({"quota-queue": "speech", "quota-gpu_class": "h100-80gb", "quota-nominal_gpus": "4"}, "nominal 4"),
        ({"capacity-gpu_class": "h100-80gb", "capacity-nodes": "-2"}, "2 nodes h100-80gb fewer"),
        ({"class-gpu_class": "h100-80gb", "class-exchange_rate": "0.5"}, "h100-80gb counts 0.5"),
    ],
)  # fmt: skip
def test_variant_is_added_in_words(admin, typed, told):
    kind = next(iter(typed)).partition("-")[0]
    text = admin.post(address("experiment_new"), {**FORM, "add": kind, **typed}).content.decode()
    assert told in text
    assert "Order in November" in text


def test_change_is_added_to_a_variant_and_a_variant_removed(admin):
    held = {**FORM, "variant": [json.dumps(ORDER), json.dumps(CHANGES)]}
    grown = {
        "add": "capacity",
        "into": "0",
        "capacity-gpu_class": "h100-80gb",
        "capacity-nodes": "2",
    }
    assert (
        "2 nodes h100-80gb more"
        in admin.post(address("experiment_new"), held | grown).content.decode()
    )
    left = admin.post(address("experiment_new"), held | {"remove": "0"}).content.decode()
    assert "Shortest first" not in left
    assert "Less for speech" in left


def test_experiment_is_begun_and_found_again(admin, cluster):
    answer = admin.post(address("experiment_new"), {**FORM, "variant": json.dumps(ORDER)})
    made = Study.objects.get()
    assert answer.headers["Location"] == address("study", made.pk)
    assert "Order in November" in admin.get(address("studies")).content.decode()
    assert "Too few replays yet" in admin.get(address("study", made.pk)).content.decode()


def test_experiment_that_is_cancelled_early_promises_no_figures(admin, cluster):
    admin.post(address("experiment_new"), {**FORM, "variant": json.dumps(ORDER)})
    made = Study.objects.get()
    admin.post(address("study_cancel", made.pk))
    html = admin.get(address("study", made.pk)).content.decode()
    assert "It ended with too few replays" in html
    assert "Figures come after" not in html


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"name": ""}, "An experiment needs a name."),
        ({"first": "soon"}, "That is no date."),
        ({"last": "2026-11-25"}, "The period is not over yet."),
        ({"warm_up_days": "27"}, "The ledger has not all of it."),
        ({"replays": "many"}, "That is no whole number."),
        ({"variant": "{"}, "That cannot be read."),
        ({"variant": '{"name": "n", "changes": [{"kind": "quota"}]}'}, "needs"),
        ({"variant": '{"name": "n", "changes": 7}'}, "There is no change."),
    ],
)
def test_bad_form_is_shown_again_with_what_is_wrong(admin, wrong, told):
    answer = admin.post(address("experiment_new"), {**FORM, **wrong})
    assert answer.status_code == 400
    assert told in answer.content.decode()
    assert not Study.objects.exists()


TRACE = "submitted,run_s,gpus,queue,user,asked_s\n" + "".join(
    f"2025-03-{1 + i // 24:02}T{i % 24:02}:00:00,7200,2,speech,u-{i % 4},0\n" for i in range(72)
)


def sent(text: str) -> dict[str, str]:
    content = b64encode(text.encode()).decode()
    return {"of": "file", "file_name": "week.ledger.csv", "file_content": content}


def test_trace_that_was_chosen_is_lived_and_told(admin, cluster):
    answer = admin.post(address("experiment_new"), {**FORM, **sent(TRACE), "warm_up_days": "1"})
    made = Study.objects.get()
    told = made.basis["source"]["name"], made.basis["jobs"]
    assert (answer.status_code, *told) == (302, "week.ledger.csv", 48)
    text = admin.get(address("study", made.pk)).content.decode()
    assert "The work is that of the trace week.ledger.csv" in text
    assert "Queues of the same name take theirs: speech." in text


def test_trace_stays_with_the_form_while_a_variant_is_added(admin, cluster):
    typed = {
        **FORM,
        **sent(TRACE),
        "add": "policy",
        "policy-setting": "order",
        "policy-value": "rank",
    }
    text = admin.post(address("experiment_new"), typed).content.decode()
    assert "week.ledger.csv is held by this form." in text
    assert sent(TRACE)["file_content"] in text


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (sent(TRACE.replace(",7200,", ",soon,")), "week.ledger.csv:2: expected whole seconds"),
        (sent(TRACE) | {"file_content": "*"}, "The file did not come whole."),
        (sent(TRACE) | {"file_name": ""}, "No trace is chosen."),
        ({"of": "kept", "kept": "philly"}, "There is no such trace."),
        (sent(TRACE) | {"trace_first": "2025-04-01", "trace_last": "2025-04-02"}, "The trace has"),
        (sent(TRACE) | {"trace_first": "soon"}, "That is no date."),
    ],
)
def test_bad_trace_is_refused_on_the_form(admin, wrong, told):
    answer = admin.post(address("experiment_new"), {**FORM, "warm_up_days": "0", **wrong})
    assert answer.status_code == 400
    assert told in answer.content.decode()
    assert not Study.objects.exists()


def test_kept_trace_is_chosen_by_its_name(admin, cluster, settings, tmp_path):
    (tmp_path / "week.ledger.csv").write_text(TRACE)
    settings.WEIR_LAB_TRACES = tmp_path
    assert "<option>week.ledger.csv" in admin.get(address("experiment_new")).content.decode()
    typed = {"of": "kept", "kept": "week.ledger.csv", "warm_up_days": "0"}
    admin.post(address("experiment_new"), {**FORM, **typed})
    made = Study.objects.get()
    assert (made.basis["source"]["name"], made.basis["jobs"]) == ("week.ledger.csv", 72)
    clone = admin.get(f"{address('experiment_new')}?clone={made.pk}").content.decode()
    assert 'value="kept" checked' in clone


def test_page_says_what_of_the_period_is_not_kept(admin, cluster, monkeypatch):
    cluster.history.model.objects.all().delete()
    made = experiment(cluster, monkeypatch)
    text = admin.get(address("study", made.pk)).content.decode()
    assert "quotas as in force then" in text
    assert "The policy of then is not kept: today&#x27;s is lived." in text


def test_promotion_says_what_speaks_against_it(admin, cluster, monkeypatch):
    made = lived(cluster, monkeypatch)
    text = admin.get(address("study", made.pk)).content.decode()
    assert "It lacks" in text
    assert "Less than a week is judged" in text


def test_results_say_better_worse_or_noise_and_have_tables(admin, cluster, monkeypatch):
    made = lived(cluster, monkeypatch)
    text = admin.get(address("study", made.pk)).content.decode()
    for told in ("Results over all", "By queue: P90 wait", "widened for 14 comparisons", "Difference to A",
                 "A replayed against what happened", "Promote"):  # fmt: skip
        assert told in text
    assert "every 2s" not in text


def test_page_of_what_is_lived_still_asks_again(admin, cluster, monkeypatch):
    made = experiment(cluster, monkeypatch)
    assert "every 2s" in admin.get(address("study", made.pk)).content.decode()


def test_clone_begins_with_the_same(admin, cluster, monkeypatch):
    made = experiment(cluster, monkeypatch)
    text = admin.get(f"{address('experiment_new')}?clone={made.pk}").content.decode()
    assert "Order and supply, again" in text
    assert "Less for speech" in text


def test_csv_has_every_variant_and_queue(admin, cluster, monkeypatch):
    made = lived(cluster, monkeypatch)
    lines = admin.get(address("study_csv", made.pk)).content.decode().splitlines()
    assert lines[0].startswith("queue,variant,replays,figure,mean,difference")
    assert any(line.startswith(",B,6,avg_wait_s,") for line in lines)
    assert any(",C,6,p90_wait_s," in line and not line.startswith(",") for line in lines)


def test_one_variant_is_cancelled(admin, cluster, monkeypatch):
    made = experiment(cluster, monkeypatch)
    admin.post(address("study_cancel", made.pk), {"letter": "C"})
    states = dict(made.variants.values_list("letter", "state"))
    assert (states["B"], states["C"]) == (StudyState.WAITING, StudyState.CANCELLED)


def test_promoted_policy_is_typed_into_the_policy_page_and_not_saved(admin, cluster, monkeypatch):
    made = lived(cluster, monkeypatch)
    answer = admin.post(address("study_promote", made.pk), {"letter": "B", "reason": "waits fall"})
    assert answer.headers["Location"].startswith(f"{address('policy')}?draft=1")
    text = admin.get(answer.headers["Location"]).content.decode()
    assert '<option value="shortest_predicted" selected>' in text
    assert 'value="waits fall"' in text
    assert "not saved yet" in text
    cluster.refresh_from_db()
    assert cluster.order != "shortest_predicted"


def test_promoted_quota_is_typed_into_the_grid(admin, cluster, monkeypatch):
    made = lived(cluster, monkeypatch)
    answer = admin.post(
        address("study_promote", made.pk), {"letter": "C", "reason": "speech idles"}
    )
    assert "/quotas/" in answer.headers["Location"]
    assert "not saved yet" in admin.get(answer.headers["Location"]).content.decode()


def test_promoted_queue_is_typed_into_its_form(admin, cluster, monkeypatch):
    way = {"name": "p", "changes": [{"kind": "queue", "queue": "research", "sharing": "promise"}]}
    made = lived(cluster, monkeypatch, variants=[way])
    answer = admin.post(address("study_promote", made.pk), {"letter": "B", "reason": "r"})
    text = admin.get(answer.headers["Location"]).content.decode()
    assert '<option value="promise" selected>' in text


@pytest.mark.parametrize(("letter", "reason"), [("B", ""), ("C", "r"), ("Z", "r"), ("B", "a\nb")])
def test_promotion_that_cannot_be_is_shown_with_its_fault(
    admin, cluster, monkeypatch, letter, reason
):
    made = lived(cluster, monkeypatch, variants=[ORDER, NODES])
    answer = admin.post(address("study_promote", made.pk), {"letter": letter, "reason": reason})
    assert answer.status_code == 400
    assert "Nothing was promoted" in answer.content.decode()
    assert not made.variants.exclude(promoted_at=None).exists()


API = "/api/v1/clusters/fra1/studies"


def body(**more):
    told = {
        "kind": "experiment",
        "name": "By REST",
        "begin": (NOW - timedelta(days=8)).isoformat(),
        "end": (NOW - timedelta(days=3)).isoformat(),
        "warm_up_days": 2,
        "replays": 6,
        "variants": [ORDER],
    }
    return {**told, **more}


def post(client, url, data):
    return client.post(url, data, content_type="application/json")


def test_api_begins_reads_cancels_and_drops(admin, cluster):
    answer = post(admin, API, body())
    assert answer.status_code == 202
    one = answer.headers["Location"]
    assert admin.get(API).json()["results"][0]["name"] == "By REST"
    assert admin.get(one).json()["answer"]["variants"][1]["done"] == 0
    told = post(admin, f"{one}/cancel", {"letter": "B"}).json()
    assert [v["state"] for v in told["variants"]] == ["waiting", "cancelled"]
    assert admin.delete(one).status_code == 204
    assert Study.objects.count() == 1
    assert admin.delete(one).status_code == 204
    assert not Study.objects.exists()


def test_api_refusal_names_the_field(admin):
    bad = [{"name": "n", "changes": [{**CHANGES["changes"][0], "queue": "nowhere"}]}]
    answer = post(admin, API, body(variants=bad))
    assert answer.status_code == 400
    assert "variants.0.changes.0.queue" in answer.content.decode()


def test_api_promotes_and_changes_nothing(admin, cluster, monkeypatch):
    made = lived(cluster, monkeypatch)
    answer = post(admin, f"{API}/{made.pk}/promote", {"letter": "B", "reason": "waits fall"})
    assert answer.json() == {
        "policy": {"order": "shortest_predicted"}, "quotas": [], "queues": [], "left_out": [],
    }  # fmt: skip
    cluster.refresh_from_db()
    assert cluster.order != "shortest_predicted"
