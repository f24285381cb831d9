from datetime import datetime, timedelta

import pytest

from portal.accounts.models import Persona
from scheduling.cluster.connection.client import NotFoundError
from scheduling.models import MILLI, CheckpointHabit, GpuClass, PriorityClass, State, Workload
from scheduling.services.cycle.changes import PROJECTED
from scheduling.services.workloads.lifecycle import HELD_BY_STEP
from tests.factories import make_cluster, make_member, make_workload
from tests.portal.kubernetes import job
from tests.scheduling.manifests import MANIFESTS
from tests.scheduling.operators import adapter_of, install

pytestmark = pytest.mark.django_db
WORKLOADS = "/api/v1/clusters/fra1/workloads"
FIELDS = {
    "name": "probe",
    "queue": "pretraining",
    "image": "registry.example.org/probe:1",
    "gpu_classes": ["h100-80gb"],
    "gpus_per_pod": 8,
    "run_time_limit_s": 3600,
}


def names(response):
    assert response.status_code == 200, response.data
    return {row["name"] for row in response.data["results"]}


def test_member_sees_own_queues_and_no_others(api):
    seen = api("researcher").get(WORKLOADS).data["results"]
    assert {row["queue"] for row in seen} <= {"pretraining", "alignment"}
    assert seen


def test_operator_sees_all(api, cluster):
    assert api("admin").get(WORKLOADS).data["count"] == cluster.workloads.count()


def test_own_misrouted_work_is_seen(api, cluster):
    make_workload(None, cluster=cluster, user="researcher", name="lost", reason="misrouted")
    assert names(api("researcher").get(f"{WORKLOADS}?misrouted=true")) == {"lost"}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("name=13B", {"pt-13b-ctx32k"}),
        ("state=requeued", {"pt-13b-ctx32k"}),
        ("state=waiting&queue=assistant", {"assistant-wait-1", "assistant-wait-2"}),
        ("state=holding&queue=recommend", {"recommend-run-1", "recommend-run-2"}),
        ("queue=products/recommend&gpu_class=a100-40gb", set()),
        ("gpu_class=h100&queue=assistant", set()),
        ("user=q.nguyen&state=waiting", {"assistant-wait-1"}),
        ("queue=nowhere", set()),
    ],
)
def test_filter_narrows(api, query, wanted):
    assert names(api("admin").get(f"{WORKLOADS}?{query}")) == wanted


def test_inner_queue_stands_for_its_subtree(api):
    rows = api("admin").get(f"{WORKLOADS}?queue=products&page_size=1000").data["results"]
    leaves = {"search", "recommend", "translate", "assistant"}
    assert {row["queue"] for row in rows} == leaves


def test_figures_are_numbers_of_gpus_and_utc_times(api):
    row = api("admin").get(f"{WORKLOADS}?name=pt-13b").data["results"][0]
    assert (row["gpus"], row["requested_gpus"], row["lost_gpu_hours"]) == (8.0, 16.0, 7.5)
    assert row["submitted_at"].endswith("Z")


def test_detail_tells_history_and_evictions(api):
    uid = Workload.objects.get(name="pt-13b-ctx32k").uid
    data = api("researcher").get(f"{WORKLOADS}/{uid}").data
    states = [step["to_state"] for step in data["transitions"]]
    assert states == ["pending", "admitted", "running", "evicted", "requeued"]
    assert data["evictions"][0]["numbers"]["victim_held_before"] == 56


def test_detail_tells_the_learned_checkpoint_interval_and_from_whom(api, cluster):
    work = Workload.objects.get(name="pretraining-run-1")
    url = f"{WORKLOADS}/{work.uid}"
    assert api("researcher").get(url).data["learned_checkpoint"] is None
    recent = [[uid, [1800]] for uid in "abcdefghi"] + [["j", []]]
    CheckpointHabit.objects.create(queue=work.queue, user=work.user, recent=recent)
    Workload.objects.filter(pk=work.pk).update(started_at=cluster.now() - timedelta(minutes=40))
    told = api("researcher").get(url).data["learned_checkpoint"]
    at = datetime.fromisoformat(told.pop("presumed_at"))
    assert (cluster.now() - at).total_seconds() == pytest.approx(600, abs=60)
    assert told == {
        "interval_s": 1800, "learned_from": "user_in_queue", "told": 9, "seen": 10, "due_at": None,
    }  # fmt: skip


