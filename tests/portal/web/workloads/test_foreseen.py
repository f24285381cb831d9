"""How long work would run, when it would end and what that costs, as the submit page tells it."""

import sys
from datetime import timedelta

import pytest

from portal.plans import asking as plans
from portal.plans.kinds import RUN_TIME
from portal.plans.models import PlanQuestion
from portal.selectors import sooner
from portal.selectors.ends import elsewhere, question_elsewhere
from portal.web.workloads.ahead import ClassOutlook, StartVerdict, _lead
from scheduling.models import MILLI, GpuClass, StartChanges, StartForecast, Workload
from scheduling.prediction import gradient_boosting, storage
from scheduling.services import run_times
from scheduling.services.starts.tell import PredictedStart
from tests.factories import NOW, make_workload
from tests.foresight import with_past
from tests.portal.web.workloads.test_submit import FORM, PREVIEW
from tests.seeding import laid_down

pytestmark = pytest.mark.django_db
SMALL = {**FORM, "name": "run-9", "gpus_per_pod": "1", "pods_max": ""}
SLOWER = 2.0


@pytest.fixture(autouse=True)
def model_is_read_later(monkeypatch):
    """All that a page asks for is answered at once, but how long work would run."""
    monkeypatch.setattr(plans, "_ask", answer_unless_run_time)


def answer_unless_run_time(pk):
    if PlanQuestion.objects.get(pk=pk).kind != RUN_TIME:
        plans.answer(pk)


@pytest.fixture
def learned(cluster):
    laid_down("runs on two classes", lambda: learn_from_two_classes(cluster))


def learn_from_two_classes(cluster):
    """Runs of one name on h100, every third of them again on a100, where they take twice as long."""
    with_past(cluster)
    twice = []
    for row in Workload.objects.filter(cluster=cluster, uid__startswith="past-")[::3]:
        run = row.finished_at - row.started_at
        row.pk, row.uid, row.gpu_classes = None, f"{row.uid}-slow", ["a100-40gb"]
        row.finished_at = row.started_at + SLOWER * run
        twice.append(row)
    Workload.objects.bulk_create(twice)
    assert run_times.learn(cluster=cluster)


def asked(client, **change):
    return client.post(PREVIEW, {**SMALL, **change})


def answer_all():
    for question in PlanQuestion.objects.filter(kind=RUN_TIME, answer__isnull=True):
        plans.answer(question.pk)


def answered(client, **change):
    """What the page says once the worker has spoken."""
    asked(client, **change)
    answer_all()
    return asked(client, **change)


def test_page_does_not_wait_for_who_has_not_answered(as_user, kube, learned):
    response = asked(as_user("researcher"))
    assert response.context["outlook"].awaits == "How long it would run"
    text = response.content.decode()
    assert "How long it would run is not known yet" in text
    assert "load delay:2s" in text


def test_page_stops_asking_by_itself_after_some_tries(as_user, kube, learned):
    text = asked(as_user("researcher"), tries="5").content.decode()
    assert "check again in a while" in text
    assert "load delay" not in text


def test_page_reads_no_model_and_no_learner(as_user, kube, learned, monkeypatch):
    def refuse(*_args, **_more):
        raise AssertionError("the model was read")

    client = as_user("researcher")
    answered(client)
    monkeypatch.setattr(storage, "load", refuse)
    monkeypatch.setattr(gradient_boosting, "fit", refuse)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert "Would end" in asked(client).content.decode()


def test_every_class_says_start_end_and_cost_of_its_own_run(as_user, kube, learned):
    rows = {r.gpu_class.name: r for r in answered(as_user("researcher")).context["outlook"].rows}
    quick, slow = rows["h100-80gb"], rows["a100-40gb"]
    ran = {name: rows[name].end[0] - rows[name].begin[0] for name in ("h100-80gb", "a100-40gb")}
    assert ran["a100-40gb"] / ran["h100-80gb"] == pytest.approx(SLOWER, rel=0.25)
    assert quick.cost.startswith("about €")
    assert "P50" in slow.cost_note


def test_class_where_work_ends_first_is_named(as_user, kube, learned):
    response = answered(as_user("researcher"), class_1="a100-40gb", class_2="h100-80gb")
    assert response.context["outlook"].first.ends.gpu_class.name == "h100-80gb"
    assert "Ends first on h100-80gb" in response.content.decode()


def test_class_that_nothing_ran_on_is_not_compared(as_user, kube, learned):
    rows = {r.gpu_class.name: r for r in answered(as_user("researcher")).context["outlook"].rows}
    assert rows["l4"].end is None
    assert "nobody knows how it compares with the others" in rows["l4"].run_time[1]
    assert rows["l4"].cost.endswith("an hour")


def test_answer_serves_until_the_model_is_another(as_user, cluster, kube, learned):
    client = as_user("researcher")
    answered(client)
    assert asked(client).context["outlook"].awaits == ""
    run_times.serving(cluster).delete()
    run_times.learn(cluster=cluster)
    assert asked(client).context["outlook"].awaits == "How long it would run"


