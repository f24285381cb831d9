"""Work that runs without a queue, brought into one by a person's decision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client as Browser

from portal.audit.models import AuditEntry
from portal.web.operations.outside import grouped
from scheduling.cluster.connection.client import Client
from scheduling.cluster.vocabulary.labels import QUEUE, USER
from scheduling.models import Cluster, ClusterMode
from scheduling.services.clusters.outside import Outside, look
from scheduling.services.events import deliver_due
from tests.factories import make_member, make_user
from tests.scheduling.kube import JOBS, eventually, node, policy
from tests.scheduling.management.test_cluster_command import gpu_job, gpu_pod
from workshop.testbed.server import EmbeddedServer

PAGE, ENFORCE = "/c/test/cluster/outside/", "/c/test/cluster/mode/enforce/"
CALL = "/api/v1/clusters/test/outside"


@pytest.fixture
def cluster(db: None) -> Iterator[Cluster]:
    """A Job of ann and a pod of nobody in the namespace of a queue, one Job where no queue is."""
    with EmbeddedServer(port=0) as server:
        made = policy("observe", server.url, "research")
        made.queues.filter(name="research").update(namespace="default")
        kube = Client.connect(made)
        kube.create("/api/v1/nodes", node("n1"))
        kube.create("/api/v1/namespaces", {"metadata": {"name": "legacy"}})
        kube.create(JOBS, gpu_job("untold", {}))
        kube.create("/api/v1/namespaces/default/pods", gpu_pod("by-hand", 2))
        kube.create("/apis/batch/v1/namespaces/legacy/jobs", gpu_job("elsewhere", {}))
        eventually(lambda: len(kube.get("/api/v1/pods")["items"]) == 3)
        kube.close()
        yield made


@pytest.fixture
def operator(cluster: Cluster, client: Browser) -> Browser:
    client.force_login(make_member(cluster.queues.order_by("pk")[0], may_operate=True))
    return client


def job(cluster: Cluster) -> dict[str, Any]:
    kube = Client.connect(cluster)
    found = kube.get(f"{JOBS}/untold")["metadata"]
    kube.close()
    return found


def uid_of(cluster: Cluster, name: str) -> str:
    return next(one.uid for one in look(cluster) if one.name == name)


def test_page_lists_by_namespace_and_owner_with_what_brings_each_in(
    cluster: Cluster, operator: Browser
) -> None:
    text = operator.get(PAGE).text

    assert "3 workloads hold or ask for 4 GPUs" in " ".join(text.split())
    assert "default, ann" in text
    assert "default, nobody named" in text
    assert "kubectl -n default label pod by-hand weir.dev/queue=research" in text
    assert "No queue has the namespace legacy: give it one first." in text


def test_what_is_ticked_gets_label_and_owner_and_a_line_of_the_audit_log(
    cluster: Cluster, operator: Browser
) -> None:
    make_user("bea")
    uid = uid_of(cluster, "untold")
    answer = operator.post(PAGE, {"work": [uid, "none"], "owner": "bea"}, follow=True)

    assert "1 workload labelled" in answer.text
    meta = job(cluster)
    assert (meta["labels"][QUEUE], meta["annotations"][USER]) == ("research", "bea")
    assert {one.name for one in look(cluster)} == {"by-hand", "elsewhere"}
    deliver_due()
    entry = AuditEntry.objects.get(kind="work.adopted")
    assert entry.subject == "Job default/untold"
    assert (entry.before, entry.after) == (
        {"user": "ann"},
        {"queue": "research", "user": "bea", "gpus": 1},
    )


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({}, "Nothing is chosen."),
        ({"work": "none"}, "Nothing of that is outside any more."),
        ({"work": "none", "owner": "nobody-here"}, "Nobody here has that name."),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(
    cluster: Cluster, operator: Browser, typed: dict[str, str], said: str
) -> None:
    assert said in operator.post(PAGE, typed, follow=True).text
    assert QUEUE not in (job(cluster).get("labels") or {})


def test_api_lists_and_brings_in_what_the_page_does(cluster: Cluster, operator: Browser) -> None:
    make_user("bea")
    uid = uid_of(cluster, "untold")
    rows = {row["name"]: row for row in operator.get(CALL).json()}
    assert (rows["untold"]["user"], rows["untold"]["queue"]) == ("ann", "research")
    assert rows["elsewhere"]["remedy"].startswith("No queue has the namespace legacy")

    body = {"workloads": [uid], "owner": "bea"}
    answer = operator.post(CALL, body, content_type="application/json")

    assert [row["name"] for row in answer.json()] == ["untold"]
    meta = job(cluster)
    assert (meta["labels"][QUEUE], meta["annotations"][USER]) == ("research", "bea")


@pytest.mark.parametrize(
    ("body", "field"),
    [({"workloads": []}, "workloads"), ({"workloads": ["none"], "owner": "nobody-here"}, "owner")],
)
def test_api_names_the_field_of_what_cannot_be(
    cluster: Cluster, operator: Browser, body: dict[str, Any], field: str
) -> None:
    answer = operator.post(CALL, body, content_type="application/json")

    assert answer.status_code == 400
    assert field in answer.text
    assert QUEUE not in (job(cluster).get("labels") or {})


def test_work_in_a_namespace_without_a_queue_is_never_labelled(
    cluster: Cluster, operator: Browser
) -> None:
    answer = operator.post(PAGE, {"work": uid_of(cluster, "elsewhere")}, follow=True)

    assert "Nothing of that is outside any more." in answer.text
    assert {one.name for one in look(cluster)} == {"untold", "by-hand", "elsewhere"}


def test_enforced_cluster_takes_no_labels(cluster: Cluster, operator: Browser) -> None:
    uid = uid_of(cluster, "untold")
    Cluster.objects.update(mode=ClusterMode.ENFORCE)

    assert 'name="work"' not in operator.get(PAGE).text
    assert "test is enforced" in operator.post(PAGE, {"work": uid}, follow=True).text
    assert QUEUE not in (job(cluster).get("labels") or {})


def test_cluster_without_the_right_says_which_binding_gives_it(
    cluster: Cluster, operator: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scheduling.cluster.connection.client import ForbiddenError

    def refuse(*_: Any, **__: Any) -> None:
        who = "system:serviceaccount:gpu:weir-portal"
        raise ForbiddenError(403, "Forbidden", f'User "{who}" cannot patch resource "jobs"')

    monkeypatch.setattr(Client, "patch", refuse)
    said = operator.post(PAGE, {"work": uid_of(cluster, "untold")}, follow=True).text

    assert "create rolebinding weir-adopter" in said
    assert "--serviceaccount gpu:weir-portal" in said
    assert not AuditEntry.objects.filter(kind="work.adopted").exists()


def test_enforcing_waits_until_what_stays_outside_was_seen(
    cluster: Cluster, operator: Browser
) -> None:
    text = operator.get(ENFORCE).text
    digest = text.partition('name="left" value="')[2].partition('"')[0]
    assert "leave 3 workloads with 4 GPUs outside" in text
    for typed in ({}, {"left": "other"}):
        assert operator.post(ENFORCE, typed).status_code == 400
        assert Cluster.objects.get().mode == ClusterMode.OBSERVE

    assert operator.post(ENFORCE, {"left": digest}).status_code == 302
    assert Cluster.objects.get().mode == ClusterMode.ENFORCE
    deliver_due()
    entry = AuditEntry.objects.get(kind="cluster.mode_set")
    assert entry.after == {"mode": "enforce", "left_outside": "3 workloads with 4 GPUs"}


def test_cluster_that_does_not_answer_is_enforced_only_by_who_says_so(
    db: None, client: Browser
) -> None:
    cluster = policy("observe", "https://127.0.0.1:1", "research")
    client.force_login(make_member(cluster.queues.order_by("pk")[0], may_operate=True))

    assert "does not answer" in client.get(PAGE).text
    assert client.post(ENFORCE).status_code == 400
    assert client.post(ENFORCE, {"left": "unread"}).status_code == 302


def test_work_of_one_person_in_one_namespace_is_one_group() -> None:
    def work(space: str, user: str, gpus: int, queue: str = "q") -> Outside:
        return Outside(f"{space}{user}{gpus}", "Job", space, f"j{gpus}", gpus, user, queue)

    found = list(
        grouped([work("b", "", 9), work("a", "bea", 8), work("a", "ann", 4), work("a", "ann", 2)])
    )

    assert [(g.namespace, g.user, g.gpus, g.label) for g in found] == [
        ("a", "ann", 6, f"{QUEUE}=q"),
        ("a", "bea", 8, f"{QUEUE}=q"),
        ("b", "", 9, f"{QUEUE}=q"),
    ]


def test_api_enforces_once_what_stays_outside_was_read(cluster: Cluster, operator: Browser) -> None:
    mode, json = "/api/v1/clusters/test/mode", "application/json"
    refused = operator.post(mode, {"mode": "enforce"}, content_type=json).json()
    assert (refused["code"], list(refused["fields"])) == ("left_outside", ["left"])
    assert "3 workloads with 4 GPUs" in refused["sentence"]
    assert Cluster.objects.get().mode == ClusterMode.OBSERVE

    digest = refused["remedy"].rpartition("left=")[2].rstrip(".")
    other = operator.post(mode, {"mode": "enforce", "left": "other"}, content_type=json).json()
    assert other["sentence"].startswith("Other work is outside")
    answer = operator.post(mode, {"mode": "enforce", "left": digest}, content_type=json)
    assert answer.json()["mode"] == "enforce"
