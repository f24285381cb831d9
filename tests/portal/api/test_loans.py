"""Loans by REST: all that their page does."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.portal.approvals.conftest import cluster, people

__all__ = ["cluster", "people"]

pytestmark = pytest.mark.django_db
URL = "/api/v1/clusters/fra1/loans"
OFFERS = "/api/v1/clusters/fra1/loan-offers"
TERMS = {"gpu_class": "h100-80gb", "gpus": 4, "until": "2027-01-31T00:00:00Z"}
ASKED = {"kind": "ask", "lender": "vision", "borrower": "alignment", "reason": "DPO runs", **TERMS}


def made(api, **more) -> str:
    answer = api("lead").post(URL, ASKED | more, format="json")
    assert answer.status_code == 201, answer.json()
    return answer.headers["Location"]


def test_loan_goes_from_asking_to_its_recall(cluster, people, api):
    lead, one = api("lead"), made(api)
    assert lead.get(one).json()["may"] == ["consent", "decline", "withdraw"]
    told = lead.post(f"{one}/consent", {"gpus": 2}, format="json").json()
    assert (told["state"], told["gpus"]) == ("running", 2.0)
    told = lead.post(f"{one}/recall", {"note": "needed"}, format="json").json()
    assert told["state"] == "recalled"
    assert told["term_ends_at"] < told["ends_at"]
    assert lead.post(f"{one}/give-back").json()["state"] == "ended"
    assert [row["id"] for row in lead.get(f"{URL}?state=ended").json()["results"]] == [told["id"]]


def test_offer_to_all_is_read_and_withdrawn(cluster, people, api):
    lead = api("lead")
    offer = lead.post(OFFERS, {"lender": "vision", **TERMS}, format="json").json()
    assert (offer["left_gpus"], offer["notice_h"]) == (4.0, 24)
    assert [row["id"] for row in api("admin").get(OFFERS).json()["results"]] == [offer["id"]]
    assert lead.delete(f"{OFFERS}/{offer['id']}").status_code == 204
    assert lead.get(OFFERS).json()["results"] == []


@pytest.mark.parametrize(("terms", "field"), [
    ({"gpus": 100}, "gpus"),
    ({"until": "2020-01-01T00:00:00Z"}, "until"),
    ({"lender": "nowhere"}, "lender"),
    ({"gpu_class": "v100"}, "gpu_class"),
    ({"offer": 77}, "offer"),
])  # fmt: skip
def test_faults_stand_at_their_fields(cluster, people, api, terms, field):
    answer = api("lead").post(URL, ASKED | terms, format="json")
    assert answer.status_code in (400, 409, 422), answer.json()
    assert field in answer.json()["fields"]


def test_decision_on_a_former_version_decides_nothing(cluster, people, api):
    lead, one = api("lead"), made(api)
    former = lead.get(one)["ETag"]
    lead.post(f"{one}/decline")
    answer = lead.post(f"{one}/consent", HTTP_IF_MATCH=former)
    assert (answer.status_code, answer.json()["code"]) == (412, "changed_since_read")


def test_loan_of_others_is_absent(cluster, people, api):
    one = made(api)
    assert api("p.rossi").get(one).status_code == 404
    assert api("p.rossi").post(f"{one}/consent").status_code == 404


def test_queries_do_not_grow_with_loans(cluster, people, api):
    lead, counts = api("lead"), []
    for _ in range(2):
        made(api, gpus=1)
        with CaptureQueriesContext(connection) as seen:
            lead.get(URL)
        counts.append(len(seen))
    assert counts[0] == counts[1]
