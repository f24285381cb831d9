"""A crowd at a web process: who is answered at a time, and how often its threads take turns."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest
from asgiref.sync import ThreadSensitiveContext
from django.http import HttpRequest, HttpResponse

from portal.config.handler import AT_ONCE, MOST_SWITCH_S, SWITCH_S, OneThreadHandler

WAIT_S = 20.0


class Crowded(OneThreadHandler):
    """Answers nobody before ``open``."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.begun = threading.Semaphore(0)

    def get_response(self, request):
        self.begun.release()
        assert self.open.wait(WAIT_S)
        return HttpResponse()


@pytest.fixture(autouse=True)
def turns():
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


async def ask(handler):
    async with ThreadSensitiveContext():  # as each request of a server
        return await handler.get_response_async(HttpRequest())


def answered(handler, many, meanwhile):
    """The answers to ``many`` at once; ``meanwhile`` runs when as many are being answered as ever will."""

    async def play():
        crowd = [asyncio.ensure_future(ask(handler)) for _ in range(many)]
        for _ in range(min(many, AT_ONCE)):
            await asyncio.to_thread(handler.begun.acquire, timeout=WAIT_S)
        meanwhile()
        handler.open.set()
        return await asyncio.gather(*crowd)

    return asyncio.run(play())


def test_crowd_is_answered_whole_and_no_more_than_its_places_at_once():
    handler, beyond = Crowded(), []
    answers = answered(
        handler, AT_ONCE + 3, lambda: beyond.append(handler.begun.acquire(blocking=False))
    )
    assert [one.status_code for one in answers] == [200] * (AT_ONCE + 3)
    assert beyond == [False]


@pytest.mark.parametrize(
    ("many", "interval"), [(1, SWITCH_S), (3, 3 * SWITCH_S), (AT_ONCE + 3, MOST_SWITCH_S)]
)
def test_threads_take_turns_less_often_the_more_are_answered(many, interval):
    found = []
    answered(Crowded(), many, lambda: found.append(sys.getswitchinterval()))
    assert found == [pytest.approx(interval)]
    assert sys.getswitchinterval() == pytest.approx(SWITCH_S)


def test_request_whose_client_left_takes_no_place():
    handler = Crowded()

    async def play():
        crowd = [asyncio.ensure_future(ask(handler)) for _ in range(AT_ONCE + 1)]
        for _ in range(AT_ONCE):
            await asyncio.to_thread(handler.begun.acquire, timeout=WAIT_S)
        crowd[-1].cancel()
        handler.open.set()
        await asyncio.gather(*crowd, return_exceptions=True)
        return await ask(handler)

    assert asyncio.run(play()).status_code == 200
    assert [handler.begun.acquire(blocking=False) for _ in range(2)] == [True, False]
