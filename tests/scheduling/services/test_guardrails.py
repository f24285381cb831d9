"""The objects that Weir keeps on a cluster: made, compared, repaired, given back."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from scheduling.cluster.adapters import ADAPTERS
from scheduling.cluster.client import (
    ApiError,
    Client,
    ConflictError,
    InvalidError,
    NotFoundError,
    Person,
    configuration_of,
)
from scheduling.cluster.guardrails.admission import KINDS
from scheduling.models import (
    Cluster,
    ClusterMode,
    GpuClass,
    Guardrail,
    PriorityClass,
    Queue,
    Quota,
    Standing,
)
from scheduling.services import guardrails, workers
from scheduling.services import policy as policies
from scheduling.services.errors import ServiceError
from scheduling.services.furnishing import furnish
from scheduling.services.guardrails import Guarded, guard
from scheduling.services.workloads import submit
from tests.scheduling.control_plane import ON
from tests.scheduling.kube import World, eventually, policy
from tests.scheduling.manifests import MANIFESTS, template
from tests.scheduling.operators import DEFINITIONS, adapter_of, definitions

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PODS = "/api/v1/pods"
Pass = Callable[[], Guarded]


@dataclass
class Lab(World):
    """``research`` works in a namespace of its own, at most 12 GPUs; its group is ``lab-people``.

    Names are new for each test: on a real API server the objects of one outlive it.
    """

    namespace: str = field(default_factory=lambda: f"lab-{uuid.uuid4().hex[:8]}")
    priority: str = field(default_factory=lambda: f"train-{uuid.uuid4().hex[:8]}")

    @property
    def home(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    @property
    def quota(self) -> str:
        return f"{self.home}/resourcequotas/weir"

    @property
    def binding(self) -> str:
        roles = "/apis/rbac.authorization.k8s.io/v1"
        return f"{roles}/namespaces/{self.namespace}/rolebindings/weir"

    @property
    def priority_class(self) -> str:
        return f"{CLASSES}/{self.priority}"


@pytest.fixture
def lab(db: None, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """On the embedded API server, or in `make test-cluster` on a real one."""
    if ON:
        access = request.getfixturevalue("kubernetes").access
        cluster = policy("enforce", "", "research", "products", nominal_gpus=8)
        cluster.kubeconfig, cluster.context = access.kubeconfig, access.context
        cluster.save()
        made = Lab(cluster, None, Client.connect(cluster))  # type: ignore[arg-type]
    else:
        world = request.getfixturevalue("world")
        made = Lab(world.cluster, world.server, world.kube)
    Queue.objects.filter(name="research").update(
        namespace=made.namespace, access_group="lab-people"
    )
    Queue.objects.filter(name="products").update(namespace="")
    Quota.objects.filter(queue__name="research").update(borrowing_limit_gpus=4000)
    PriorityClass.objects.update(name=made.priority)
    yield made
    workers.close_all()


@pytest.fixture
def guarded(lab: Lab) -> Pass:
    """One pass, as the worker makes it."""

    def run() -> Guarded:
        cluster = Cluster.objects.get(pk=lab.cluster.pk)
        return guard(cluster, workers.worker_of(cluster, on_change=lambda: None))

    return run


@pytest.fixture
def writes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Weir's own writes, but for the lease's."""
    heard: list[str] = []
    request = Client.request

    def listen(self: Client, method: str, path: str, **more: Any) -> Any:
        if method != "GET" and "leases" not in path and self is not lab.kube:
            heard.append(f"{method} {path}")
        return request(self, method, path, **more)

    monkeypatch.setattr(Client, "request", listen)
    return heard


def standing(kind: str) -> Guardrail:
    return Guardrail.objects.get(kind=kind)


def observe() -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)


