"""Every refusal of the API has one shape: code, sentence, remedy, and fields where there are some."""

import pytest
from rest_framework.exceptions import Throttled
from rest_framework.test import APIClient

from portal.accounts.models import ApiToken, User
from portal.api.errors import handle
from scheduling.services.errors import ServiceError
from tests.factories import make_cluster, make_user

pytestmark = pytest.mark.django_db
WORKLOADS = "/api/v1/clusters/fra1/workloads"


def shape(response, status):
    assert response.status_code == status
    assert {"code", "sentence", "remedy"} <= set(response.data) <= {
        "code", "sentence", "remedy", "fields",
    }  # fmt: skip
    assert all(response.data[key] for key in ("code", "sentence", "remedy"))
    return response.data


@pytest.fixture
def anyone():
    client = APIClient()
    client.force_login(make_user("anyone"))
    return client


def test_nobody_signed_in_is_told_how_to():
    assert shape(APIClient().get("/api/v1/me"), 401)["code"] == "not_authenticated"


def test_unknown_token_is_refused_with_where_to_make_one():
    response = APIClient().get("/api/v1/me", headers={"Authorization": "Bearer weir_wrong"})
    assert shape(response, 401)["code"] == "authentication_failed"


def test_known_token_signs_its_person_in():
    _, plain = ApiToken.issue(make_user("bearer"), "laptop")
    response = APIClient().get("/api/v1/me", headers={"Authorization": f"Bearer {plain}"})
    assert response.data["username"] == "bearer"


def test_absent_and_forbidden_cluster_are_the_same_answer(anyone):
    make_cluster("hidden")
    there = anyone.get("/api/v1/clusters/hidden")
    nowhere = anyone.get("/api/v1/clusters/nowhere")
    assert shape(there, 404) == shape(nowhere, 404)


def test_unknown_address_answers_in_the_same_shape(anyone):
    assert shape(anyone.get("/api/v1/no/such/thing"), 404)["code"] == "not_found"


def test_wrong_method_names_itself(anyone):
    assert shape(anyone.delete("/api/v1/me"), 405)["code"] == "method_not_allowed"


def test_wrong_kind_of_body_names_itself(anyone):
    response = anyone.post("/api/v1/tokens", "name=x", content_type="text/plain")
    assert shape(response, 415)["code"] == "unsupported_media_type"


def test_broken_json_is_told_where(anyone):
    response = anyone.post("/api/v1/tokens", "{", content_type="application/json")
    assert "line 1" in shape(response, 400)["sentence"]


def test_too_many_requests_is_told_to_wait():
    response = handle(Throttled(wait=30), {})
    assert shape(response, 429)["code"] == "throttled"
    assert response["Retry-After"] == "30"


def test_missing_field_is_named(anyone):
    data = shape(anyone.post("/api/v1/tokens", {}, format="json"), 400)
    assert list(data["fields"]) == ["name"]


def test_service_refusal_keeps_code_remedy_and_field():
    refused = ServiceError("name_taken", "There is one.", "Choose another name.", field="name")
    response = handle(refused, {})
    assert response.status_code == 409
    assert response.data == {
        "code": "name_taken",
        "sentence": "There is one.",
        "remedy": "Choose another name.",
        "fields": {"name": ["There is one."]},
    }


def test_cross_site_post_with_a_session_is_refused(client):
    client.handler.enforce_csrf_checks = True
    client.force_login(User.objects.create_user("session"))
    response = client.post("/api/v1/tokens", {"name": "x"}, content_type="application/json")
    assert response.status_code == 403
    assert "CSRF" in response.json()["sentence"]


def test_wrong_filter_is_named(api):
    data = shape(api("lead").get(f"{WORKLOADS}?state=asleep"), 400)
    assert list(data["fields"]) == ["state"]
