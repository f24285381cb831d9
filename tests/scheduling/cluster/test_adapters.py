"""What is particular to each kind: its roles, how its pods are steered and sized, whose pods are whose."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduling.cluster.adapters import ADAPTERS, Admission, ClassSpec, Sighting, faults
from scheduling.cluster.adapters.pods import trim
from scheduling.cluster.picture import compose as picture
from scheduling.cluster.picture.around import Circumstances
from scheduling.cluster.picture.nodes import trim_node
from scheduling.cluster.vocabulary import labels
from tests.scheduling import kube, manifests
from tests.scheduling.operators import adapter_of

Json = dict[str, Any]
H100 = ClassSpec("h100", "nvidia.com/gpu", {"gpu": "h100"})
MIG = ClassSpec("mig", "nvidia.com/mig-1g.5gb", {"gpu": "a100"})
CLASSES = (H100, MIG)
NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)


def stored(manifest: Json, uid: str = "u1") -> Json:
    meta = {"uid": uid, "resourceVersion": "7", "creationTimestamp": "2026-01-05T09:00:00Z"}
    return {**manifest, "metadata": {**manifest["metadata"], **meta}}


def observe(obj: Json, *pods: Json) -> Sighting:
    return adapter_of(obj["kind"]).observe(obj, pods, CLASSES)


def place_for(members: int = 2, gpu_class: ClassSpec = H100, **more: Any) -> Admission:
    nodes = {"n1": members - 1, "n2": 1} if members > 1 else {"n1": 1}
    names = tuple(c.resource_name for c in CLASSES)
    return Admission(gpu_class, members, nodes, nodes, NOW, resource_names=names, **more)


def admitted(obj: Json, members: int = 2, gpu_class: ClassSpec = H100, **more: Any) -> Json:
    place = place_for(members, gpu_class, **more)
    return merged(obj, adapter_of(obj["kind"]).admission(obj, place))


def merged(obj: Any, patch: Json) -> Json:
    made = deepcopy(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), value) if isinstance(value, dict) else value
    return made


@pytest.mark.parametrize("kind", sorted(manifests.MANIFESTS))
def test_admission_after_an_eviction_starts_from_what_the_person_wrote(kind: str) -> None:
    adapter = adapter_of(kind)
    first = admitted(stored(manifests.MANIFESTS[kind]("w")))
    stopped = merged(first, adapter.suspension(first, 12))
    again = admitted(stopped)

    assert adapter.is_suspended(stopped)
    assert again["spec"] == first["spec"]
    assert (
        observe(stopped).gpu_classes == observe(stored(manifests.MANIFESTS[kind]("w"))).gpu_classes
    )


NAMES = tuple(c.resource_name for c in CLASSES)


def put_back(obj: Json) -> Json:
    """``obj`` after its eviction, and once nothing of it runs any more."""
    adapter = adapter_of(obj["kind"])
    stopped = merged(obj, adapter.suspension(obj, 12))
    return merged(stopped, adapter.restoration(stopped, NAMES, {}))


def first_pod(obj: Json) -> Json:
    pod: Json = adapter_of(obj["kind"]).roles(obj)[0].pod  # type: ignore[attr-defined]
    return pod


@pytest.mark.parametrize("kind", sorted(manifests.MANIFESTS))
def test_evicted_object_is_put_back_as_it_was_written(kind: str) -> None:
    written = stored(manifests.MANIFESTS[kind]("w"))
    back = put_back(admitted(deepcopy(written), gpu_class=H100))

    assert back["spec"] == written["spec"]
    assert labels.ORIGINAL not in back["metadata"]["annotations"]


def test_resources_and_size_of_an_elastic_job_are_put_back() -> None:
    written = stored(manifests.deployment("w"))
    written["metadata"]["annotations"] |= {
        labels.REPLICAS: "4",
        labels.MIN_MEMBERS: "1",
        labels.GPU_CLASSES: "mig",
    }
    small = admitted(deepcopy(written), gpu_class=MIG)
    assert small["spec"]["replicas"] == 2
    back = put_back(small)

    assert back["spec"] == written["spec"]
    assert back["metadata"]["annotations"][labels.REPLICAS] == "4"


OWN_TERM = {"key": "zone", "operator": "In", "values": ["a"]}
OWN_TOLERATION = {"key": "team", "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.parametrize("kind", ["Deployment", "MPIJob", "PaddleJob", "RayCluster", "PyTorchJob"])
def test_where_a_person_sends_it_after_an_admission_counts_at_the_next(kind: str) -> None:
    """Edited around what Weir had put in, before that was taken out."""
    obj = admitted(stored(manifests.MANIFESTS[kind]("w")))
    stopped = merged(obj, adapter_of(kind).suspension(obj, 12))
    pod = first_pod(stopped)
    node = pod["affinity"]["nodeAffinity"]
    rules = node["requiredDuringSchedulingIgnoredDuringExecution"]
    rules["nodeSelectorTerms"][0]["matchExpressions"].append(OWN_TERM)
    pod["tolerations"].append(OWN_TOLERATION)
    again = admitted(stopped, gpu_class=MIG)

    term = first_pod(again)["affinity"]["nodeAffinity"]
    (term,) = term["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0] == OWN_TERM
    assert {"key": "gpu", "operator": "In", "values": ["h100"]} not in term["matchExpressions"]
    assert first_pod(again)["tolerations"][0] == OWN_TOLERATION
    assert len(first_pod(again)["tolerations"]) == 2
    back = first_pod(put_back(again))
    required = back["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required == {"nodeSelectorTerms": [{"matchExpressions": [OWN_TERM]}]}


@pytest.mark.parametrize("odd", ["zone", None, {"key": ["zone"]}, {"key": "zone", "operator": {}}])
def test_affinity_that_makes_no_sense_stops_nobody_else(odd: Any) -> None:
    """An operator's definition may leave out what a pod template looks like."""
    broken, good = (stored(manifests.pytorch_job(name), uid=name) for name in ("odd", "good"))
    terms = {"nodeSelectorTerms": [{"matchExpressions": [odd]}]}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    first_pod(broken)["affinity"] = {"nodeAffinity": rules}
    found = compose([], broken, good).workloads

    assert "good" in {seen.name for seen in found if not seen.fault}