def test_first_pass_makes_everything(lab: Lab, guarded: Pass) -> None:
    result = guarded()

    assert result.count(Standing.IN_STEP) == len(result.findings) == Guardrail.objects.count()
    assert lab.kube.get(lab.quota)["spec"]["hard"] == {"requests.nvidia.com/gpu": "12"}
    assert lab.kube.get(lab.binding)["subjects"][0]["name"] == "lab-people"
    assert lab.kube.get(lab.binding)["roleRef"]["name"] == "weir-member"
    train = lab.kube.get(lab.priority_class)
    assert (train["value"], train["preemptionPolicy"]) == (50, "Never")


def test_settled_cluster_is_not_written_to(guarded: Pass, writes: list[str]) -> None:
    guarded()
    writes.clear()
    since = {g.pk: g.since for g in Guardrail.objects.all()}
    guarded()

    assert writes == []
    assert {g.pk: g.since for g in Guardrail.objects.all()} == since


def test_observe_mode_writes_nothing_and_shows_what_is_missing(
    lab: Lab, guarded: Pass, writes: list[str]
) -> None:
    observe()
    guarded()

    assert writes == []
    mine = Guardrail.objects.filter(name=lab.namespace) | Guardrail.objects.filter(
        name=lab.priority
    )
    assert [g.standing for g in mine] == [Standing.MISSING] * 2


def test_paused_cluster_is_left_alone(guarded: Pass) -> None:
    Cluster.objects.update(mode=ClusterMode.PAUSED)
    assert guarded().skipped == "paused"


def edit(world: World, path: str, **parts: Any) -> None:
    """What ``kubectl edit`` does, under a field manager of its own."""
    world.kube.request("PATCH", path, query={"fieldManager": "kubectl-edit"}, body=parts)


def test_drift_is_repaired_and_fields_of_others_stay(lab: Lab, guarded: Pass) -> None:
    guarded()
    edit(lab, lab.quota, spec={"hard": {"requests.nvidia.com/gpu": "99", "pods": "50"}})
    edit(lab, lab.home, metadata={"labels": {"team": "lab"}})
    guarded()

    hard = lab.kube.get(lab.quota)["spec"]["hard"]
    assert hard == {"requests.nvidia.com/gpu": "12", "pods": "50"}
    assert lab.kube.get(lab.home)["metadata"]["labels"]["team"] == "lab"


def test_drift_in_observe_mode_is_shown_by_field(lab: Lab, guarded: Pass) -> None:
    guarded()
    edit(lab, lab.quota, spec={"hard": {"requests.nvidia.com/gpu": "99"}})
    observe()
    guarded()

    quota = standing("ResourceQuota")
    assert quota.standing == Standing.DRIFTED
    assert quota.fields == ["spec.hard.requests.nvidia.com/gpu"]
    assert lab.kube.get(lab.quota)["spec"]["hard"] == {"requests.nvidia.com/gpu": "99"}


def test_deleted_object_is_made_again(lab: Lab, guarded: Pass) -> None:
    guarded()
    lab.kube.delete(lab.quota)
    guarded()
    assert lab.kube.get(lab.quota)


def test_changed_limit_reaches_the_quota(lab: Lab, guarded: Pass) -> None:
    guarded()
    Quota.objects.filter(queue__name="research").update(nominal_gpus=16000)
    guarded()
    assert lab.kube.get(lab.quota)["spec"]["hard"] == {"requests.nvidia.com/gpu": "20"}


def test_who_starts_jobs_by_hand_is_stopped_at_the_limit(lab: Lab, guarded: Pass) -> None:
    guarded()
    quota = eventually(lambda: lab.kube.get(lab.quota)["status"].get("used"), within_s=15)
    assert quota == {"requests.nvidia.com/gpu": "0"}
    jobs = adapter_of("Job").path(lab.namespace, "")
    for name, gpus in (("inside", 8), ("past", 5)):
        body = job(lab, gpus=gpus)
        body["metadata"]["name"] = name
        lab.kube.create(jobs, body)
        lab.kube.patch(f"{jobs}/{name}", {"spec": {"suspend": False}})
        eventually(lambda name=name: words_on(lab, name), within_s=15)

    assert words_on(lab, "inside") == {"SuccessfulCreate"}
    assert "limited: requests.nvidia.com/gpu=12" in said_on(lab, "past", "FailedCreate")
    assert [p["metadata"]["labels"]["job-name"] for p in pods(lab)] == ["inside"]


