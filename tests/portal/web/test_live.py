"""The stream of plans."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pytest
from django.db import connection

from portal.web.frame import live
from scheduling.models import Cluster, Cycle
from tests.factories import NOW, make_cluster


def in_own_loop(story):
    """The result of a coroutine, run in a thread: a browser test before may have left a loop here."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, story).result()


def pulse(revision=1, age=1.0, cycle="cycle 1"):
    return live.Pulse(revision, age, cycle)


@pytest.mark.parametrize(
    ("now", "is_news"),
    [
        (pulse(age=1.5), False),
        (pulse(age=0.2), True),
        (pulse(revision=2, age=1.5), True),
        (pulse(cycle="cycle 2", age=1.5), True),
        (pulse(age=None), True),
    ],
)
def test_news_is_a_change_or_a_new_plan(now, is_news):
    assert now.is_news_after(pulse()) is is_news


def test_slow_tab_gets_the_newest_alone():
    async def story():
        queue = asyncio.Queue(maxsize=1)
        live._replace(queue, pulse(revision=1))
        live._replace(queue, pulse(revision=2))
        return queue.get_nowait(), queue.empty()

    newest, empty = in_own_loop(story())
    assert newest.revision == 2
    assert empty


@pytest.mark.django_db
def test_polling_gets_the_same_state_as_json(cluster, as_user):
    state = as_user("admin").get("/c/fra1/live?once=1").json()
    assert state["revision"] == Cluster.objects.get().revision
    assert state["cycle"] == "cycle 48,213 took 0.41 s"


@pytest.mark.django_db
def test_synchronous_server_declines_the_stream(cluster, as_user):
    assert as_user("admin").get("/c/fra1/live").status_code == 204


@pytest.mark.django_db(transaction=True)
def test_tabs_share_one_reader_and_hear_of_a_change(monkeypatch):
    monkeypatch.setattr(live, "PERIOD_S", 0.01)
    cluster = make_cluster()
    Cycle.objects.create(cluster=cluster, number=1, at=NOW, took_ms=12)
    reads = []
    inner = live.read
    monkeypatch.setattr(live, "read", lambda ids: reads.append(ids) or inner(ids))

    async def first_two(events):
        heard = []
        async for event in events:
            if event.startswith("event: plan"):
                heard.append(json.loads(event.split("data: ")[1])["revision"])
                if len(heard) == 1:
                    await asyncio.to_thread(_touch, cluster)
                else:
                    return heard

    async def story():
        async with (
            aclosing(live.stream(cluster.pk)) as one,
            aclosing(live.stream(cluster.pk)) as two,
        ):
            heard = await asyncio.wait_for(asyncio.gather(first_two(one), first_two(two)), 20)
        reader = live.reader()
        await asyncio.wait_for(reader.task, 5)
        return heard, dict(reader.listeners)

    heard, left = in_own_loop(story())
    assert [revisions[0] for revisions in heard] == [0, 0]
    assert all(revisions[1] > 0 for revisions in heard)
    assert left == {}
    assert all(ids == [cluster.pk] for ids in reads)


def _touch(cluster):
    try:
        cluster.touch()
    finally:
        connection.close()
