"""Attacks by number: requests, guesses at tokens, open streams; by one person and by nobody."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.cache import cache
from django.http import HttpResponse
from django.test import AsyncRequestFactory, RequestFactory
from redis.exceptions import ConnectionError as NoRedis
from rest_framework.test import APIClient

from portal.accounts.models import ApiToken
from portal.boundary.limits import Slot, spend
from portal.web.frame import live
from tests.factories import make_cluster, make_user

pytestmark = pytest.mark.django_db
ME = "/api/v1/me"


@pytest.fixture(autouse=True)
def rates(settings):
    settings.WEIR_API_RATE, settings.WEIR_API_RATE_UNKNOWN, settings.WEIR_LIVE_STREAMS = 5, 3, 2


@pytest.fixture(autouse=True)
def one_minute(monkeypatch):
    """The clock stands, so that no minute ends in the middle of a test."""
    clock = [1_000_000_020.0]
    monkeypatch.setattr("portal.boundary.limits.time.time", lambda: clock[0])
    return clock


def redis_database():
    """Its number; none where the cache lies in this process."""
    pool = getattr(getattr(cache, "_cache", None), "_get_connection_pool", None)
    return pool and pool(write=True).connection_kwargs.get("db", 0)


def test_process_of_the_tests_shares_its_counts_with_no_other(worker_id):
    own = int(worker_id.removeprefix("gw")) if worker_id != "master" else 0
    assert redis_database() in (None, own)


def with_token(user):
    _, plain = ApiToken.issue(user, "cli")
    return APIClient(headers={"Authorization": f"Bearer {plain}"})


def test_person_is_throttled_with_all_their_tokens_together():
    user = make_user()
    one, two = with_token(user), with_token(user)
    assert [one.get(ME).status_code for _ in range(3)] == [200] * 3
    assert [two.get(ME).status_code for _ in range(3)] == [200, 200, 429]

    refused = two.get(ME)
    assert refused.data["code"] == "throttled"
    assert 0 < int(refused.headers["Retry-After"]) <= 60


def test_throttled_person_does_not_throttle_others():
    busy, calm = with_token(make_user()), with_token(make_user())
    for _ in range(9):
        busy.get(ME)

    assert calm.get(ME).status_code == 200


def test_rotating_header_does_not_evade_the_throttle():
    busy = with_token(make_user())
    codes = [
        busy.get(ME, headers={"X-Forwarded-For": f"198.51.100.{i}"}).status_code for i in range(7)
    ]
    assert codes[-1] == 429


def test_throttle_ends_with_the_minute(one_minute):
    busy = with_token(make_user())
    for _ in range(9):
        busy.get(ME)
    one_minute[0] += 60

    assert busy.get(ME).status_code == 200


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer weir_guess"}])
def test_unknown_address_is_throttled_whatever_it_says(headers):
    nobody = APIClient(headers=headers)
    codes = [
        nobody.get(ME, headers={"X-Forwarded-For": f"1.1.1.{i}"}).status_code for i in range(5)
    ]
    assert codes == [401, 401, 401, 429, 429]
    assert nobody.get(ME, REMOTE_ADDR="198.51.100.1").status_code == 401


def test_unknown_neighbour_does_not_throttle_a_person_of_the_same_address():
    for _ in range(9):
        APIClient().get(ME)

    assert with_token(make_user()).get(ME).status_code == 200


def test_cache_that_is_away_refuses_nobody(monkeypatch):
    def away(*args, **kwargs):
        raise NoRedis

    monkeypatch.setattr(cache, "add", away)
    assert spend("anybody", 1) == spend("anybody", 1) == 0
    assert Slot.take("anybody", 1, 60) is not None


# Live streams


def open_stream(user):
    request = AsyncRequestFactory().get("/c/fra1/live")
    request.user = user
    return live.live(request, cluster="fra1")


@pytest.fixture
def admin():
    make_cluster()
    return make_user(is_superuser=True)


def test_streams_of_one_person_are_bounded(admin):
    opened = [open_stream(admin) for _ in range(2)]
    refused = open_stream(admin)

    assert [stream.status_code for stream in opened] == [200, 200]
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 0
    assert b'"code": "too_many_streams"' in refused.content
    assert open_stream(make_user(is_superuser=True)).status_code == 200


def test_page_without_a_stream_still_polls(admin, client):
    for _ in range(3):
        open_stream(admin)
    client.force_login(admin)

    assert client.get("/c/fra1/live?once=1").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_closed_stream_makes_room(admin):
    first, _ = open_stream(admin), open_stream(admin)

    async def read_one_and_leave():
        events = aiter(first)
        await anext(events)
        await events.aclose()
        await first.streaming_content.aclose()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, read_one_and_leave()).result()

    assert open_stream(admin).status_code == 200
    assert open_stream(admin).status_code == 429


def test_place_of_a_process_that_died_is_free_again(one_minute):
    assert Slot.take("person", 1, 60) is not None
    assert Slot.take("person", 1, 60) is None
    one_minute[0] += 61

    assert Slot.take("person", 1, 60) is not None


def test_place_is_given_back_once():
    mine = Slot.take("person", 1, 60)
    mine.free()
    theirs = Slot.take("person", 1, 60)
    mine.free()

    assert theirs is not None
    assert Slot.take("person", 1, 60) is None


def test_synchronous_server_holds_no_place(admin):
    request = RequestFactory().get("/c/fra1/live")
    request.user = admin
    answers = [live.live(request, cluster="fra1") for _ in range(4)]
    assert all(isinstance(one, HttpResponse) and one.status_code == 204 for one in answers)