def pods(lab: Lab) -> list[Any]:
    found: list[Any] = lab.kube.get(f"{lab.home}/pods")["items"]
    return found


def words_on(lab: Lab, name: str) -> set[str]:
    """What became of the pods of a Job, by its Events."""
    return {e["reason"] for e in events_on(lab, name) if e["reason"].endswith("Create")}


def said_on(lab: Lab, name: str, reason: str) -> str:
    return next(str(e["message"]) for e in events_on(lab, name) if e["reason"] == reason)


def events_on(lab: Lab, name: str) -> list[Any]:
    found = lab.kube.get(f"{lab.home}/events")["items"]
    return [e for e in found if e["involvedObject"]["name"] == name]


def test_unlimited_queue_has_no_backstop_and_the_old_one_goes(lab: Lab, guarded: Pass) -> None:
    guarded()
    Quota.objects.update(borrowing_limit_gpus=None)
    guarded()

    with pytest.raises(NotFoundError):
        lab.kube.get(lab.quota)
    assert not Guardrail.objects.filter(kind="ResourceQuota").exists()


def test_namespace_no_longer_wanted_is_given_back_not_deleted(lab: Lab, guarded: Pass) -> None:
    guarded()
    Queue.objects.filter(name="research").update(namespace="")
    guarded()

    namespace = lab.kube.get(lab.home)
    assert "weir.dev/managed" not in namespace["metadata"]["labels"]
    assert "deletionTimestamp" not in namespace["metadata"]
    with pytest.raises(NotFoundError):
        lab.kube.get(lab.binding)
    assert guarded().count(Standing.UNWANTED) == 0


def test_unwanted_is_shown_in_observe_mode(lab: Lab, guarded: Pass) -> None:
    guarded()
    observe()
    PriorityClass.objects.all().delete()
    guarded()

    assert standing("PriorityClass").standing == Standing.UNWANTED
    assert lab.kube.get(lab.priority_class)["value"] == 50


@pytest.mark.parametrize(("value", "expected"), [(50, Standing.IN_STEP), (10, Standing.REFUSED)])
def test_priority_class_of_others_stays_theirs(
    lab: Lab, guarded: Pass, value: int, expected: Standing
) -> None:
    body = {"metadata": {"name": lab.priority}, "value": value}
    lab.kube.create(CLASSES, body)
    guarded()

    assert standing("PriorityClass").standing == expected
    assert "labels" not in lab.kube.get(lab.priority_class)["metadata"]
    PriorityClass.objects.all().delete()
    guarded()
    assert lab.kube.get(lab.priority_class)["value"] == value