def test_term_like_weirs_own_stays_a_persons() -> None:
    is_h100 = {"key": "gpu", "operator": "In", "values": ["h100"]}
    on_host = {"key": labels.HOSTNAME, "operator": "In", "values": ["n1", "n9"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [is_h100, on_host]}]}
    written = stored(manifests.deployment("w"))
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    first_pod(written)["affinity"] = {"nodeAffinity": required}
    first_pod(written)["tolerations"] = [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    ]

    assert put_back(admitted(deepcopy(written)))["spec"] == written["spec"]


@pytest.mark.parametrize("kind", sorted(manifests.MANIFESTS))
def test_roles_without_gpus_run_where_they_like(kind: str) -> None:
    obj = admitted(stored(manifests.MANIFESTS[kind]("w")))

    for role in adapter_of(kind).roles(obj):  # type: ignore[attr-defined] # all of these have roles
        if "nvidia.com/gpu" not in str(role.pod) and kind != "TrainJob":
            assert not role.pod.get("affinity")
            assert not role.pod.get("nodeSelector")


def test_job_set_is_steered_by_node_selectors_alone() -> None:
    obj = admitted(stored(manifests.job_set("w")), domain={"weir.dev/rack": "r1"})
    pod = obj["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]

    assert pod["nodeSelector"] == {"gpu": "h100", "weir.dev/rack": "r1"}
    assert "affinity" not in pod


def job_set_of_one() -> Json:
    manifest = manifests.job_set("w")
    manifest["spec"]["replicatedJobs"][1]["template"]["spec"] |= {
        "parallelism": 1,
        "completions": 1,
    }
    return manifest


def test_job_set_on_one_host_is_sent_to_it() -> None:
    obj = admitted(stored(job_set_of_one()), members=1)
    pod = obj["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]

    assert pod["nodeSelector"] == {"gpu": "h100", labels.HOSTNAME: "n1"}


def test_job_set_that_its_author_keeps_from_the_planned_host_is_sent_to_its_class() -> None:
    manifest = job_set_of_one()
    template = manifest["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]
    template["spec"]["nodeSelector"] = {labels.HOSTNAME: "n9"}
    obj = admitted(
        stored(manifest),
        members=1,
        liked_domain={"weir.dev/rack": "r1"},
        labels={"n1": {labels.HOSTNAME: "n1", "gpu": "h100"}},
    )
    pod = obj["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]

    assert pod["nodeSelector"] == {"gpu": "h100", labels.HOSTNAME: "n9"}
    back = put_back(obj)["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]
    assert back["nodeSelector"] == {labels.HOSTNAME: "n9"}


def test_train_job_gets_one_runtime_patch_of_ours_beside_those_of_others() -> None:
    manifest = manifests.train_job("w")
    theirs = {"manager": "trainer.kubeflow.org/sdk", "trainingRuntimeSpec": {}}
    manifest["spec"]["runtimePatches"] = [theirs]
    again = admitted(admitted(stored(manifest)))

    assert [p["manager"] for p in again["spec"]["runtimePatches"]] == [
        "trainer.kubeflow.org/sdk",
        "weir.dev/engine",
    ]


def test_elastic_policy_sizes_the_workers_and_leaves_the_master() -> None:
    policy = {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 6}}
    obj = admitted(stored(manifests.pytorch_job("w", **policy)), members=4)
    replicas = {n: s["replicas"] for n, s in obj["spec"]["pytorchReplicaSpecs"].items()}

    assert replicas == {"Master": 1, "Worker": 3}
    assert (observe(obj).min_members, observe(obj).max_members, observe(obj).members) == (2, 7, 4)


def test_kind_whose_template_is_free_takes_another_resource() -> None:
    manifest = manifests.mpi_job("w")
    manifest["metadata"]["annotations"] = {"weir.dev/gpu-classes": "mig,h100"}
    obj = admitted(stored(manifest), gpu_class=MIG)
    worker = obj["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]

    assert worker["resources"]["limits"] == {"nvidia.com/mig-1g.5gb": "1"}
    assert observe(obj).gpu_classes == ("mig", "h100")


def test_job_set_takes_no_class_of_another_resource() -> None:
    manifest = manifests.job_set("w")
    manifest["metadata"]["annotations"] = {"weir.dev/gpu-classes": "mig,h100"}

    assert observe(stored(manifest)).gpu_classes == ("h100",)


def test_ray_under_its_own_autoscaler_is_planned_at_its_maximum() -> None:
    manifest = manifests.ray_cluster("w", most=5, least=1)
    manifest["spec"]["enableInTreeAutoscaling"] = True
    manifest["spec"]["workerGroupSpecs"][0]["replicas"] = 2

    seen = observe(stored(manifest))
    assert (seen.min_members, seen.max_members) == (5, 5)


def test_ray_group_of_several_hosts_counts_every_pod() -> None:
    manifest = manifests.ray_cluster("w", most=3, least=1)
    manifest["spec"]["workerGroupSpecs"][0]["numOfHosts"] = 4

    assert observe(stored(manifest)).max_members == 12


def test_leader_without_gpus_is_no_member() -> None:
    manifest = manifests.leader_worker_set("w")
    own = manifest["spec"]["leaderWorkerTemplate"]
    own |= {"size": 4, "leaderTemplate": manifests.template(0)}
    manifest["metadata"]["annotations"]["weir.dev/replicas"] = "2"

    assert observe(stored(manifest)).members == 6


def test_deployment_scaled_to_nothing_by_hand_is_held_and_remembers_its_size() -> None:
    running = admitted(stored(manifests.deployment("w")))
    seen = observe(merged(running, {"spec": {"replicas": 0}}))

    assert seen.stopped_by_hand
    assert seen.max_members == 2


def test_deployment_that_asks_for_nothing_says_how_to_ask() -> None:
    manifest = manifests.deployment("w")
    del manifest["metadata"]["annotations"]

    assert "weir.dev/replicas" in observe(stored(manifest)).fault


def _pod(name: str, owner: Json, **meta: Any) -> Json:
    body = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "ownerReferences": [{**owner, "controller": True}],
            **meta,
        },
        "spec": {**manifests.template()["spec"], "nodeName": "n1"},
        "status": {"phase": "Running"},
    }
    return trim(body)


def compose(pods: list[Json], *objects: Json) -> picture.Picture:
    held: dict[str, list[Json]] = {a.kind: [] for a in ADAPTERS if a.resource == a.kind}
    for obj in objects:
        held[obj["kind"]].append(obj)
    return picture.compose([], pods, held, Circumstances(CLASSES))


def test_container_added_since_an_admission_keeps_what_it_asks_for() -> None:
    manifest = manifests.deployment("w")
    manifest["metadata"]["annotations"]["weir.dev/gpu-classes"] = "mig,h100"
    before = admitted(stored(manifest), gpu_class=MIG)
    again = merged(before, adapter_of("Deployment").suspension(before, 7))
    sidecar = {"name": "log", "image": "work", "resources": {"limits": {"cpu": "1"}}}
    again["spec"]["template"]["spec"]["containers"].append(sidecar)
    main, added = admitted(again)["spec"]["template"]["spec"]["containers"]

    assert main["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert added == sidecar


def test_pods_of_a_replica_set_belong_to_its_deployment() -> None:
    owner = {"kind": "ReplicaSet", "name": "w-5d8f", "uid": "rs"}
    pod = _pod("w-5d8f-x", owner, labels={"pod-template-hash": "5d8f"})
    (seen,) = compose([pod], admitted(stored(manifests.deployment("w")))).workloads

    assert seen.placement == {"n1": 1}


def test_pods_of_a_leader_worker_set_are_known_by_its_label() -> None:
    owner = {"kind": "StatefulSet", "name": "w-0", "uid": "sts"}
    pod = _pod("w-0-1", owner, labels={"leaderworkerset.sigs.k8s.io/name": "w"})
    (seen,) = compose([pod], admitted(stored(manifests.leader_worker_set("w")))).workloads

    assert seen.placement == {"n1": 1}


def test_pods_of_jobs_that_a_job_set_made_belong_to_it() -> None:
    whole = admitted(stored(manifests.job_set("w")))
    meta = {"name": "w-workers-0", "namespace": "default", "uid": "child"}
    child = {
        "kind": "Job",
        "metadata": {
            **meta,
            "creationTimestamp": "2026-01-05T09:00:00Z",
            "labels": {"weir.dev/queue": "research"},
            "ownerReferences": [{"kind": "JobSet", "name": "w", "uid": "u1", "controller": True}],
        },
        "spec": {"template": manifests.template()},
    }
    pod = _pod("w-workers-0-0", {"kind": "Job", "name": "w-workers-0", "uid": "child"})
    (seen,) = compose([pod], whole, child).workloads

    assert (seen.kind, seen.placement) == ("JobSet", {"n1": 1})


def unlike(kind: str) -> Json:
    """One of its roles with GPUs asks for one of them, 4 CPUs and 1 GiB, the other for 8, 1 CPU and 2 GiB."""
    obj = stored(manifests.MANIFESTS[kind]("w", gpus=8))
    match kind:
        case "PyTorchJob":
            small = obj["spec"]["pytorchReplicaSpecs"]["Master"]
        case "PaddleJob":
            small = obj["spec"]["paddleReplicaSpecs"]["Master"]
        case "MPIJob":
            small = obj["spec"]["mpiReplicaSpecs"]["Launcher"]
        case "JobSet":
            small = obj["spec"]["replicatedJobs"][0]["template"]["spec"]
        case "LeaderWorkerSet":
            small = obj["spec"]["leaderWorkerTemplate"]
        case "RayCluster":
            small = obj["spec"]["headGroupSpec"]
        case _:
            small = obj["spec"]["rayClusterSpec"]["headGroupSpec"]
    small["leaderTemplate" if kind == "LeaderWorkerSet" else "template"] = manifests.template(1)
    for role in adapter_of(kind).roles(obj):  # type: ignore[attr-defined]
        (container,) = role.pod["containers"]
        is_small = container["resources"]["limits"].get("nvidia.com/gpu") == "1"
        container["resources"]["requests"] |= (
            {"cpu": "4", "memory": "1Gi"} if is_small else {"cpu": "1", "memory": "2Gi"}
        )
    return obj


UNLIKE = ("JobSet", "LeaderWorkerSet", "MPIJob", "PaddleJob", "PyTorchJob", "RayCluster", "RayJob")


@pytest.mark.parametrize("kind", UNLIKE)
def test_unlike_roles_are_counted_in_parts_and_each_says_what_its_members_take(kind: str) -> None:
    seen = observe(unlike(kind))
    small, large = seen.shapes

    assert seen.fault == ""
    assert (seen.gpus, seen.cpus, seen.memory_mib) == (1000, 0, 0)
    assert (small.pods, small.gpus, small.cpus, small.memory_mib) == (1, 1000, 4000, 1024)
    assert (large.gpus, large.cpus, large.memory_mib) == (8000, 1000, 2048)
    parts = small.pods + 8 * large.pods
    assert (seen.members, seen.min_members, seen.max_members) == (parts, parts, parts)


@pytest.mark.parametrize("kind", UNLIKE)
def test_each_unlike_role_keeps_its_own_gpus_and_is_sent_to_its_own_places(kind: str) -> None:
    obj = unlike(kind)
    parts = observe(obj).members
    by_size = {1000: {"h1": 1}, 8000: {"h2": 1, "h3": 1}}
    let_go = admitted(deepcopy(obj), members=parts, by_size=by_size)
    roles = adapter_of(kind).roles(let_go)  # type: ignore[attr-defined]

    asked = {
        role.pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]: str(role.pod)
        for role in roles
    }
    assert sorted(asked) == ["1", "8"]
    assert "'h1'" in asked["1"]
    assert "'h1'" not in asked["8"]
    seen = observe(let_go)
    assert (seen.admitted_gpus, seen.sized, seen.members) == (1000, parts, parts)
    assert put_back(let_go)["spec"] == obj["spec"]


def bounded(kind: str, least: int, most: int) -> Json:
    """``unlike``, of which the role of 8 GPUs has between so many pods."""
    obj = unlike(kind)
    if kind == "PyTorchJob":
        obj["spec"]["elasticPolicy"] = {"minReplicas": least, "maxReplicas": most}
        return obj
    cluster = obj["spec"] if kind == "RayCluster" else obj["spec"]["rayClusterSpec"]
    cluster["workerGroupSpecs"][0] |= {"minReplicas": least, "maxReplicas": most}
    return obj


ELASTIC = ("PyTorchJob", "RayCluster", "RayJob")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize("kind", ELASTIC)
def test_unlike_role_with_bounds_says_how_many_members_it_may_have(kind: str) -> None:
    seen = observe(bounded(kind, 1, 4))
    small, large = seen.shapes

    assert (seen.fault, seen.min_members, seen.max_members) == ("", 9, 33)
    assert (small.pods, small.extra, large.pods, large.extra) == (1, 0, 4, 3)
    assert "pods_min" not in small.document()
    assert large.document()["pods_min"] == 1


@pytest.mark.parametrize("kind", ELASTIC)
def test_unlike_role_is_sized_by_the_parts_that_plans_give_its_gang(kind: str) -> None:
    obj = bounded(kind, 1, 4)
    adapter = adapter_of(kind)
    by_size = {1000: {"h1": 1}, 8000: {"h2": 1, "h3": 1, "h4": 1}}
    let_go = admitted(deepcopy(obj), members=25, by_size=by_size)
    shrunk = merged(let_go, adapter.resize(let_go, place_for(17)))
    grown = merged(let_go, adapter.resize(let_go, place_for(33)))

    for seen, members in ((let_go, 25), (shrunk, 17), (grown, 33)):
        assert (observe(seen).sized, observe(seen).members) == (members, members)
    head, workers = sorted(adapter.roles(grown), key=lambda role: role.count)  # type: ignore[attr-defined]
    assert (head.count, workers.count) == (1, 4)
    assert "'h1'" in str(head.pod["affinity"]["nodeAffinity"][REQUIRED])
    assert "'h2'" not in str(workers.pod["affinity"]["nodeAffinity"][REQUIRED])
    assert put_back(shrunk)["spec"] == obj["spec"]


def test_unlike_roles_of_which_two_might_grow_are_planned_at_the_size_that_they_state() -> None:
    obj = bounded("RayCluster", 1, 4)
    groups = obj["spec"]["workerGroupSpecs"]
    groups.append({**deepcopy(groups[0]), "groupName": "more"})
    seen = observe(obj)

    assert (seen.fault, seen.min_members, seen.max_members) == ("", 33, 33)


def test_unlike_role_grows_beside_another_that_its_bounds_leave_no_choice() -> None:
    obj = bounded("RayCluster", 1, 4)
    groups = obj["spec"]["workerGroupSpecs"]
    same = {"groupName": "same", "minReplicas": 2, "maxReplicas": 2}
    groups.append({**deepcopy(groups[0]), **same})
    seen = observe(obj)

    assert (seen.fault, seen.min_members, seen.max_members) == ("", 25, 49)


def test_unlike_roles_with_shares_of_gpus_wait_with_a_remedy() -> None:
    assert "whole GPUs" in faults.mixed({500, 1000})


def test_members_alike_have_no_shapes() -> None:
    assert observe(stored(manifests.pytorch_job("w"))).shapes == ()


def test_unlike_pods_whose_object_is_gone_count_as_what_each_takes() -> None:
    owner = {"kind": "PyTorchJob", "name": "w", "uid": "gone"}
    small, large = _pod("w-0", owner), _pod("w-1", owner)
    large["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "4"
    large["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "4"
    (left,) = compose([small, large]).orphans

    assert (left.gpus, left.placement) == (1000, {"n1": 5})


def test_pods_whose_object_is_gone_are_orphans_of_its_kind() -> None:
    seen = compose([_pod("w-0", {"kind": "PyTorchJob", "name": "w", "uid": "gone"})])

    assert [(o.name, o.gpus, o.placement) for o in seen.orphans] == [("w", 1000, {"n1": 1})]


def test_waiting_object_that_cannot_be_read_says_why() -> None:
    manifest = manifests.ray_job("w")
    del manifest["spec"]["rayClusterSpec"]
    (seen,) = compose([], stored(manifest)).workloads

    assert seen.fault == "It runs on a cluster that stands already. Queue that cluster instead."


def test_pods_of_a_running_object_that_cannot_be_read_hold_their_gpus() -> None:
    whole = admitted(stored(manifests.ray_job("w")))
    del whole["spec"]["rayClusterSpec"]
    pod = _pod("w-0", {"kind": "RayJob", "name": "w", "uid": whole["metadata"]["uid"]})
    held: dict[str, list[Json]] = {a.kind: [] for a in ADAPTERS if a.resource == a.kind}
    seen = picture.compose(
        [trim_node(kube.node("n1"))], [pod], {**held, "RayJob": [whole]}, Circumstances(CLASSES)
    )

    assert [node.foreign_gpus for node in seen.nodes] == [1000]


@pytest.mark.parametrize("kind", sorted(manifests.MANIFESTS))
@pytest.mark.parametrize(("amount", "said"), [("1500m", "1.5"), ("500m", "0.5")])
def test_part_of_a_gpu_is_refused_where_pods_are_given_whole_ones(
    kind: str, amount: str, said: str
) -> None:
    """The API server checks the amounts of pods, but not those of custom resources."""
    whole = json.dumps(manifests.MANIFESTS[kind]("w"))
    manifest = json.loads(re.sub(r'("nvidia.com/gpu": )"?\d+"?', rf'\1"{amount}"', whole))

    assert f"asks for {said} GPUs" in observe(stored(manifest)).fault
