"""When work would start, as it is typed: a worker lives the futures, and only those of the last question."""

from datetime import timedelta

import pytest

from portal.plans import asking, starts
from portal.plans.models import PlanQuestion
from portal.web.workloads import ahead
from scheduling.services.explain import starts as engine
from scheduling.services.explain.reading import ReplacedError
from scheduling.simulation.run.options import UnsettledError
from tests.factories import NOW, make_workload
from tests.foresight import with_past
from tests.portal.plans.test_asking import sent
from tests.portal.web.workloads.test_change import fields, probe, url
from tests.portal.web.workloads.test_submit import FORM, PASTE, PREVIEW, waiting_job

pytestmark = pytest.mark.django_db
__all__ = ["probe", "sent"]
HOUR = timedelta(hours=1)
BIG = {**FORM, "gpus_per_pod": "8", "pods_max": "", "class_2": ""}
H100 = "NVIDIA-H100-80GB-HBM3"
WAITS = "When it would start is not known yet"
SET_APART = """
apiVersion: batch/v1
kind: Job
metadata:
  name: apart
  labels: {weir.dev/queue: pretraining, weir.dev/priority-class: research-normal}
  annotations: {weir.dev/gpu-classes: h100-80gb}
spec:
  activeDeadlineSeconds: 3600
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {example.com/nobody-else-asks: "yes"}
      containers:
      - name: train
        image: registry.example.org/probe:1
        resources: {limits: {nvidia.com/gpu: "1", example.com/rdma: "1"}}
"""


@pytest.fixture
def line(cluster, kube):
    """Two nodes of H100s, and whole nodes' worth of work before whatever comes."""
    nodes = kube.get("/api/v1/nodes")["items"]
    h100 = [n for n in nodes if n["metadata"]["labels"]["nvidia.com/gpu.product"] == H100]
    for node in h100[2:]:
        kube.delete(f"/api/v1/nodes/{node['metadata']['name']}", {})
    for number in range(3):
        uid = waiting_job(kube, f"first-{number}", 8)["metadata"]["uid"]
        queue = cluster.queues.get(name="pretraining")
        make_workload(queue, uid=uid, name=f"first-{number}", gpus=8000)


@pytest.fixture
def past(cluster, line):
    with_past(cluster)


def starting(monkeypatch, *seconds):
    """Futures in which the work starts after so many seconds; the list fills with each that is lived."""
    lived: list[int] = []

    def live(self):
        lived.append(seconds[len(lived)])
        self._starts.append(lived[-1])

    monkeypatch.setattr(engine._Futures, "live", live)
    return lived


def answered(client, sent, **change):
    """What the page says once the worker has spoken."""
    client.post(PREVIEW, {**BIG, **change})
    asking.answer(sent[-1])
    return client.post(PREVIEW, {**BIG, **change})


def test_page_says_that_the_start_is_being_worked_out(as_user, cluster, kube, past, sent):
    text = as_user("researcher").post(PREVIEW, BIG).content.decode()
    assert WAITS in text
    assert "load delay:2s" in text
    assert len(sent) == 1


def test_page_shows_the_start_that_a_worker_found(as_user, cluster, kube, past, sent, monkeypatch):
    starting(monkeypatch, *[7200] * 100)
    page = answered(as_user("researcher"), sent)
    chosen = page.context["outlook"].rows[0]
    assert chosen.verdict.start is not None
    assert page.context["outlook"].lead.start == chosen.verdict.start
    assert "Would start <b>" in page.content.decode()
    assert WAITS not in page.content.decode()


def test_future_without_a_start_is_the_last_one_lived(
    as_user, cluster, kube, past, sent, monkeypatch
):
    lived = starting(monkeypatch, 600, engine.LATE)
    page = answered(as_user("researcher"), sent, class_1="h100-80gb")
    first = page.context["outlook"].rows[0]
    assert first.verdict.likely.why_not == engine.NOT_IN_ALL
    assert engine.NOT_IN_ALL in page.content.decode()
    assert engine.LATE in lived


def test_question_without_time_names_no_start(as_user, cluster, kube, past, sent, monkeypatch):
    monkeypatch.setattr(starts, "MOST_S", -1.0)
    page = answered(as_user("researcher"), sent)
    assert page.context["outlook"].rows[0].verdict.likely.why_not == engine.NO_TIME


