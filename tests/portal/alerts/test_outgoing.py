"""Admins hear of a stream that fails for a while, once, and when it goes on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from portal.alerts import outgoing
from portal.notices.models import Kind, Notice
from portal.streams.models import Stream
from tests.factories import make_cluster, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def stream(settings) -> Stream:
    settings.WEIR_STREAMS = {"audit": "https://in.example.org/x", "security": "", "usage": ""}
    make_cluster()
    make_user("root-admin", is_superuser=True)
    make_user("ada")
    return Stream.objects.create(name="audit")


def fail(stream: Stream, minutes: float) -> None:
    since = timezone.now() - timedelta(minutes=minutes)
    Stream.objects.filter(pk=stream.pk).update(failing_since=since, fault="It answered 503.")


def heal(stream: Stream) -> None:
    Stream.objects.filter(pk=stream.pk).update(failing_since=None, fault="")


def titles() -> list[str]:
    return list(Notice.objects.order_by("pk").values_list("title", flat=True))


@pytest.mark.parametrize(("minutes", "count"), [(9, 0), (11, 1)])
def test_failure_is_told_after_ten_minutes(stream, minutes, count):
    fail(stream, minutes)

    outgoing.look()

    assert Notice.objects.count() == count


def test_admins_alone_are_told_once_with_why_and_what_is_lost(stream):
    fail(stream, 11)

    outgoing.look()
    outgoing.look()

    one = Notice.objects.get()
    assert (one.user.username, one.kind, one.about) == ("root-admin", Kind.ALERT, "Stream audit")
    assert "Audit records have not gone out to" in one.title
    assert one.lines[0] == ["Why", "It answered 503."]


def test_end_is_told_once_to_who_heard_of_the_failure(stream):
    fail(stream, 11)
    outgoing.look()
    heal(stream)

    outgoing.look()
    outgoing.look()

    assert len(titles()) == 2
    assert titles()[1].endswith("again.")


def test_another_failure_is_told_anew(stream):
    fail(stream, 11)
    outgoing.look()
    heal(stream)
    outgoing.look()
    fail(stream, 20)

    outgoing.look()

    assert len(titles()) == 3


def test_stream_that_never_failed_is_no_news(stream):
    outgoing.look()

    assert titles() == []


def test_without_streams_nothing_is_asked(stream, settings, django_assert_num_queries):
    settings.WEIR_STREAMS = {"audit": "", "security": "", "usage": ""}
    with django_assert_num_queries(0):
        outgoing.look()
