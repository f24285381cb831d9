"""The page of the engine answers "is it healthy?" from what processes wrote down."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from portal.web.operations.bounds import bounds_of
from scheduling.models import MILLI, Cycle, Eviction, Lane, Process, Role, StartForecast
from tests.factories import make_workload

pytestmark = pytest.mark.django_db
URL = "/c/fra1/cluster/"
HELD = {"lag_s": 0.0, "objects": 6118, "leads": True, "lease_s": 13.0}


@pytest.fixture
def operator(cluster, as_user):
    return as_user("admin")


def alive(**more):
    """Every role, heard of just now; ``more``: role -> seconds of silence."""
    now = timezone.now()
    for role in Role:
        Process.objects.create(
            role=role, name=f"{role}-0:1", host=f"{role}-0", began_at=now - timedelta(hours=1),
            seen_at=now - timedelta(seconds=more.get(role.value, 0)),
            held={"fra1": HELD} if role == Role.ENGINE else {},
        )  # fmt: skip


def page(client):
    return " ".join(client.get(URL).content.decode().split())


def test_all_that_live_is_healthy(operator):
    alive()
    html = page(operator)
    assert "<b>Yes, it is healthy.</b>" in html
    assert "holds the lease, 13 s left; mirror in touch" in html
    assert "6,118 objects; bound 30 s" in html


@pytest.mark.parametrize(("role", "without"), [
    ("engine", "nothing is planned or written"),
    ("beat", "nothing but cycles runs on schedule"),
    ("worker", "no roll-ups, forecasts, alerts and notices"),
    ("study", "no what-ifs, experiments and studies, and nothing is learned"),
])  # fmt: skip
def test_role_that_fell_silent_comes_first_with_what_to_do(operator, settings, role, without):
    settings.WEIR_BROKER_FOLDER = ""  # one of several machines
    alive(**{role: 120})
    html = page(operator)
    assert "Not healthy" in html
    assert f"has been heard of for 2 min: {without}" in html
    assert "Not heard of" in html
    assert "Start it again" in html


def test_studies_that_come_when_they_are_wanted_are_not_missed(operator):
    alive()
    Process.objects.filter(role=Role.STUDY).delete()
    assert "<b>Yes, it is healthy.</b>" in page(operator)


def test_role_of_which_nothing_was_ever_heard_is_told(operator):
    assert "no engine worker has been heard of yet: nothing is planned or written" in page(operator)


def test_mirror_out_of_touch_is_a_fault(operator):
    alive()
    Process.objects.filter(role="engine").update(held={"fra1": {**HELD, "lag_s": 44.0}})
    assert "its mirror has been out of touch with the cluster for 44 s" in page(operator)


def test_tasks_that_nobody_takes_are_a_fault(operator):
    alive()
    now = timezone.now()
    Lane.objects.create(
        name="cluster-fra1", waiting=7, asked_at=now, served_at=now - timedelta(minutes=5)
    )
    said = "7 tasks wait for cycles and guardrails of this cluster, and no worker has taken one for 5 min"
    assert said in page(operator)


@pytest.mark.parametrize(
    ("lane", "role", "began_s", "is_stuck"),
    [
        ("studies", "study", 18, False),
        ("studies", "study", 600, False),
        ("cluster-fra1", "engine", 18, False),
        ("cluster-fra1", "engine", 600, True),
        ("celery", "worker", 18, False),
        ("celery", "worker", 600, True),
    ],
)
def test_lane_never_served_is_a_fault_once_who_serves_it_lives_for_a_while(
    operator, lane, role, began_s, is_stuck
):
    alive()
    now = timezone.now()
    Process.objects.filter(role=role).update(began_at=now - timedelta(seconds=began_s))
    Lane.objects.create(name=lane, waiting=3, asked_at=now)
    assert ("no worker has taken one for 10 min" in page(operator)) is is_stuck


@pytest.mark.parametrize(("silent_s", "is_stuck"), [(None, False), (60, False), (600, True)])
def test_studies_that_nobody_takes_are_a_fault_once_their_worker_fell_silent(
    operator, silent_s, is_stuck
):
    alive(study=silent_s or 0)
    now = timezone.now()
    if silent_s is None:
        Process.objects.filter(role=Role.STUDY).delete()
    Lane.objects.create(name="studies", waiting=1, asked_at=now)
    assert ("no worker has taken one for 10 min" in page(operator)) is is_stuck


def test_task_that_a_worker_took_a_minute_ago_is_no_fault(operator):
    alive()
    now = timezone.now()
    Lane.objects.create(
        name="celery", waiting=12, asked_at=now, served_at=now - timedelta(seconds=60)
    )
    text = page(operator)
    assert "no worker" not in text
    assert "celery" not in text.replace("celery -A", "")


def test_broker_that_does_not_answer_is_a_fault(operator):
    alive()
    Lane.objects.create(name="celery", waiting=None, asked_at=timezone.now())
    assert "the broker does not answer" in page(operator)


def test_lanes_are_not_asked_of_the_broker_by_a_page(operator, monkeypatch):
    monkeypatch.setattr("celery.Celery.connection_for_read", pytest.fail)
    assert operator.get(URL).status_code == 200


def test_guardrail_near_its_bound_is_said_before_it_trips(operator, cluster):
    alive()
    queue = cluster.queues.get(name="recommend")
    queue.eviction_budget_gpus = 20 * MILLI
    queue.save()
    victim = make_workload(queue, name="victim", eviction_count=1)
    Eviction.objects.create(
        workload=victim, at=cluster.now() - timedelta(hours=1), rule="reclaim", queue=queue,
        gpus=17 * MILLI,
    )  # fmt: skip
    html = page(operator)
    assert "eviction budget, products/recommend: 17 of 20 GPUs, near its bound" in html
    assert "Near, 3 left" in html
    assert "<b>Yes, it is healthy.</b>" in html


def test_evictions_of_a_day_ago_use_no_budget(cluster):
    queue = cluster.queues.get(name="recommend")
    queue.eviction_budget_gpus = 20 * MILLI
    queue.save()
    Eviction.objects.create(
        workload=make_workload(queue), at=cluster.now() - timedelta(hours=25), rule="reclaim",
        queue=queue, gpus=17 * MILLI,
    )  # fmt: skip
    (budget,) = [b for b in bounds_of(cluster, 0, None) if b.name.startswith("Eviction budget")]
    assert budget.used == 0


@pytest.mark.parametrize("hours", [1, 23, 25])
def test_slowest_cycle_is_the_slowest_though_it_changed_nothing_and_has_no_row(
    operator, cluster, hours
):
    then = cluster.now() - timedelta(hours=hours)
    Cycle.objects.update(took_ms=300, slowest_ms=10_200, slowest_at=then)
    (slowest,) = [
        one for one in operator.get(URL).context["health"].bounds if one.name == "Slowest cycle"
    ]
    assert slowest.words == ("10.2 of 2 s" if hours < 24 else "0.3 of 2 s")


def test_bound_of_evictions_says_what_past_it_happens_as_the_policy_does(operator, cluster):
    assert cluster.max_evictions == 3
    victim = make_workload(cluster.queues.get(name="recommend"), name="often")
    for hours in (1, 2, 3):
        Eviction.objects.create(workload=victim, at=cluster.now() - timedelta(hours=hours), gpus=1)
    (often,) = [one for one in bounds_of(cluster, 0, None) if "one workload" in one.name]
    assert (often.note, often.used) == ("often; past it gives back only what nominal owes", 3)
    policy = " ".join(operator.get("/c/fra1/policy/").content.decode().split())
    assert "evicted so often within a day only what nominal owes is taken back" in policy


def test_bounds_that_the_policy_does_not_set_are_not_told(cluster):
    cluster.max_evictions = cluster.eviction_cap = None
    names = [bound.name for bound in bounds_of(cluster, 400, 0.3)]
    assert names == ["Slowest cycle", "Age of the mirror"]


def test_pausing_names_the_next_starts_with_their_times(operator, cluster):
    work = make_workload(cluster.queues.get(name="recommend"), name="next-in-line", position=9)
    soon = cluster.now().replace(hour=10, minute=46)
    StartForecast.objects.create(workload=work, at=cluster.now(), p50_at=soon, p90_at=soon)
    assert "Paused from now:</b> next-in-line (expected 11:46)," in page(operator)


def test_processes_are_told_by_the_api_to_operators_alone(operator, as_user):
    alive(beat=120)
    rows = operator.get("/api/v1/processes").json()
    assert {row["role"]: row["alive"] for row in rows} == {
        "web": True, "engine": True, "worker": True, "study": True, "beat": False,
    }  # fmt: skip
    assert as_user("lead").get("/api/v1/processes").status_code == 404