def test_quota_named_as_ours_but_written_by_others_is_reported(lab: Lab, guarded: Pass) -> None:
    lab.kube.create("/api/v1/namespaces", {"metadata": {"name": lab.namespace}})
    theirs = {"metadata": {"name": "weir"}, "spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}
    lab.kube.request(
        "POST",
        f"{lab.home}/resourcequotas",
        query={"fieldManager": "somebody"},
        body=theirs,
    )
    guarded()

    quota = standing("ResourceQuota")
    assert quota.standing == Standing.REFUSED
    assert '"somebody"' in quota.detail
    assert standing("RoleBinding").standing == Standing.IN_STEP


def test_nothing_is_written_without_the_lease(
    lab: Lab, guarded: Pass, writes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = workers.worker_of(lab.cluster, on_change=lambda: None)
    monkeypatch.setattr(type(worker.lease), "hold", lambda self: False)

    assert guarded().skipped == "lease"
    assert writes == []


def job(world: Lab, *, queue: str = "research", gpus: int = 1, suspend: bool = True) -> Any:
    body = world.manifest("w", gpus=gpus or 1, queue=queue, suspend=suspend)
    body["metadata"]["namespace"] = world.namespace
    if not queue:
        body["metadata"]["labels"].pop("weir.dev/queue")
    if not gpus:
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    return body


def refusal(world: World, body: Any, path: str = "") -> str:
    """The refusal of ``body``, which is not kept; empty when it would be."""
    kind, namespace = body["kind"], body["metadata"]["namespace"]
    if kind == "Pod":
        path = f"/api/v1/namespaces/{namespace}/pods"
    path = path or adapter_of(kind).path(namespace, "")
    try:
        world.kube.request("POST", path, query={"dryRun": "All"}, body=body)
    except InvalidError as refused:
        return refused.message
    return ""


def test_gpu_work_has_to_name_a_queue(lab: Lab, guarded: Pass) -> None:
    guarded()
    said = eventually(lambda: refusal(lab, job(lab, queue="")), within_s=15)

    assert f"GPU work in namespace {lab.namespace} has to name a queue." in said
    assert "Add the label weir.dev/queue: QUEUE. Queues of this namespace: research." in said


def test_gpu_work_has_to_start_suspended(lab: Lab, guarded: Pass) -> None:
    guarded()
    said = eventually(lambda: refusal(lab, job(lab, suspend=False)), within_s=15)
    assert "Set spec.suspend: true" in said


def test_what_the_rule_is_not_about_is_taken(lab: Lab, guarded: Pass) -> None:
    guarded()
    eventually(lambda: refusal(lab, job(lab, queue="")), within_s=15)
    kueue = job(lab, queue="")
    kueue["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "research"
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u", "controller": True}
    owned = job(lab, queue="", suspend=False)
    owned["metadata"]["ownerReferences"] = [owner]
    elsewhere = job(lab, queue="", suspend=False)
    elsewhere["metadata"]["namespace"] = "default"
    for i, body in enumerate([job(lab), kueue, owned, elsewhere, job(lab, queue="", gpus=0)]):
        body["metadata"]["name"] = f"w{i}"
        assert refusal(lab, body) == ""


@pytest.fixture
def kinds(lab: Lab, guarded: Pass) -> None:
    """The definitions of every kind are installed and its rule is in force."""
    for definition in definitions():
        with suppress(ConflictError):
            lab.kube.create(DEFINITIONS, definition)
    guarded()
    for kind in sorted(MANIFESTS):
        eventually(lambda kind=kind: refusal(lab, of_kind(lab, kind, queue="")), within_s=20)


def of_kind(lab: Lab, kind: str, *, queue: str = "research", suspend: bool = True) -> Any:
    body = MANIFESTS[kind]("w")
    body["metadata"]["namespace"] = lab.namespace
    body["metadata"]["labels"] = {"weir.dev/queue": queue} if queue else {}
    adapter_of(kind).set_suspended(body, suspend)  # type: ignore[attr-defined]
    return body


REMEDIES = {
    "Deployment": "Set spec.replicas: 0 and the annotation weir.dev/replicas: COUNT",
    "LeaderWorkerSet": "Set spec.replicas: 0 and the annotation weir.dev/replicas: COUNT",
    "MPIJob": "Set spec.runPolicy.suspend: true",
    "PyTorchJob": "Set spec.runPolicy.suspend: true",
}


def test_rule_holds_for_every_kind_in_its_own_words(lab: Lab, kinds: None) -> None:
    for kind in sorted(MANIFESTS):
        assert refusal(lab, of_kind(lab, kind)) == "", kind
        assert "has to name a queue" in refusal(lab, of_kind(lab, kind, queue="")), kind
        remedy = REMEDIES.get(kind, "Set spec.suspend: true")
        assert remedy in refusal(lab, of_kind(lab, kind, suspend=False)), kind


def test_every_kind_that_weir_queues_has_its_rule() -> None:
    ruled = {f"/apis/{k.group}/{k.version}/{k.resource}" for k in KINDS if k.group}
    queued = {a.list_path for a in ADAPTERS if a.list_path != PODS}
    assert ruled == queued


def carrier(lab: Lab, version: str, kind: str, **more: Any) -> Any:
    """An object of ``kind`` whose template asks for a GPU."""
    meta = {"name": "w", "namespace": lab.namespace}
    spec = {"selector": {"matchLabels": {"app": "work"}}, "template": template(), **more}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}


def cron_job(lab: Lab, **labels: str) -> Any:
    spec = {"suspend": False, "template": template(restartPolicy="Never")}
    job_template = {"metadata": {"labels": labels}, "spec": spec}
    body = carrier(lab, "batch/v1", "CronJob")
    body["spec"] = {"schedule": "0 3 * * *", "jobTemplate": job_template}
    return body


@pytest.mark.real
@pytest.mark.parametrize(
    ("plural", "kind", "instead"),
    [
        ("statefulsets", "StatefulSet", "Use a Deployment or a LeaderWorkerSet."),
        ("daemonsets", "DaemonSet", "Use a Job of its own for each node."),
        ("replicasets", "ReplicaSet", "Use a Deployment."),
    ],
)
def test_kind_that_cannot_wait_carries_no_gpus(
    lab: Lab, guarded: Pass, plural: str, kind: str, instead: str
) -> None:
    guarded()
    path = f"/apis/apps/v1/namespaces/{lab.namespace}/{plural}"
    body = carrier(lab, "apps/v1", kind, **({"serviceName": "w"} if kind == "StatefulSet" else {}))
    said = eventually(lambda: refusal(lab, body, path), within_s=15)
    assert f"GPU work cannot wait in a {kind}. {instead}" in said

    body["spec"]["template"] = template(0)
    assert refusal(lab, body, path) == ""


@pytest.mark.real
def test_cron_job_makes_jobs_that_wait_in_a_queue(lab: Lab, guarded: Pass) -> None:
    guarded()
    path = f"/apis/batch/v1/namespaces/{lab.namespace}/cronjobs"
    said = eventually(lambda: refusal(lab, cron_job(lab), path), within_s=15)
    assert "Add the label weir.dev/queue: QUEUE in spec.jobTemplate.metadata." in said

    named = cron_job(lab, **{"weir.dev/queue": "research"})
    assert "Set spec.jobTemplate.spec.suspend: true" in refusal(lab, named, path)
    named["spec"]["jobTemplate"]["spec"]["suspend"] = True
    assert refusal(lab, named, path) == ""


def test_who_claims_devices_has_to_name_a_queue(lab: Lab, guarded: Pass) -> None:
    guarded()
    body = job(lab, queue="", gpus=0)
    pod = body["spec"]["template"]["spec"]
    pod["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "pair"}]
    said = eventually(lambda: refusal(lab, body), within_s=15)
    assert "has to name a queue" in said


def test_plain_gpu_pod_waits_at_our_gate(lab: Lab, guarded: Pass) -> None:
    guarded()
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": "work", "resources": limits}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "w", "namespace": lab.namespace, "labels": {"weir.dev/queue": "lab"}},
        "spec": {"containers": [container]},
    }
    said = eventually(lambda: refusal(lab, body), within_s=15)
    assert "Add the scheduling gate weir.dev/queue to spec.schedulingGates" in said

    body["spec"]["schedulingGates"] = [{"name": "weir.dev/queue"}]
    assert refusal(lab, body) == ""


def test_cluster_that_does_not_answer_is_raised(
    lab: Lab, guarded: Pass, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.cluster.client.BACK_OFF_S", (0.0, 0.0))
    worker = workers.worker_of(lab.cluster, on_change=lambda: None)
    worker.client = Client(configuration_of(Cluster(api_url="http://127.0.0.1:9")))
    with pytest.raises(ApiError):
        guarded()


def limits(lab: Lab) -> dict[str, dict[str, int]]:
    rows = policies.load(lab.cluster, at=lab.cluster.now())
    return {n.name: dict(n.hard) for n in guardrails.rails_of(rows).namespaces}


def test_backstop_is_the_least_limit_along_the_line(lab: Lab) -> None:
    top = Queue.objects.get(name="research")
    child = Queue.objects.create(cluster=lab.cluster, parent=top, name="child", namespace="den")
    assert limits(lab)["den"] == {"nvidia.com/gpu": 12}

    own = Quota.objects.get(queue=top)
    own.pk, own.queue, own.nominal_gpus, own.borrowing_limit_gpus = None, child, 2000, 1000
    own.save()
    assert limits(lab)["den"] == {"nvidia.com/gpu": 3}


def test_queues_that_share_a_namespace_share_its_backstop(lab: Lab) -> None:
    products = Queue.objects.get(name="products")
    Queue.objects.filter(pk=products.pk).update(namespace=lab.namespace)
    assert limits(lab)[lab.namespace] == {}

    Quota.objects.filter(queue=products).update(borrowing_limit_gpus=0)
    assert limits(lab)[lab.namespace] == {"nvidia.com/gpu": 20}


def test_queue_below_another_of_the_same_namespace_counts_once(lab: Lab) -> None:
    top = Queue.objects.get(name="research")
    Queue.objects.create(cluster=lab.cluster, parent=top, name="child", namespace=lab.namespace)
    assert limits(lab)[lab.namespace] == {"nvidia.com/gpu": 12}


def test_classes_of_one_resource_are_bounded_together(lab: Lab) -> None:
    other = GpuClass.objects.create(cluster=lab.cluster, name="a100", node_labels={"gpu": "a100"})
    assert limits(lab)[lab.namespace] == {}

    own = Quota.objects.get(queue__name="research")
    own.pk, own.gpu_class, own.nominal_gpus, own.borrowing_limit_gpus = None, other, 1000, 0
    own.save()
    assert limits(lab)[lab.namespace] == {"nvidia.com/gpu": 13}


def test_devices_of_a_class_are_bounded_by_their_claims(lab: Lab, guarded: Pass) -> None:
    name = "deviceclass.resource.kubernetes.io/gpu.example.com"
    GpuClass.objects.update(resource_name=name)
    guarded()

    hard = lab.kube.get(lab.quota)["spec"]["hard"]
    assert hard == {"gpu.example.com.deviceclass.resource.k8s.io/devices": "12"}


def test_furnished_cluster_lets_people_work_in_their_queues_alone(lab: Lab) -> None:
    PriorityClass.objects.all().delete()
    products = f"{lab.namespace}-products"
    Queue.objects.filter(name="products").update(namespace=products, access_group="sellers")
    furnish(lab.cluster, machines=[])

    def may_submit() -> bool:
        manifest = lab.manifest("w")
        manifest["metadata"]["namespace"] = lab.namespace
        try:
            return bool(submit(lab.cluster, manifest=manifest, user="ann"))
        except ServiceError as error:  # new rights take a moment to be known
            if error.code != "forbidden":
                raise
            return False

    eventually(may_submit, within_s=30)
    if ON:
        person = Person("ann", ("lab-people",))
        path = f"/apis/batch/v1/namespaces/{products}/jobs"
        with pytest.raises(ApiError, match="forbidden"):
            lab.kube.create(path, job(lab), as_person=person)


def test_group_of_a_queue_above_works_in_the_namespaces_below(lab: Lab) -> None:
    top = Queue.objects.get(name="research")
    Queue.objects.create(cluster=lab.cluster, parent=top, name="child", namespace="den")
    rows = policies.load(lab.cluster, at=lab.cluster.now())
    groups = {n.name: n.groups for n in guardrails.rails_of(rows).namespaces}
    assert groups == {lab.namespace: ("lab-people",), "den": ("lab-people",)}


def test_sharing_a_namespace_with_others_gives_no_rights_there(lab: Lab) -> None:
    Queue.objects.filter(name="products").update(namespace=lab.namespace, access_group="sellers")
    rows = policies.load(lab.cluster, at=lab.cluster.now())
    assert guardrails.rails_of(rows).namespaces[0].groups == ()