def test_workload_of_a_queue_not_seen_is_absent(api):
    uid = Workload.objects.get(name="search-run-1").uid
    assert api("researcher").get(f"{WORKLOADS}/{uid}").status_code == 404


def test_workload_of_another_cluster_is_absent_here(api, cluster):
    other = make_cluster("ams1")
    work = make_workload(None, cluster=other)
    assert api("admin").get(f"{WORKLOADS}/{work.uid}").status_code == 404


def test_cost_is_told_to_the_owner_and_to_who_may_read_costs(api, cluster):
    work = Workload.objects.get(name="pretraining-run-1")
    url = f"{WORKLOADS}/{work.uid}"
    assert work.user == "m.okafor"
    assert api("researcher").get(url).data["cost"] is None
    cost = api("m.okafor").get(url).data["cost"]
    read = api("lead").get(url).data["cost"]
    assert read["gpu_hours"] == pytest.approx(cost["gpu_hours"], abs=0.1)
    assert (cost["currency"], cost["price_per_gpu_hour"]) == ("EUR", "2.1000")
    assert float(cost["amount"]) == pytest.approx(2.1 * cost["gpu_hours"], abs=0.01)


def test_submit_creates_the_job_as_the_person(api, kube):
    response = api("researcher").post(WORKLOADS, FIELDS, format="json")
    assert response.status_code == 201, response.data
    made = kube.get(job("pretraining", "probe"))
    assert made["metadata"]["uid"] == response.data["uid"]
    assert made["metadata"]["annotations"]["weir.dev/user"] == "researcher"
    assert made["spec"]["suspend"] is True


def test_submit_takes_the_fields_as_a_form(api, kube):
    response = api("researcher").post(WORKLOADS, FIELDS, format="multipart")
    assert response.status_code == 201, response.data
    assert kube.get(job("pretraining", "probe"))["spec"]["suspend"] is True


def test_form_without_anything_is_told_what_is_needed(api):
    response = api("researcher").post(WORKLOADS, {}, format="multipart")
    assert response.status_code == 400, response.data
    assert list(response.data["fields"]) == ["name", "queue", "image", "gpu_classes"]


def test_manifest_without_anything_is_refused(api):
    response = api("researcher").post(WORKLOADS, {"manifest": {}}, format="json")
    assert response.status_code == 400, response.data


def test_submit_takes_the_manifest_that_kubectl_takes(api, kube):
    made = api("researcher").post(WORKLOADS, FIELDS, format="json").data["manifest"]
    kept = {key: made["metadata"][key] for key in ("labels", "annotations", "namespace")}
    spec = {k: v for k, v in made["spec"].items() if k not in ("selector", "manualSelector")}
    spec["template"].pop("metadata", None)
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**kept, "name": "again"},
        "spec": spec,
    }
    response = api("researcher").post(WORKLOADS, {"manifest": manifest}, format="json")
    assert response.status_code == 201, response.data
    assert response.data["name"] == "again"


def test_submit_of_a_taken_name_says_so_at_the_field(api, kube):
    api("researcher").post(WORKLOADS, FIELDS, format="json")
    response = api("researcher").post(WORKLOADS, FIELDS, format="json")
    assert (response.status_code, response.data["code"]) == (409, "name_taken")
    assert list(response.data["fields"]) == ["name"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"queue": "search"}, "queue"),
        ({"queue": "nowhere"}, "queue"),
        ({"gpu_classes": ["b200"]}, "gpu_classes"),
        ({"pods_min": 5}, "gpus_per_pod"),
        ({"priority_class": "inference"}, "priority_class"),
        ({"run_time_limit_s": 999_999_999}, "run_time_limit"),
        ({"run_time_limit_s": None}, "run_time_limit"),
        ({"gpus_per_pod": 0}, "gpus_per_pod"),
        ({"name": ""}, "name"),
        ({"manifest": {}}, "gpu_classes"),
    ],
)
def test_submit_is_refused_at_the_field(api, change, field):
    response = api("researcher").post(WORKLOADS, {**FIELDS, **change}, format="json")
    assert response.status_code == 400, response.data
    assert list(response.data["fields"]) == [field]


def test_submit_of_what_can_never_start_is_refused_until_that_is_asked_for(api, kube):
    Persona.objects.filter(name="researcher").update(max_gpus_per_workload=None)
    asked = {**FIELDS, "gpus_per_pod": 16}
    client = api("researcher")
    refused = client.post(WORKLOADS, asked, format="json")
    assert refused.status_code == 400
    assert "never take 1 member of 16 GPUs" in str(refused.data)
    made = client.post(WORKLOADS, {**asked, "even_if_never": True}, format="json")
    assert made.status_code == 201
    assert kube.get(job("pretraining", "probe"))["spec"]["suspend"]


