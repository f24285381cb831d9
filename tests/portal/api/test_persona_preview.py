"""What an edit of a persona would do, asked by a program: the page's answer, and nothing saved."""

from __future__ import annotations

import pytest

from portal.accounts.models import Persona
from portal.audit.models import AuditEntry
from tests.factories import make_workload

pytestmark = pytest.mark.django_db
URL = "/api/v1/personas/researcher/preview"


@pytest.fixture
def sent(cluster, api):
    """The researcher without a limit and with one class of priority less, as a client would send it."""
    kept = api("admin").get("/api/v1/personas/researcher").json()
    return {**kept, "max_run_time_s": 60}


def ask(client, body):
    return client.post(URL, body, format="json")


def test_preview_tells_who_has_it_what_changes_and_which_work_it_stops(cluster, api, sent):
    make_workload(
        cluster.queues.get(name="pretraining"),
        name="too-long",
        user="researcher",
        run_time_limit_s=3600,
    )
    told = ask(api("admin"), sent).json()
    (holder,) = [one for one in told["people"] if one["user"] == "researcher"]
    assert "pretraining" in " ".join(holder["teams"])
    (line,) = [line for line in told["lines"] if line["name"] == "Run-time limit"]
    assert (line["after"], line["loses"]) == ("1 min", True)
    assert "too-long" in {hit["name"] for hit in told["waiting"]}


def test_preview_saves_nothing_and_leaves_no_entry(cluster, api, sent):
    before = Persona.objects.get(name="researcher").max_run_time_s
    entries = AuditEntry.objects.count()
    assert ask(api("admin"), sent).status_code == 200
    assert Persona.objects.get(name="researcher").max_run_time_s == before
    assert AuditEntry.objects.count() == entries


def test_preview_refuses_what_saving_would_refuse(api, sent):
    taken = {**sent, "name": "admin"}
    previewed = ask(api("admin"), taken)
    saved = api("admin").put("/api/v1/personas/researcher", taken, format="json")
    assert previewed.status_code == saved.status_code == 409
    assert previewed.json() == saved.json()


def test_preview_is_absent_for_others_and_for_unknown_personas(api, sent):
    assert ask(api("lead"), sent).status_code == 404
    unknown = URL.replace("researcher", "nobody")
    assert api("admin").post(unknown, sent, format="json").status_code == 404


@pytest.mark.parametrize("grants", [{"submit": "all"}, {"operate": "team"}, {"fly": "all"}])
def test_reach_that_the_page_does_not_offer_is_refused_at_its_capability(api, sent, grants):
    answer = api("admin").put(
        "/api/v1/personas/researcher", {**sent, "grants": grants}, format="json"
    )
    (name,) = grants
    assert answer.status_code == 400
    assert name in str(answer.json())
