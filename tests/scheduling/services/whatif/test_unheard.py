"""A question that no worker can be told of."""

import pytest
from celery import current_app
from kombu.exceptions import OperationalError

from scheduling.models import Study, StudyKind, StudyState
from scheduling.services.whatif import kept
from tests.factories import example_cluster

pytestmark = pytest.mark.django_db


def refuse(*args, **kwargs):
    raise OperationalError("refused")


def test_question_whose_broker_is_away_says_so_and_waits_for_nobody(
    monkeypatch, django_capture_on_commit_callbacks
):
    cluster = example_cluster()
    question = Study.objects.create(
        cluster=cluster, author="m.weber", kind=StudyKind.EDIT, changes=[], asked_at=cluster.now()
    )
    monkeypatch.setattr(current_app, "send_task", refuse)

    with django_capture_on_commit_callbacks(execute=True):
        kept.start(question)

    question.refresh_from_db()
    assert (question.state, question.fault) == (StudyState.FAILED, kept.UNHEARD)
