"""Several workloads marked in a list: one form, which needs no script."""

import re
from datetime import timedelta

import pytest

from scheduling.cluster.connection.client import NotFoundError
from scheduling.models import MILLI, PriorityClass, State, Workload
from scheduling.services.workloads import several, submit
from tests.factories import make_workload
from tests.portal.kubernetes import job

pytestmark = pytest.mark.django_db
ACT = "/c/fra1/workloads/act/"
LIST = "/c/fra1/work/list/"


@pytest.fixture
def make(cluster, kube):
    """A workload in pretraining that the API server holds, by name."""

    def made(name, user="researcher", **fields):
        container = {"name": "main", "image": "registry.example.org/probe:1"}
        manifest = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "labels": {"weir.dev/queue": "pretraining"},
                         "annotations": {"weir.dev/user": user}},
            "spec": {"suspend": True,
                     "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        }  # fmt: skip
        created = kube.create("/apis/batch/v1/namespaces/pretraining/jobs", manifest)
        queue = cluster.queues.get(name="pretraining")
        uid = created["metadata"]["uid"]
        return make_workload(queue, uid=uid, name=name, user=user, gpus=8 * MILLI, **fields)

    return made


def send(client, action, *works, **more):
    uids = [work.uid for work in works]
    return client.post(ACT, {"action": action, "uid": uids, "next": LIST, **more}, follow=True)


def text(response):
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def note_of(kube, name):
    return kube.get(job("pretraining", name))["metadata"]["annotations"].get("weir.dev/hold")


def test_marked_are_held_and_released_at_once(as_user, make, kube):
    works, client = [make("one"), make("two")], as_user("researcher")
    held = send(client, "hold", *works)
    assert held.redirect_chain == [(LIST, 302)]
    assert "2 workloads are held" in text(held)
    assert [note_of(kube, name) for name in ("one", "two")] == ["true", "true"]
    assert "2 workloads are released" in text(send(client, "release", *works))
    assert [note_of(kube, name) for name in ("one", "two")] == [None, None]


def test_cancel_asks_once_more_and_says_in_numbers_what_is_lost(as_user, make, kube, cluster):
    runs, waits = make("runs"), make("waits")
    h100 = cluster.gpu_classes.get(name="h100-80gb")
    Workload.objects.filter(pk=runs.pk).update(
        state=State.RUNNING, members=1, placement={"h100-01": 1}, gpu_class=h100,
        started_at=cluster.now() - timedelta(minutes=90), checkpointed_at=None,
    )  # fmt: skip
    page = text(send(as_user("researcher"), "cancel", runs, waits))
    assert "Cancel 2 workloads?" in page
    assert "1 workload that waits leaves the queue." in page
    assert (
        "1 workload that holds GPUs stops; after the grace that frees 8 GPUs of h100-80gb" in page
    )
    assert "12 GPU-hours in all" in page
    assert kube.get(job("pretraining", "runs"))
    assert kube.get(job("pretraining", "waits"))


def test_confirmed_cancel_deletes_all_of_them(as_user, make, kube):
    works = [make("one"), make("two")]
    said = text(send(as_user("researcher"), "cancel", *works, confirmed="1"))
    assert "2 workloads are being cancelled: the cluster was told to delete them" in said
    for name in ("one", "two"):
        with pytest.raises(NotFoundError):
            kube.get(job("pretraining", name))


def test_question_names_what_is_left_out_and_why(as_user, make):
    mine, over, theirs = (
        make("mine"),
        make("over", state=State.FINISHED),
        make("theirs", "m.okafor"),
    )
    response = send(as_user("researcher"), "cancel", mine, over, theirs)
    page = text(response)
    assert "Cancel 1 workload?" in page
    assert "over has finished by now." in page
    assert "theirs belongs to m.okafor." in page
    confirmed = re.findall(r'name="uid" value="([^"]+)"', response.content.decode())
    assert confirmed == [mine.uid]


def test_one_that_is_refused_stops_no_other_and_is_named_with_its_reason(as_user, make, kube):
    first, runs, last = make("first"), make("runs", state=State.RUNNING), make("last")
    page = text(send(as_user("researcher"), "hold", first, runs, last))
    assert "1 of 3 not done" in page
    assert "2 workloads are held" in page
    assert "runs does not wait: it is running." in page
    assert [note_of(kube, name) for name in ("first", "runs", "last")] == ["true", None, "true"]


def test_what_nobody_foresaw_of_one_hides_nothing_of_the_others(as_user, make, kube, monkeypatch):
    works, hold = [make("one"), make("two")], submit.hold

    def fails_first(work, *, user):
        if work.name == "one":
            raise RuntimeError("unforeseen")
        hold(work, user=user)

    monkeypatch.setattr(submit, "hold", fails_first)
    page = text(send(as_user("researcher"), "hold", *works))
    assert "nobody knows what came of one" in page
    assert "1 workload is held" in page
    assert note_of(kube, "two") == "true"


def test_colleagues_work_is_refused_and_that_of_strangers_is_not_there(as_user, make, kube):
    work = make("probe")
    assert "belongs to researcher" in text(send(as_user("m.okafor"), "hold", work))
    stranger = text(send(as_user("q.nguyen"), "hold", work))
    assert "There is no such workload, or you may not see it." in stranger
    assert "probe" not in stranger
    assert note_of(kube, "probe") is None


def test_lead_may_act_on_work_of_members(as_user, make, kube):
    send(as_user("lead"), "hold", make("one"), make("two", "m.okafor"))
    assert [note_of(kube, name) for name in ("one", "two")] == ["true", "true"]


def test_priority_class_changes_on_the_objects(as_user, make, kube):
    name = PriorityClass.objects.order_by("value").first().name
    said = text(
        send(as_user("researcher"), "priority", make("one"), make("two"), priority_class=name)
    )
    assert f"2 workloads are now of the priority class {name}" in said
    labels = kube.get(job("pretraining", "two"))["metadata"]["labels"]
    assert labels["weir.dev/priority-class"] == name


def test_priority_class_is_chosen_of_those_that_the_persona_allows(as_user, make, kube):
    PriorityClass.objects.create(name="board", value=9000)
    response = send(as_user("researcher"), "priority", make("one"), make("two"))
    assert "Another priority class for 2 workloads" in text(response)
    offered = re.findall(r"<option>([^<]+)</option>", response.content.decode())
    assert offered
    assert "board" not in offered
    assert (
        "weir.dev/priority-class" not in kube.get(job("pretraining", "one"))["metadata"]["labels"]
    )


def test_priority_class_beyond_the_persona_is_not_given(as_user, make, kube):
    PriorityClass.objects.create(name="board", value=9000)
    work, client = make("one"), as_user("researcher")
    page = text(send(client, "priority", work, priority_class="board"))
    assert "may not use the priority class board" in page
    assert (
        "weir.dev/priority-class" not in kube.get(job("pretraining", "one"))["metadata"]["labels"]
    )


def test_box_for_all_shown_needs_no_script(as_user, make, kube):
    make("one"), make("two")
    client = as_user("researcher")
    shown = re.findall(r'name="shown" value="([^"]+)"', client.get(LIST).content.decode())
    response = client.post(ACT, {"action": "hold", "all": "1", "shown": shown}, follow=True)
    assert {"one", "two"} <= set(
        Workload.objects.filter(uid__in=shown).values_list("name", flat=True)
    )
    assert note_of(kube, "one") == note_of(kube, "two") == "true"
    assert response.status_code == 200


def test_nothing_marked_is_said_and_changes_nothing(as_user, make):
    assert "Mark at least one workload" in text(send(as_user("researcher"), "hold"))


def test_more_than_can_be_done_at_once_are_refused_whole(as_user, make, kube):
    work = make("one")
    uids = [work.uid, *(f"uid-{i}" for i in range(several.MOST))]
    sent = {"action": "hold", "uid": uids, "next": LIST}
    page = text(as_user("researcher").post(ACT, sent, follow=True))
    assert "101 workloads are more than the 100 that can be acted on at once" in page
    assert note_of(kube, "one") is None


def test_action_that_there_is_not_is_no_address(as_user, make):
    assert send(as_user("researcher"), "explode", make("one")).status_code == 404


def test_address_of_elsewhere_is_not_gone_back_to(as_user, make):
    client, work = as_user("researcher"), make("one")
    sent = {"action": "hold", "uid": work.uid, "next": "https://example.org/"}
    assert client.post(ACT, sent).headers["Location"] == LIST


def test_boxes_stand_only_where_the_reader_may_act(as_user, make):
    theirs, mine = make("theirs", "m.okafor"), make("mine")
    page = as_user("researcher").get("/c/fra1/workloads/?name=m").content.decode()
    page += as_user("researcher").get("/c/fra1/workloads/?name=theirs").content.decode()
    assert f'name="uid" value="{mine.uid}"' in page
    assert f'name="uid" value="{theirs.uid}"' not in page


def test_my_work_has_boxes_and_one_form_for_them(as_user, make):
    mine = make("mine")
    page = as_user("researcher").get("/c/fra1/work/").content.decode()
    assert f'form="marked" name="uid" value="{mine.uid}"' in page
    assert page.count('<form class="card marked-bar" id="marked"') == 1


def test_finished_work_is_not_marked(as_user, make):
    make("over", state=State.FINISHED)
    page = as_user("researcher").get(f"{LIST}?state=finished").content.decode()
    assert 'id="marked"' not in page
    assert 'form="marked"' not in page
