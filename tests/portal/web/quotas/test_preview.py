"""What edits of the grid would do, told before they are saved and kept with them."""

import re
from datetime import timedelta

import pytest

from portal.approvals import edits
from portal.approvals.previews import ReadablePreview
from portal.plans import asking
from portal.web.quotas.history import Effect, Outcomes
from scheduling.models import (
    Eviction,
    Quota,
    QuotaChange,
    State,
    Study,
    StudyKind,
    StudyState,
    Transition,
)
from scheduling.services.studies import running, what_if
from scheduling.services.studies.kinds import KINDS
from tests.factories import NOW, example_cluster, make_user, make_workload
from tests.portal.kubernetes import serving
from workshop.demo.organisation import H100

pytestmark = pytest.mark.django_db
URL = "/c/fra1/quotas/research/"


@pytest.fixture
def cluster():
    """The example organisation over an API server that answers."""
    made = example_cluster()
    with serving(made):
        yield made


@pytest.fixture
def cell(cluster):
    """Name of the input of a queue's nominal, or of another figure."""
    gpu_class = cluster.gpu_classes.get(name=H100)

    def find(queue, field="nominal"):
        return f"cell-{cluster.queues.get(name=queue).pk}-{gpu_class.pk}-{field}"

    return find


def text(answer):
    return " ".join(answer.content.decode().split())


def test_preview_of_typed_edits_says_what_moves_and_saves_nothing(as_user, cell):
    answer = as_user("lead").post(
        f"{URL}preview/", {cell("vision"): "8", cell("pretraining"): "32"}
    )

    told = text(answer)
    assert "planned at" in told
    assert f"Fair share now of {H100}, before → after" in told
    assert not QuotaChange.objects.exists()


def test_preview_without_scripts_stands_beside_what_was_typed(as_user, cell):
    answer = as_user("lead").post(URL, {cell("vision"): "8", "reason": "Less", "preview": "1"})

    assert answer.status_code == 200
    assert "planned at" in text(answer)
    assert 'value="8"' in text(answer)
    assert not QuotaChange.objects.exists()


@pytest.mark.parametrize(("field", "value", "told"), [
    ("nominal", "eight", "once what is wrong in the grid is mended"),
    ("nominal", "16", "Edit a figure"),
    ("budget_gpu_hours", "900", "A budget of GPU-hours starts and stops nobody"),
])  # fmt: skip
def test_what_cannot_be_planned_says_why(as_user, cell, field, value, told):
    answer = as_user("lead").post(f"{URL}preview/", {cell("vision", field): value})

    assert told in text(answer)


def test_saved_edit_keeps_what_was_expected_of_it(as_user, cell):
    lead = as_user("lead")
    lead.post(URL, {cell("vision"): "8", "reason": "Less"})

    change = QuotaChange.objects.get()
    assert change.expected["changes"] == [
        {"kind": "quota", "queue": "vision", "gpu_class": H100, "nominal_gpus": 8.0}
    ]
    assert "Expected: " in text(lead.get(URL))


def test_edit_is_saved_though_the_cluster_does_not_answer(as_user, cell, cluster):
    cluster.api_url = "http://127.0.0.1:9"
    cluster.save()
    lead = as_user("lead")
    edit = {cell("vision"): "8"}

    assert "does not answer" in text(lead.post(f"{URL}preview/", edit))
    assert lead.post(URL, {**edit, "reason": "Less"}).status_code == 302
    assert Quota.objects.filter(queue__name="vision", nominal_gpus=8000).exists()


def test_who_divides_nothing_there_finds_no_preview(as_user, cell):
    assert as_user("researcher").post(f"{URL}preview/", {cell("vision"): "8"}).status_code == 404


def test_preview_names_who_has_to_go_once_the_grace_is_over(as_user, cell, cluster):
    cluster.lowering_grace_s = 3600
    cluster.save()
    told = text(as_user("lead").post(f"{URL}preview/", {cell("vision"): "8"}))
    assert (
        f"<b>vision</b> is lowered by 8 {H100}: nothing it runs is evicted for that before" in told
    )


def test_preview_of_a_higher_nominal_speaks_of_no_grace(as_user, cell):
    told = text(as_user("lead").post(f"{URL}preview/", {cell("vision"): "24"}))
    assert "nothing it runs is evicted" not in told


def test_last_week_is_asked_once_for_an_edit_and_told_when_it_is_lived(as_user, cell, cluster):
    lead, edit = as_user("lead"), {cell("vision"): "8"}
    assert "Replay the last week" in text(lead.post(f"{URL}preview/", edit))

    assert "Waits for its turn" in text(lead.post(f"{URL}replay/", edit))
    lead.post(f"{URL}replay/", edit)
    question = Study.objects.get()
    assert question.question["base"] == [
        {"kind": "quota", "queue": "vision", "gpu_class": H100, "nominal_gpus": 16.0}
    ]
    running.work(question.pk)

    told = text(lead.get(f"{URL}replay/{question.pk}/"))
    assert "Whole cluster" in told
    assert "Whole cluster" in text(lead.post(f"{URL}preview/", edit))


def test_last_week_without_scripts_stands_on_the_page(as_user, cell):
    answer = as_user("lead").post(URL, {cell("vision"): "8", "replay": "1"})
    assert "Waits for its turn" in text(answer)
    assert not QuotaChange.objects.exists()


def test_replay_that_its_author_cancels_is_asked_anew(as_user, cell):
    lead, edit = as_user("lead"), {cell("vision"): "8"}
    lead.post(f"{URL}replay/", edit)
    first = Study.objects.get()
    assert lead.post(f"{URL}replay/{first.pk}/cancel/").status_code == 302

    lead.post(f"{URL}replay/", edit)
    states = set(Study.objects.values_list("state", flat=True))
    assert states == {StudyState.CANCELLED, StudyState.WAITING}