def test_life_that_finds_no_rest_names_no_start(as_user, cluster, kube, past, sent, monkeypatch):
    def restless(self, awaited):
        raise UnsettledError("no rest")

    monkeypatch.setattr(engine.Lives, "live", restless)
    page = answered(as_user("researcher"), sent)
    assert page.context["outlook"].rows[0].verdict.likely.why_not == engine.NO_REST


@pytest.mark.parametrize(
    ("hours", "p50", "p90"), [(0, True, True), (2, False, True), (5, False, False)]
)
def test_time_of_a_kept_answer_that_has_passed_is_no_time_to_come(hours, p50, p90):
    one = {
        "at": NOW.isoformat(), "why_not": "",
        "p50_at": (NOW + HOUR).isoformat(), "p90_at": (NOW + 4 * HOUR).isoformat(),
    }  # fmt: skip
    found = starts.read({"starts": {"a": one}}, NOW + hours * HOUR, is_open=False).found["a"]
    assert (found.p50 is not None, found.p90 is not None) == (p50, p90)
    assert bool(found.why_not) == (not p50)


def test_next_question_of_a_person_takes_the_place_of_the_one_before(
    as_user, cluster, kube, past, sent
):
    client = as_user("researcher")
    client.post(PREVIEW, BIG)
    client.post(PREVIEW, {**BIG, "gpus_per_pod": "4"})
    assert PlanQuestion.objects.filter(kind=starts.DRAFT).count() == 1
    assert len(sent) == 2


def test_no_future_is_lived_for_what_is_asked_no_more(
    as_user, cluster, kube, past, sent, monkeypatch
):
    client = as_user("researcher")
    client.post(PREVIEW, BIG)
    old = PlanQuestion.objects.get(kind=starts.DRAFT).question
    client.post(PREVIEW, {**BIG, "gpus_per_pod": "4"})
    lived = starting(monkeypatch, *[7200] * 100)
    starts.of_draft(cluster, old)
    assert lived == []


def test_answer_to_a_question_that_was_replaced_is_dropped(
    as_user, cluster, kube, past, sent, monkeypatch
):
    client = as_user("researcher")
    client.post(PREVIEW, BIG)
    row = PlanQuestion.objects.get(kind=starts.DRAFT)
    client.post(PREVIEW, {**BIG, "gpus_per_pod": "4"})
    asking._plan(row)
    assert PlanQuestion.objects.get(kind=starts.DRAFT).answer is None


def test_question_keeps_nothing_of_the_environment_or_the_command(
    as_user, cluster, kube, past, sent
):
    as_user("researcher").post(PREVIEW, {**BIG, "env": "TOKEN=hush", "command": "run --key hush"})
    assert "hush" not in str(PlanQuestion.objects.get(kind=starts.DRAFT).question)


def test_work_bound_to_nodes_as_nothing_else_is_planned(as_user, cluster, kube, sent):
    page = as_user("researcher").post(PASTE, {"text": SET_APART, "check": "1"})
    outlook = page.context["outlook"]
    assert outlook.fault == ""
    assert [row.verdict.head for row in outlook.rows] == ["Never fits"]


def test_change_says_that_the_starts_are_being_worked_out_then_shows_them(
    as_user, past, probe, sent, monkeypatch
):
    starting(monkeypatch, *[7200] * 100)
    client, typed = as_user("researcher"), fields(run_time_limit="5 h", check="1")
    text = client.post(url(probe), typed).content.decode()
    assert "When it would start is not known yet" in text
    asking.answer(sent[-1])
    page = client.post(url(probe), typed)
    assert page.context["rows"][1].likely.band


def test_check_whose_answer_another_question_took_is_asked_again(
    as_user, cluster, kube, sent, monkeypatch
):
    def replaced(*_args, **_more):
        raise ReplacedError

    told = as_user("researcher").post(PASTE, {"text": SET_APART, "check": "1"}).content.decode()
    assert 'hx-trigger="input delay:600ms"' in told
    monkeypatch.setattr(ahead.asking, "ask", replaced)
    told = as_user("researcher").post(PASTE, {"text": SET_APART, "check": "1"}).content.decode()
    assert 'hx-trigger="load delay:1s, input delay:600ms"' in told