def test_every_column_that_is_copied_from_the_cluster_is_told(api):
    assert set(PROJECTED) <= set(api("researcher").get(WORKLOADS).data["results"][0])


EXCUSED = {
    "held_since": "it is in used_gpu_hours",
    "id": "its name outside is the uid",
    "cluster": "it stands in the address",
    "sealed": "what sentences are told from, for each reader",
    "used_gpu_s": "told in GPU-hours",
    "lost_gpu_s": "told in GPU-hours",
    "virtual_start_at": "told as lead_s",
    "class_on_own_quota": "told as lead_s",
    "own_pace": "told as lead_s",
    "saved_s": "told as lead_s",
    "claim": "who leaves for it is told with its evictions, for each reader",
    "taken_gpus": "told with its evictions",
    "recent_evictions": "told with its evictions",
    "last_evicted_at": "told with its evictions",
    "last_evicted_for": "told with its evictions, for each reader",
}


def test_every_column_of_a_workload_is_told_or_excused(api):
    told = set(api("researcher").get(WORKLOADS).data["results"][0])
    columns = {field.name for field in Workload._meta.concrete_fields}
    assert columns - told == set(EXCUSED)


def test_every_column_of_a_workload_is_of_its_identity_copied_or_stepped():
    identity = {"id", "cluster", "uid", "kind", "namespace", "name", "submitted_at"}
    columns = {field.name for field in Workload._meta.concrete_fields}
    assert identity | set(PROJECTED) | set(HELD_BY_STEP) == columns


def test_submit_into_a_foreign_namespace_is_refused(api):
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "x", "namespace": "kube-system", "labels": {"weir.dev/queue": "pretraining"},
        },
        "spec": {"activeDeadlineSeconds": 60},
    }  # fmt: skip
    response = api("researcher").post(WORKLOADS, {"manifest": manifest}, format="json")
    assert list(response.data["fields"]) == ["namespace"]


def of_kind(kind, gpus=1):
    """A manifest of ``kind`` with two GPU pods, as a researcher may submit it."""
    manifest = MANIFESTS[kind]("probe", gpus)
    meta = manifest["metadata"]
    meta["namespace"] = meta["labels"]["weir.dev/queue"] = "pretraining"
    meta.setdefault("annotations", {})["weir.dev/gpu-classes"] = "h100-80gb"
    return manifest


@pytest.mark.parametrize("kind", sorted(MANIFESTS))
def test_work_of_every_kind_is_submitted_to_wait(api, kube, kind):
    install(kube)
    Persona.objects.filter(name="researcher").update(max_run_time_s=None)
    response = api("researcher").post(WORKLOADS, {"manifest": of_kind(kind)}, format="json")
    assert response.status_code == 201, response.data
    assert adapter_of(kind).is_suspended(response.data["manifest"])


@pytest.mark.parametrize("kind", sorted(MANIFESTS))
def test_what_a_persona_may_not_do_is_refused_in_every_kind(api, kind):
    Persona.objects.filter(name="researcher").update(max_run_time_s=None)
    response = api("researcher").post(WORKLOADS, {"manifest": of_kind(kind, 32)}, format="json")
    assert (response.status_code, list(response.data["fields"])) == (400, ["gpus_per_pod"])
    assert "64 GPUs are more than" in str(response.data["fields"])


def test_run_time_limit_of_a_persona_binds_kinds_that_have_one(api):
    manifest = of_kind("PyTorchJob")
    response = api("researcher").post(WORKLOADS, {"manifest": manifest}, format="json")
    assert list(response.data["fields"]) == ["run_time_limit"]


@pytest.mark.parametrize(
    ("manifest", "field", "says"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, "kind", "which cannot be submitted here"),
        ({"apiVersion": "v1", "kind": "PodGroup"}, "kind", "which cannot be submitted here"),
        ({"apiVersion": "jobset.x-k8s.io/v2", "kind": "JobSet"}, "kind", "Submit one of"),
        ({"apiVersion": "ray.io/v1", "kind": "RayJob"}, "metadata", "metadata"),
        (
            {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {}, "spec": {}},
            "spec",
            "Queue that cluster instead",
        ),
    ],
)
def test_what_cannot_be_queued_is_refused_with_the_way_out(api, manifest, field, says):
    response = api("researcher").post(WORKLOADS, {"manifest": manifest}, format="json")
    assert list(response.data["fields"]) == [field]
    assert says in str(response.data)


