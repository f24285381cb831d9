"""The one door of all kinds: started, claimed, lived once each, cancelled, killed, failed, forgotten."""

from datetime import timedelta

import pytest
from celery import current_app
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduling import tasks
from scheduling.models import Result, Study, StudyKind, StudyState, Variant
from scheduling.services.errors import ServiceError
from scheduling.services.studies import doors, running
from scheduling.services.studies.kinds import KINDS
from tests.factories import example_cluster

pytestmark = pytest.mark.django_db
KIND_NAMES = list(KINDS)


@pytest.fixture
def cluster():
    return example_cluster()


@pytest.fixture
def lived(monkeypatch):
    """(letter, seed) of each life; what is lived is made up, and ``lived.then`` is called after each."""
    found = Lives()

    def live(row):
        found.append((row.variant.letter, row.seed))
        found.then()
        return {"lives": len(found)}, {}

    monkeypatch.setattr(running, "LIVES", dict.fromkeys(KINDS, live))
    return found


class Lives(list):
    then = staticmethod(lambda: None)


def asked(cluster, kind=StudyKind.EXPERIMENT, **more):
    ways = [("A", "As in force", []), ("B", "Other", [])]
    fields = {"replays": 2, "author": "admin", "name": "study", "ways": ways, **more}
    return doors.write(cluster=cluster, kind=kind, **fields)


def worked(study):
    while running.work(study.pk):
        pass
    study.refresh_from_db()
    return study


def states(study):
    return dict(study.variants.values_list("letter", "state"))


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_every_variant_is_lived_with_every_seed_once(cluster, lived, kind):
    study = worked(asked(cluster, kind, world={"a": 1}, work=[1]))
    assert lived == [("A", 1), ("B", 1), ("A", 2), ("B", 2)]
    assert (study.state, study.progress, study.world, study.work) == ("done", 100, {}, [])
    assert states(study) == {"A": "done", "B": "done"}
    worked(study)
    assert len(lived) == 4


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_as_many_as_may_be_are_open(cluster, kind):
    for _ in range(KINDS[kind].most_open):
        last = asked(cluster, kind)
    with pytest.raises(ServiceError) as refused:
        asked(cluster, kind)
    assert refused.value.code == "busy"
    doors.cancel(last)
    assert asked(cluster, kind).state == StudyState.WAITING


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_cancelled_study_stops_and_keeps_what_was_lived(cluster, lived, kind):
    study = asked(cluster, kind)
    lived.then = lambda: len(lived) == 3 and doors.cancel(study)
    assert worked(study).state == StudyState.CANCELLED
    assert len(lived) == 3
    assert Result.objects.exclude(done_at=None).count() == 3
    assert not doors.cancel(study)


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_life_that_cannot_be_fails_with_its_remedy(cluster, lived, kind):
    def refuse():
        if lived[-1][0] == "B":
            raise ServiceError("cannot_replay", "The engine finds no rest.", "Ask again.")

    lived.then = refuse
    study = worked(asked(cluster, kind))
    fault = "The engine finds no rest. Ask again."
    assert study.variants.get(letter="B").fault == fault
    if KINDS[kind].is_compared:
        assert (study.state, states(study)) == ("done", {"A": "done", "B": "failed"})
    else:
        assert (study.state, study.fault, len(lived)) == ("failed", fault, 2)


def test_what_nobody_expects_fails_the_study_and_is_raised(cluster, lived):
    lived.then = lambda: 1 / 0
    study = asked(cluster)
    with pytest.raises(ZeroDivisionError):
        running.work(study.pk)
    study.refresh_from_db()
    assert (study.state, study.fault) == (StudyState.FAILED, running.UNEXPECTED)


def test_two_workers_never_hold_the_same_life(cluster, settings):
    settings.WEIR_LAB_TASKS = 9
    study = asked(cluster)
    taken = [running.claim(study.pk) for _ in range(4)]
    assert len({row.pk for row in taken}) == 4
    assert running.claim(study.pk) is None


def test_life_of_a_killed_worker_is_taken_again_and_counts_once(cluster):
    study = asked(cluster)
    killed = running.claim(study.pk)
    Result.objects.filter(pk=killed.pk).update(held_until=timezone.now() - timedelta(seconds=1))
    again = running.claim(study.pk)
    assert again.pk == killed.pk
    assert running.finish(again, {"a": 1}, {}, took_s=1)
    assert not running.finish(killed, {"a": 2}, {}, took_s=1)
    again.refresh_from_db()
    assert again.figures == {"a": 1}


def test_note_renews_the_claim_and_tells_who_is_cancelled(cluster):
    study = asked(cluster, StudyKind.REPLAY)
    row = running.claim(study.pk)
    Result.objects.update(held_until=timezone.now())
    doors.note(row, 40, {"lines": []})
    study.refresh_from_db()
    row.refresh_from_db()
    assert (study.progress, study.answer) == (40, {"lines": []})
    assert row.held_until > timezone.now() + timedelta(minutes=1)
    doors.cancel(study)
    with pytest.raises(doors.CancelledError):
        doors.note(row, 50, {})


def test_no_more_is_lived_at_once_than_may_be_but_for_what_is_awaited(cluster):
    first, second = asked(cluster), asked(cluster, StudyKind.CAPACITY)
    assert running.unattended() == [first.pk, second.pk]
    assert running.claim(first.pk) is not None
    assert running.claim(second.pk) is None
    question = asked(cluster, StudyKind.REPLAY)
    assert running.unattended() == [question.pk]
    assert running.claim(question.pk) is not None


def test_study_whose_broker_is_away_waits_until_beat_asks_again(
    cluster, lived, monkeypatch, django_capture_on_commit_callbacks
):
    def refuse(*args, **kwargs):
        raise OperationalError("refused")

    study = asked(cluster, StudyKind.EDIT)
    with monkeypatch.context() as away, django_capture_on_commit_callbacks(execute=True):
        away.setattr(current_app, "send_task", refuse)
        doors.start(study)
    sent = []
    monkeypatch.setattr(current_app, "send_task", lambda name, args: sent.append((name, args)))
    tasks.request_studies()
    assert sent == [(doors.AWAITED_TASK, [study.pk])]
    tasks.answer_study(study.pk)
    study.refresh_from_db()
    assert study.state == StudyState.DONE


def test_task_goes_on_until_all_is_lived_then_with_the_next(cluster, lived, monkeypatch):
    first, second = asked(cluster), asked(cluster)
    monkeypatch.setattr(running, "work", lambda pk, work=running.work: work(pk, budget_s=1e-9))
    sent = [first.pk]
    monkeypatch.setattr(tasks.live_study, "apply_async", lambda args, **how: sent.append(*args))
    monkeypatch.setattr(doors, "send", sent.append)
    while sent:
        tasks.live_study(sent.pop())
    assert (states(first), states(second)) == ({"A": "done", "B": "done"},) * 2


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_old_studies_go_but_not_those_that_somebody_chose(cluster, kind):
    back = {"asked_at": cluster.now() - KINDS[kind].retention - timedelta(days=1)}
    rows = [asked(cluster, kind, is_bounded=False) for _ in range(4)]
    Study.objects.exclude(pk=rows[3].pk).update(**back)
    doors.keep(rows[1])
    Variant.objects.filter(study=rows[2], letter="B").update(promoted_at=cluster.now())
    doors.forget(cluster)
    assert set(Study.objects.all()) == set(rows[1:])
