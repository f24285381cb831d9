"""Refusals that no view makes: JSON for programs, a page of Weir's own for people."""

import asyncio
import json
import threading
from urllib.parse import urlencode

import pytest
from asgiref.testing import ApplicationCommunicator
from django.http import Http404
from django.test import Client, override_settings
from django.urls import path

from portal.boundary import answers
from portal.boundary.asgi import bounded
from portal.boundary.bounds import MOST_BYTES, MOST_FIELDS
from portal.config import urls
from portal.config.asgi import application
from portal.config.handler import application_of_django
from tests.factories import make_user

pytestmark = pytest.mark.django_db
POLICY = "default-src 'none'"


def fail(request):
    raise RuntimeError("nobody foresaw this")


class Failing:
    """The project's addresses, and two that fail."""

    urlpatterns = [path("api/v1/fail", fail), path("fail", fail), *urls.urlpatterns]
    handler400, handler403 = urls.handler400, urls.handler403
    handler404, handler500 = urls.handler404, urls.handler500


@pytest.fixture
def browser():
    client = Client(raise_request_exception=False, enforce_csrf_checks=True)
    client.force_login(make_user("browser"))
    return client


def huge(client, url):
    return client.post(url, b"x" * (MOST_BYTES + 1), content_type="application/json")


def crowded(client, url):
    body = urlencode({f"f{i}": "" for i in range(MOST_FIELDS + 1)})
    return client.post(url, body, content_type="application/x-www-form-urlencoded")


CASES = {
    "an unknown host": (lambda c, url: c.get(url, headers={"Host": "evil.example"}), 400),
    "a NUL in the query": (lambda c, url: c.get(f"{url}?a=%00"), 400),
    "an escape in the query": (lambda c, url: c.get(f"{url}?a=%1b"), 400),
    "a NUL in a cookie": (lambda c, url: c.get(url, headers={"Cookie": 'a="\\000"'}), 400),
    "a long query": (lambda c, url: c.get(f"{url}?a={'x' * 9000}"), 414),
    "a long path": (lambda c, url: c.get(f"{url}/{'x' * 3000}"), 414),
    "another encoding": (lambda c, url: c.get(url, CONTENT_TYPE="text/plain; charset=utf-16"), 415),
    "a huge body": (huge, 413),
    "too many fields": (crowded, 400),
}


@pytest.mark.parametrize("what", CASES)
@pytest.mark.parametrize(
    "url", ["/api/v1/me", "/api/v1/tokens", "/api/v1/docs", "/api/v2/x", "/api"]
)
def test_program_gets_json_with_code_sentence_and_remedy(browser, what, url):
    send, status = CASES[what]
    response = send(browser, url)
    assert response.status_code == status
    assert response["Content-Type"] == "application/json"
    assert {"code", "sentence", "remedy"} == {k for k, v in response.json().items() if v}


@pytest.mark.parametrize("what", CASES)
def test_person_gets_a_page_under_the_strict_policy(browser, what):
    send, status = CASES[what]
    response = send(browser, "/account/tokens/")
    assert response.status_code == status
    assert POLICY in response["Content-Security-Policy"]
    assert b"Back to the overview" in response.content
    assert b"<script" not in response.content
    assert b"style=" not in response.content


@pytest.mark.parametrize(
    "address", ["/api", "/api/", "/api/v1", "/api/v1/", "/api/v2/me", "/api/x"]
)
@pytest.mark.parametrize("accept", ["text/html", "*/*", "application/xml", ""])
def test_unknown_address_of_the_api_answers_in_json(browser, address, accept):
    response = browser.get(address, headers={"Accept": accept} if accept else {})
    assert response.status_code in (404, 406)
    assert response["Content-Type"] == "application/json"


@pytest.mark.parametrize("kind", ["html", "xml", "api", "yaml"])
def test_format_that_is_not_served_is_refused_in_json(browser, kind):
    response = browser.get(f"/api/v1/me?format={kind}")
    assert (response.status_code, response["Content-Type"]) == (404, "application/json")


def test_refused_schema_is_json_whatever_was_asked_for():
    response = Client().get("/api/v1/schema", headers={"Accept": "application/vnd.oai.openapi"})
    assert (response.status_code, response["Content-Type"]) == (401, "application/json")
    assert response.json()["code"] == "not_authenticated"


def test_wrong_method_on_the_reference_is_json_and_names_the_right_ones(browser):
    response = Client(enforce_csrf_checks=False)
    response.force_login(make_user("other"))
    answer = response.post("/api/v1/docs")
    assert (answer.status_code, answer["Content-Type"]) == (405, "application/json")
    assert "GET" in answer["Allow"]


