"""What an edit of a persona would do: whom it touches, what they lose and gain, which work it stops."""

from dataclasses import replace

import pytest

from portal.accounts.models import Persona, User
from portal.audit.models import AuditEntry
from portal.teams.models import Membership, Team
from portal.teams.persona_preview import preview
from portal.teams.personas import PersonaValues
from scheduling.models import MILLI, Announcement, State, Workload
from scheduling.services.errors import ServiceError
from tests.factories import example_cluster, make_workload

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(db):
    made = example_cluster()
    Workload.objects.all().delete()
    return made


@pytest.fixture
def researcher(cluster):
    return Persona.objects.get(name="researcher")


def values_of(persona, **edits):
    begun = PersonaValues(
        name=persona.name,
        grants=persona.grants,
        approves_gpus=persona.approves_gpus,
        priority_classes=list(persona.priority_classes.all()),
        gpu_classes=list(persona.gpu_classes.all()),
        max_gpus_per_workload=persona.max_gpus_per_workload,
        max_gpus_at_once=persona.max_gpus_at_once,
        max_run_time_s=persona.max_run_time_s,
        preemptible_only=persona.preemptible_only,
        interactive=persona.interactive,
    )
    return replace(begun, **edits)


def shown(persona, **edits):
    admin = User.objects.get(username="admin")
    return preview(by=admin, persona=persona, values=values_of(persona, **edits))


def work(cluster, **fields):
    queue = cluster.queues.get(name="pretraining")
    return make_workload(queue, user="researcher", run_time_limit_s=3600, **fields)


def test_edit_that_changes_nothing_shows_nothing(researcher):
    found = shown(researcher)
    assert (found.lines, found.waiting, found.running) == ([], [], [])


def test_it_names_who_has_the_persona_and_where(cluster, researcher):
    vision = Team.objects.get(name="vision")
    user = User.objects.get(username="researcher")
    Membership.objects.create(user=user, team=vision, persona=researcher)
    assert dict(shown(researcher).people)["researcher"] == ["alignment", "pretraining", "vision"]


@pytest.mark.parametrize(("edits", "name", "loses"), [
    ({"grants": {"see": "own", "submit": "team"}}, "See work and waits", True),
    ({"grants": {"see": "all", "submit": "team"}}, "See work and waits", False),
    ({"max_gpus_per_workload": 1}, "GPUs a workload", True),
    ({"max_gpus_per_workload": None}, "GPUs a workload", False),
    ({"max_run_time_s": 60}, "Run-time limit", True),
    ({"preemptible_only": True}, "Only preemptible work", True),
    ({"interactive": False}, "Interactive work", True),
    ({"priority_classes": ()}, "Priority classes", False),
])  # fmt: skip
def test_each_change_says_whether_it_takes_or_gives(researcher, edits, name, loses):
    Persona.objects.filter(pk=researcher.pk).update(
        max_gpus_per_workload=16 * MILLI, max_run_time_s=7 * 86400, preemptible_only=False,
        interactive=True, grants={"submit": "team", "see": "team"},
    )  # fmt: skip
    researcher.refresh_from_db()
    assert [line.loses for line in shown(researcher, **edits).lines if line.name == name] == [loses]


def test_run_time_limit_reads_as_on_the_other_pages(researcher):
    Persona.objects.filter(pk=researcher.pk).update(max_run_time_s=7 * 86400)
    researcher.refresh_from_db()
    [line] = [
        one
        for one in shown(researcher, max_run_time_s=36 * 3600).lines
        if one.name == "Run-time limit"
    ]
    assert (line.before, line.after) == ("7 d", "1 d 12 h")


def test_work_that_waits_and_would_not_be_admitted_is_named_with_why(cluster, researcher):
    large = work(cluster, name="large", gpus=8 * MILLI)
    work(cluster, name="small", gpus=1 * MILLI)
    (hit,) = shown(researcher, max_gpus_per_workload=4 * MILLI).waiting
    assert (hit.workload, hit.sentence) == (
        large, "8 GPUs are more than the 4 persona researcher may ask for.",
    )  # fmt: skip


def test_work_that_runs_is_told_apart(cluster, researcher):
    work(cluster, name="large", gpus=8 * MILLI, state=State.RUNNING)
    found = shown(researcher, max_gpus_per_workload=4 * MILLI)
    assert ([h.workload.name for h in found.running], found.waiting) == (["large"], [])


def test_work_that_was_not_admitted_before_is_no_news(cluster, researcher):
    work(cluster, name="too-large", gpus=512 * MILLI)
    Persona.objects.filter(pk=researcher.pk).update(max_gpus_per_workload=16 * MILLI)
    researcher.refresh_from_db()
    assert shown(researcher, max_gpus_per_workload=4 * MILLI).waiting == []


def test_work_that_another_persona_lets_run_is_not_touched(cluster, researcher):
    work(cluster, name="large", gpus=8 * MILLI)
    wide = Persona.objects.create(name="wide", grants={"submit": "subtree", "see": "subtree"})
    Membership.objects.create(
        user=User.objects.get(username="researcher"),
        team=Team.objects.get(name="language"),
        persona=wide,
    )
    assert shown(researcher, max_gpus_per_workload=4 * MILLI).waiting == []


def test_preview_changes_nothing_and_tells_nobody(cluster, researcher):
    before = researcher.max_gpus_per_workload
    shown(researcher, max_gpus_per_workload=1, name="other")
    researcher.refresh_from_db()
    assert (researcher.name, researcher.max_gpus_per_workload) == ("researcher", before)
    assert not Announcement.objects.filter(kind="persona.changed").exists()
    assert not AuditEntry.objects.filter(kind="persona.changed").exists()


def test_edit_that_saving_would_refuse_is_refused_at_its_field(researcher):
    with pytest.raises(ServiceError) as refused:
        shown(researcher, name="admin")
    assert refused.value.field == "name"


def test_fingerprint_is_of_the_edit_and_of_what_is_edited(researcher):
    first = shown(researcher, max_gpus_per_workload=1).fingerprint
    assert first == shown(researcher, max_gpus_per_workload=1).fingerprint
    assert first != shown(researcher, max_gpus_per_workload=2).fingerprint