def test_claims_of_a_namespace_out_of_reach_are_not_looked_up(api, kube, cluster):
    """What stands in another team's namespace shows neither by its size nor by a fault."""
    answers = []
    offer_claims(kube, "search", count=32)
    manifest = of_kind("JobSet", gpus=0)
    for part in manifest["spec"]["replicatedJobs"]:
        pod = part["template"]["spec"]["template"]["spec"]
        pod["containers"][0]["resources"] = {}
        pod["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "many"}]
    for namespace in ("search", "nowhere"):
        manifest["metadata"]["namespace"] = namespace
        response = api("researcher").post(WORKLOADS, {"manifest": manifest}, format="json")
        answers.append(str(response.data).replace(namespace, "X"))
    assert answers[0] == answers[1]


def test_devices_that_are_claimed_count_like_gpus(api, kube, cluster):
    claimed = "deviceclass.resource.kubernetes.io/big.weir.test"
    GpuClass.objects.filter(name="h100-80gb").update(resource_name=claimed)
    offer_claims(kube, "pretraining", count=32)
    manifest = of_kind("JobSet", gpus=0)
    for part in manifest["spec"]["replicatedJobs"][1:]:
        pod = part["template"]["spec"]["template"]["spec"]
        pod["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "many"}]
    manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["activeDeadlineSeconds"] = 60
    response = api("researcher").post(WORKLOADS, {"manifest": manifest}, format="json")
    assert "64 GPUs are more than" in str(response.data["fields"]["gpus_per_pod"])


def offer_claims(kube, namespace, count):
    """A template ``many`` in ``namespace`` that claims ``count`` devices of one class."""
    api = "/apis/resource.k8s.io/v1"
    version = {"apiVersion": "resource.k8s.io/v1"}
    big = {"kind": "DeviceClass", "metadata": {"name": "big.weir.test"}, "spec": {}}
    kube.create(f"{api}/deviceclasses", {**version, **big})
    request = {"name": "gpu", "exactly": {"deviceClassName": "big.weir.test", "count": count}}
    template = {
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "many"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    path = f"{api}/namespaces/{namespace}/resourceclaimtemplates"
    kube.create(path, {**version, **template})


def test_persona_without_submit_may_not(api, cluster):
    Persona.objects.filter(name="researcher").update(grants={})
    response = api("researcher").post(WORKLOADS, FIELDS, format="json")
    assert list(response.data["fields"]) == ["queue"]


@pytest.fixture
def submitted(api, kube, cluster):
    """A workload that the server holds and the mirror has shown."""
    made = api("researcher").post(WORKLOADS, FIELDS, format="json").data
    return make_workload(
        cluster.queues.get(name="pretraining"),
        uid=made["uid"],
        name="probe",
        namespace="pretraining",
        user="researcher",
        gpus=8 * MILLI,
    )


def test_cancel_deletes_the_job(api, kube, submitted):
    response = api("researcher").post(f"{WORKLOADS}/{submitted.uid}/cancel")
    assert response.status_code == 202
    with pytest.raises(NotFoundError):
        kube.get(job("pretraining", "probe"))


def test_hold_and_release_mark_the_job(api, kube, submitted):
    def note():
        notes = kube.get(job("pretraining", "probe"))["metadata"]["annotations"]
        return notes.get("weir.dev/hold")

    lead = api("lead")
    assert lead.post(f"{WORKLOADS}/{submitted.uid}/hold").status_code == 202
    assert note() == "true"
    assert lead.post(f"{WORKLOADS}/{submitted.uid}/release").status_code == 202
    assert note() is None


def test_hold_of_running_work_is_a_conflict(api, kube, submitted):
    Workload.objects.filter(pk=submitted.pk).update(state=State.RUNNING)
    response = api("researcher").post(f"{WORKLOADS}/{submitted.uid}/hold")
    assert (response.status_code, response.data["code"]) == (409, "not_waiting")


def test_colleague_may_see_but_not_cancel(api, kube, submitted):
    response = api("m.okafor").post(f"{WORKLOADS}/{submitted.uid}/cancel")
    assert (response.status_code, response.data["code"]) == (403, "not_allowed")
    assert "researcher" in response.data["sentence"]


def test_stranger_cancels_nothing_there(api, kube, submitted, cluster):
    make_member(cluster.queues.get(name="search"), name="stranger", may_submit=True)
    assert api("stranger").post(f"{WORKLOADS}/{submitted.uid}/cancel").status_code == 404
    assert kube.get(job("pretraining", "probe"))


def test_unreachable_cluster_is_said_so(api, submitted, cluster):
    cluster.api_url = "http://127.0.0.1:9"
    cluster.save(update_fields=["api_url"])
    response = api("researcher").post(f"{WORKLOADS}/{submitted.uid}/cancel")
    assert response.status_code == 503


ACTIONS = "/api/v1/clusters/fra1/workload-actions"


def note_of(kube):
    return kube.get(job("pretraining", "probe"))["metadata"]["annotations"].get("weir.dev/hold")


def test_priority_class_of_one_is_changed_on_the_job(api, kube, submitted):
    name = PriorityClass.objects.order_by("value").first().name
    sent = {"priority_class": name}
    response = api("researcher").post(f"{WORKLOADS}/{submitted.uid}/priority", sent, format="json")
    assert response.status_code == 202
    labels = kube.get(job("pretraining", "probe"))["metadata"]["labels"]
    assert labels["weir.dev/priority-class"] == name


def test_priority_class_that_the_persona_does_not_give_is_refused_at_its_field(
    api, kube, submitted
):
    PriorityClass.objects.create(name="board", value=9000)
    response = api("researcher").post(
        f"{WORKLOADS}/{submitted.uid}/priority", {"priority_class": "board"}, format="json"
    )
    assert (response.status_code, response.data["code"]) == (400, "priority_class_not_allowed")
    assert list(response.data["fields"]) == ["priority_class"]


def test_several_are_answered_each_by_itself(api, kube, submitted, cluster):
    queue = cluster.queues.get(name="pretraining")
    runs = make_workload(queue, name="runs", user="researcher", state=State.RUNNING)
    theirs = make_workload(queue, name="theirs", user="m.okafor")
    uids = [submitted.uid, runs.uid, theirs.uid, "nowhere", submitted.uid]
    response = api("researcher").post(ACTIONS, {"action": "hold", "uids": uids}, format="json")
    assert response.status_code == 200
    assert response.data["done"] == 1
    told = [(row["name"], (row["refused"] or {}).get("code")) for row in response.data["results"]]
    assert told == [
        ("probe", None), ("runs", "not_waiting"), ("theirs", "not_allowed"), ("nowhere", "not_found")
    ]  # fmt: skip
    assert note_of(kube) == "true"


def test_same_call_again_with_its_key_acts_once(api, kube, submitted):
    sent = {"action": "hold", "uids": [submitted.uid]}
    client, key = api("researcher"), {"HTTP_IDEMPOTENCY_KEY": "several-held-once"}
    first = client.post(ACTIONS, sent, format="json", **key)
    client.post(f"{WORKLOADS}/{submitted.uid}/release")
    again = client.post(ACTIONS, sent, format="json", **key)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.data == first.data
    assert note_of(kube) is None


def test_more_than_a_hundred_are_refused_whole(api, kube, submitted):
    uids = [submitted.uid, *(f"uid-{i}" for i in range(100))]
    response = api("researcher").post(ACTIONS, {"action": "hold", "uids": uids}, format="json")
    assert (response.status_code, response.data["code"]) == (400, "too_many_at_once")
    assert note_of(kube) is None


@pytest.mark.parametrize(
    "more",
    [{"action": "priority"}, {"action": "hold", "priority_class": "normal"}, {"action": "explode"}],
)
def test_action_that_makes_no_sense_is_refused_at_its_field(api, kube, submitted, more):
    response = api("researcher").post(ACTIONS, {"uids": [submitted.uid], **more}, format="json")
    assert response.status_code == 400
    assert response.data["code"] == "invalid"


def test_cause_of_an_end_is_told_with_its_sentence_and_what_to_do(api, cluster):
    work = make_workload(
        cluster.queues.get(name="pretraining"), user="researcher", state=State.FINISHED,
        outcome="failed", cause="out_of_memory", exit_code=137,
    )  # fmt: skip
    row = api("researcher").get(f"{WORKLOADS}/{work.uid}").data
    assert (row["cause"], row["exit_code"]) == ("out_of_memory", 137)
    assert row["ending"].endswith("was killed (exit code 137).")
    assert "memory limit" in row["remedy"]
