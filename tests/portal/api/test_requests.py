"""Requests by REST: all that a page does."""

import pytest

from tests.portal.approvals.conftest import cluster, nominal, people, wish

__all__ = ["cluster", "people", "wish"]

pytestmark = pytest.mark.django_db
URL = "/api/v1/clusters/fra1/requests"
ASKED = {
    "kind": "quota", "queue": "alignment", "gpu_class": "h100-80gb", "gpus": 8,
    "ends_at": "2026-12-31T00:00:00Z", "reason": "DPO runs",
}  # fmt: skip


def made(api, **more) -> str:
    answer = api("s.marchetti").post(URL, ASKED | more, format="json")
    assert answer.status_code == 201, answer.json()
    return answer.headers["Location"]


def test_request_goes_from_asking_to_its_revocation(cluster, people, api):
    one = made(api)
    assert api("s.marchetti").get(one).json()["state"] == "submitted"
    lead, approver = api("lead"), api("approver")
    assert "forward" in lead.get(one).json()["may"]
    lead.post(f"{one}/forward", {"giver": "vision", "note": "From vision"}, format="json")
    done = approver.post(f"{one}/approve", {"note": "Half", "gpus": 4}, format="json").json()
    assert (done["state"], done["granted_gpus"], done["giver"]) == ("active", 4.0, "vision")
    assert nominal(cluster, "alignment") == 16
    said = api("s.marchetti").post(f"{one}/comments", {"text": "Thanks"}, format="json")
    assert said.status_code == 201
    done = approver.post(f"{one}/revoke", {"note": "Over"}, format="json").json()
    assert [step["verb"] for step in done["steps"]][-1] == "revoke"
    assert nominal(cluster, "alignment") == 12


def test_faults_stand_at_their_fields(cluster, people, api):
    answer = api("s.marchetti").post(URL, ASKED | {"gpus": 25, "reason": ""}, format="json")
    assert answer.status_code == 400
    assert set(answer.json()["fields"]) == {"gpus", "reason"}


def test_own_request_is_not_approved(cluster, people, api):
    answer = api("lead").post(URL, ASKED | {"queue": "language", "gpus": 2}, format="json")
    refused = api("lead").post(
        f"{answer.headers['Location']}/approve", {"note": "x"}, format="json"
    )
    assert (refused.status_code, refused.json()["code"]) == (403, "four_eyes")


def test_late_decision_is_a_conflict(cluster, people, api):
    one = made(api, gpus=2)
    api("s.marchetti").post(f"{one}/withdraw")
    refused = api("lead").post(f"{one}/reject", {"note": "No"}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (409, "moved_on")


@pytest.mark.parametrize("verb", ["approve", "ask-changes", "reject"])
def test_decision_on_a_former_version_decides_nothing(cluster, people, api, verb):
    one, approver = made(api, gpus=2), api("lead")
    former, state = approver.get(one)["ETag"], approver.get(one).json()["state"]
    api("s.marchetti").post(f"{one}/comments", {"text": "Less would do"}, format="json")

    answer = approver.post(f"{one}/{verb}", {"note": "x"}, format="json", HTTP_IF_MATCH=former)
    assert (answer.status_code, answer.json()["code"]) == (412, "changed_since_read")
    assert approver.get(one).json()["state"] == state


def test_decision_on_the_version_that_was_read_is_made(cluster, people, api):
    one, lead = made(api, gpus=2), api("lead")
    answer = lead.post(
        f"{one}/reject", {"note": "No"}, format="json", HTTP_IF_MATCH=lead.get(one)["ETag"]
    )
    assert answer.json()["state"] == "rejected"
    assert answer["ETag"] == lead.get(one)["ETag"]


def test_preview_says_what_less_would_do_and_names_nobody_elses_work(cluster, people, api):
    one = made(api)
    answer = api("s.marchetti").get(f"{one}/preview")
    assert answer.status_code == 200, answer.json()
    told = answer.json()
    assert [row["gpus"] for row in told["lesser"]] == [2.0, 4.0, 8.0]
    assert {row["queue"] for row in told["queues"]} <= {
        "alignment",
        "pretraining",
        "language",
        "research",
    }
    assert all(not line["name"] for line in told["lines"] if line["queue"] == "another team")


def test_draft_is_edited_and_submitted(cluster, people, api):
    one = made(api, draft=True, gpus=None)
    assert api("lead").get(one).status_code == 404
    done = api("s.marchetti").put(one, ASKED | {"gpus": 2}, format="json").json()
    assert (done["state"], done["gpus"]) == ("approver", 2.0)


def test_list_is_narrowed_by_state(cluster, people, api):
    made(api)
    lead = api("lead")
    assert lead.get(URL, {"state": "decide"}).json()["count"] == 1
    assert lead.get(URL, {"state": "ended"}).json()["count"] == 0


def test_rule_lets_small_requests_pass(cluster, people, api):
    rules = "/api/v1/clusters/fra1/request-rules"
    sent = {"below_gpus": 4, "from_siblings": True}
    assert api("lead").put(f"{rules}/language", sent, format="json").status_code == 200
    assert api("s.marchetti").get(rules).json()["results"][0]["below_gpus"] == 4.0
    asked = {"queue": "alignment", "gpus": 3, "giver": "pretraining"}
    passed = api("lead").post(URL, ASKED | asked, format="json").json()
    assert (passed["state"], passed["decider"]) == ("active", None)
    assert api("s.marchetti").put(f"{rules}/language", sent, format="json").status_code == 404