def test_saved_edit_keeps_the_replay_that_was_asked_beside_it(as_user, cell):
    lead, edit = as_user("lead"), {cell("vision"): "8"}
    lead.post(f"{URL}replay/", edit)
    lead.post(URL, {**edit, "reason": "Less"})

    question = Study.objects.get()
    assert question.is_kept
    assert QuotaChange.objects.get().expected["what_if"] == question.pk


def test_replay_of_a_saved_edit_starts_from_what_it_replaced(as_user, cell):
    as_user("lead").post(URL, {cell("vision"): "8", "reason": "Less"})

    question = Study.objects.get()
    assert question.question["base"][0]["nominal_gpus"] == 16.0
    assert question.changes[0]["nominal_gpus"] == 8.0


def test_questions_about_edits_keep_no_operator_from_asking(cluster):
    asked = {"cluster": cluster, "author": "lead", "asked_at": cluster.now()}
    for _ in range(KINDS[StudyKind.EDIT].most_open):
        Study.objects.create(**asked, name="edit", kind=StudyKind.EDIT)
    node = [{"kind": "capacity", "gpu_class": H100, "nodes": 1}]
    assert what_if.ask(cluster=cluster, document=node, author="admin").state == StudyState.WAITING


SENTENCE = "vision holds 8 of its limit of 8 h100-80gb"


def line(kind, work):
    """Of a plan."""
    return {
        "kind": kind, "workload": f"{work.namespace}/{work.name}", "queue": work.queue.name, "gpus": 8.0,
        "lost_gpu_hours": 0.0, "reason": "at_limit", "sentence": f"{SENTENCE}.", "sealed": {}, "numbers": {},
    }  # fmt: skip


@pytest.fixture
def change(as_user, cell, moving):
    """A saved edit of which a start, an eviction and a longer wait were expected."""
    as_user("lead").post(URL, {cell("vision"): "8", "reason": "Less"})
    saved = QuotaChange.objects.get()
    lines = [line(kind, work) for kind, work in moving.items()]
    saved.expected = {**saved.expected, "lines": lines}
    saved.save()
    return saved


@pytest.fixture
def moving(cluster):
    """Workloads by what was expected of them."""
    queue = cluster.queues.get(name="vision")
    return {kind: make_workload(queue, name=kind) for kind in ("starts", "leaves", "waits")}


@pytest.mark.parametrize(
    ("begins_in", "lines", "came"),
    [(timedelta(hours=1), [], "not in force yet"), (-timedelta(hours=1), [], "nobody was to move"),
     (-timedelta(hours=1), [Effect(None)], "not yours to see")],
)  # fmt: skip
def test_what_came_of_a_change_says_why_it_counts_nobody(begins_in, lines, came):
    plan = ReadablePreview(NOW, 0.1, (), (), (), 0.0)
    assert Outcomes(NOW + begins_in, plan, lines, None, (), NOW).came == came


def test_change_says_what_was_expected_and_what_came(as_user, change, moving):
    after = change.effective_from + timedelta(seconds=1)
    change.effective_from -= timedelta(minutes=5)
    change.save()
    after -= timedelta(minutes=4)
    Transition.objects.create(workload=moving["starts"], at=after, to_state=State.ADMITTED)
    Eviction.objects.create(workload=moving["leaves"], at=after, rule="reclaim", gpus=8000)

    told = text(as_user("lead").get(f"{URL}changes/{change.pk}/"))
    assert "expected: 1 workload starts, 1 is evicted and 1 waits longer" in told
    assert '<b id="came">1 started, 1 evicted, 1 still waits</b>' in told
    assert "started <time" in told
    assert "evicted <time" in told


def test_preview_has_one_short_line_for_each_workload_and_its_sentence_below_a_click(
    as_user, cell, moving, monkeypatch
):
    planned, lines = edits.planned, [line(kind, work) for kind, work in moving.items()]
    monkeypatch.setattr(edits, "planned", lambda *edit: {**planned(*edit), "lines": lines})
    told = as_user("lead").post(f"{URL}preview/", {cell("vision"): "8"}).content.decode()
    effects = told.split('<div class="effect is-brief">')[1:]
    assert len(effects) == len(lines)
    for effect in effects:
        plain = re.sub(
            r"<details.*?</details>", "", re.split('<h3|<p class="since', effect)[0], flags=re.S
        )
        said = " ".join(re.sub(r"<[^>]+>", " ", plain).split())
        assert SENTENCE not in said
        assert SENTENCE in effect
        assert len(said) <= 100, said


def test_change_of_queues_that_one_does_not_see_is_absent(as_user, change):
    make_user("outsider")
    assert as_user("outsider").get(f"{URL}changes/{change.pk}/").status_code == 404


def test_revert_stands_before_its_plan_and_says_so(as_user, change, monkeypatch):
    monkeypatch.setattr(asking, "_ask", lambda asked_id: None)
    page = text(as_user("lead").get(f"{URL}changes/{change.pk}/revert/"))
    assert "Revert (not planned yet)</button>" in page
    assert 'hx-select-oob="#revert-it"' in page


def test_revert_says_what_it_would_do_and_keeps_it(as_user, change):
    lead = as_user("lead")
    page = f"{URL}changes/{change.pk}/revert/"
    assert "planned at" in text(lead.get(page))

    lead.post(page, {"reason": "Back"})
    assert "lines" in QuotaChange.objects.get(reason="Back").expected