@pytest.fixture
def waiting(cluster, learned):
    """It waits for h100 for an hour yet."""
    work = make_workload(
        cluster.queues.get(name="pretraining"),
        name="run-77",
        user="researcher",
        gpus=MILLI,
        gpu_classes=["h100-80gb"],
        submitted_at=cluster.now(),
    )
    begin = cluster.now() + timedelta(hours=1)
    StartForecast.objects.create(
        workload=work,
        at=cluster.now(),
        p50_at=begin,
        p90_at=begin + timedelta(minutes=30),
        gpu_class=cluster.gpu_classes.get(name="h100-80gb"),
    )
    return work


def answered_elsewhere(work, *names):
    question = question_elsewhere(work, names)
    runs = run_times.expected_of(run_times.answer(work.cluster, question))
    return elsewhere(work, names, runs, work.cluster.now())


def test_start_now_on_the_slow_is_held_against_waiting_for_the_fast(waiting):
    one = answered_elsewhere(waiting, "a100-40gb")["a100-40gb"]
    runs_slow = one.ends[0] - waiting.cluster.now()
    runs_fast = one.waits_ends[0] - one.waits[0]
    assert runs_slow / runs_fast == pytest.approx(SLOWER, rel=0.3)
    assert one.is_sooner == (one.ends[0] < one.waits_ends[0])
    assert "times as fast as on h100-80gb" in one.evidence


def test_class_that_nothing_ran_on_has_no_end_and_says_why(waiting):
    one = answered_elsewhere(waiting, "l4")["l4"]
    assert (one.ends, one.is_sooner) == (None, None)
    assert "nobody knows" in one.evidence


def test_what_starts_it_sooner_says_when_it_ends_either_way(as_user, waiting, monkeypatch):
    change = {"change": "gpu_class", "value": "a100-40gb", "queue": "", "sentence": "On a100-40gb."}
    kept = StartChanges(found=[change], at=NOW)
    monkeypatch.setattr(sooner, "planned_changes", lambda *_args: kept)
    client, page = as_user("researcher"), f"/c/fra1/w/{waiting.uid}/sooner/"
    client.get(page)
    answer_all()
    text = client.get(page).content.decode()
    assert "It would end there about" in text
    assert "Waiting instead, it starts" in text
    assert "ends first" in text


def test_workload_page_says_for_which_class_it_waits_and_until_when(as_user, cluster, waiting):
    ways = {"h100-80gb": (0, 3600, 240), "a100-40gb": (1, 7200, 0)}
    waiting.gpu_classes = list(ways)
    waiting.save()
    run_times.predict(cluster=cluster)
    waiting.prediction.by_class = {
        name: {"place": place, "p50_s": p50_s, "wait_s": wait_s, "ratio": 1, "runs": 9, "groups": 2,
               "own_runs": 1}
        for name, (place, p50_s, wait_s) in ways.items()
    }  # fmt: skip
    waiting.prediction.save()
    page = f"/c/fra1/w/{waiting.uid}/"
    assert "does not start on a100-40gb" not in as_user("researcher").get(page).content.decode()
    cluster.class_order = "waits"
    cluster.save()
    text = as_user("researcher").get(page).content.decode()
    assert "does not start on a100-40gb: its run is 1 h shorter there" in text
    assert "came after 4 min of late" in text


def test_workload_page_prices_the_run_on_each_class_that_is_known(as_user, cluster, waiting):
    waiting.gpu_classes = ["h100-80gb", "a100-40gb"]
    waiting.save()
    run_times.predict(cluster=cluster)
    text = as_user("researcher").get(f"/c/fra1/w/{waiting.uid}/").content.decode()
    assert "Whole run, expected, h100-80gb" in text
    assert "Whole run, expected, a100-40gb" in text


@pytest.mark.parametrize(("hours", "warns"), [("1", True), ("200", False)])
def test_limit_below_the_predicted_run_time_is_warned_of(as_user, kube, learned, hours, warns):
    page = answered(as_user("researcher"), run_time_limit=f"{hours} h").content.decode()
    assert (f"Its run-time limit of {hours} h would end" in page) is warns


@pytest.mark.parametrize(
    ("whole", "rows", "name"),
    [
        ((9, 20), {"h100-80gb": (2, 8), "a100-40gb": (5, 9)}, "h100-80gb"),
        ((9, 20), {"h100-80gb": None, "a100-40gb": (5, 9)}, "a100-40gb"),
        (None, {"h100-80gb": (2, 8)}, "whole"),
    ],
)
def test_lead_says_the_start_of_the_row_that_starts_first(whole, rows, name):
    def verdict(span):
        if span is None:
            return StartVerdict("ok", "finished", "Starts now", "")
        start = (NOW + timedelta(hours=hours) for hours in span)
        return StartVerdict("warn", "clock", "Waits", "", None, PredictedStart(*start, NOW, None))

    made = [
        ClassOutlook(GpuClass(name=one), place, verdict(span), None, "", "")
        for place, (one, span) in enumerate(rows.items(), 1)
    ]
    lead, found = _lead(verdict(whole), "whole", made)
    assert found == name
    assert lead.start == (verdict(rows[name]).start if name in rows else None)