def test_page_posted_without_its_token_is_refused_on_a_page(browser):
    response = browser.post("/account/tokens/", {"name": "x"})
    assert response.status_code == 403
    assert POLICY in response["Content-Security-Policy"]
    assert b"Reload the page" in response.content


@override_settings(ROOT_URLCONF=Failing)
def test_failure_below_the_api_is_json_and_tells_nothing_of_itself(browser):
    response = browser.get("/api/v1/fail")
    assert (response.status_code, response["Content-Type"]) == (500, "application/json")
    assert response.json()["code"] == "failure"
    assert b"nobody foresaw" not in response.content


@override_settings(ROOT_URLCONF=Failing)
def test_failure_of_a_page_is_a_page_that_reads_no_database(browser, django_assert_num_queries):
    response = browser.get("/fail")
    assert response.status_code == 500
    assert POLICY in response["Content-Security-Policy"]
    assert b"Weir failed at this" in response.content


def test_host_that_is_refused_outside_of_every_view_gets_the_policy_too(browser):
    with override_settings(SECURE_SSL_REDIRECT=True):
        response = browser.get("/", headers={"Host": "evil.example"})
    assert response.status_code == 400
    assert POLICY in response["Content-Security-Policy"]


def serve(app, bodies, kind=b"application/json", query=b""):
    """What ``app`` answers to a request that arrives in these pieces."""
    sent, left = [], [*bodies]

    async def receive():
        body = left.pop(0) if left else b""
        return {"type": "http.request", "body": body, "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/tokens",
        "query_string": query,
        "headers": [(b"host", b"localhost"), (b"content-type", kind)],
    }
    asyncio.run(app(scope, receive, send))
    return sent, left


async def hungry(scope, receive, send):
    """Takes what comes until it ends, as Django does, and answers 200."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})


def test_body_that_grows_past_the_bound_is_answered_before_its_end():
    sent, left = serve(bounded(hungry), [b"x" * (MOST_BYTES // 2)] * 100)
    assert sent[0]["status"] == 413
    assert json.loads(sent[1]["body"])["code"] == answers.TOO_LARGE.code
    assert len(left) == 97


def test_body_of_just_the_bound_passes():
    sent, _ = serve(bounded(hungry), [b"x" * MOST_BYTES, b""])
    assert [message["status"] for message in sent] == [200]


@pytest.mark.parametrize(
    "kind",
    [
        b"application/json; charset=hex",
        b"application/json; charset=zlib",
        b"text/plain; charset=utf-7",
        b"text/plain; charset=a\x00",
        b"text/plain; charset*=x-none''y",
        b"application/x-www-form-urlencoded; charset=punycode",
        b"multipart/form-data; charset=hex; boundary=a",
        b"multipart/form-data; boundary*=x-none''y",
    ],
)
def test_encoding_that_django_fails_at_is_refused_before_it(kind):
    sent, _ = serve(application, [b""], kind, query=b"a=%ff")
    assert sent[0]["status"] == 415
    assert json.loads(sent[1]["body"])["code"] == "unsupported_charset"


def test_query_that_is_no_utf8_is_refused_in_json():
    sent, _ = serve(application, [b""], query=b"a=\xff")
    assert sent[0]["status"] == 400
    assert json.loads(sent[1]["body"])["code"] == "bad_request"


@pytest.mark.parametrize(
    "kind",
    [
        b"",
        b"application/json",
        b"application/json; charset=UTF-8",
        b'application/json;charset="utf-8"',
        b"application/x-www-form-urlencoded; charset=utf8",
        b"multipart/form-data; boundary=----x",
    ],
)
def test_type_that_browsers_and_programs_send_passes(kind):
    sent, _ = serve(bounded(hungry), [b""], kind)
    assert sent[0]["status"] == 200


async def status_of(app, path):
    client = ApplicationCommunicator(
        app,
        {
            "type": "http", "method": "GET", "path": path, "query_string": b"",
            "headers": [(b"host", b"localhost")],
        },
    )  # fmt: skip
    await client.send_input({"type": "http.request", "body": b""})
    return (await client.receive_output(timeout=30))["status"]


def test_error_page_is_made_in_the_thread_that_holds_the_connection():
    seen = []

    def absent(request):
        seen.append(threading.get_ident())
        raise Http404

    def page(request, exception):
        seen.append(threading.get_ident())
        return answers.not_found(request, exception)

    class Absent:
        urlpatterns = [path("api/v1/tokens", absent)]
        handler404 = staticmethod(page)

    with override_settings(ROOT_URLCONF=Absent):
        status = asyncio.run(status_of(application_of_django(), "/api/v1/tokens"))
    assert status == 404
    assert len(seen) == 2
    assert len(set(seen)) == 1
