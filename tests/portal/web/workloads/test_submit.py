import pytest
import yaml

from portal.accounts.models import Persona
from scheduling.models import Workload
from tests.factories import make_workload
from tests.portal.kubernetes import job

pytestmark = pytest.mark.django_db
SUBMIT, PREVIEW, PASTE = (
    "/c/fra1/submit/",
    "/c/fra1/submit/preview/",
    "/c/fra1/submit/?as=manifest",
)
FORM = {
    "name": "probe",
    "queue": "pretraining",
    "priority_class": "research-normal",
    "image": "registry.example.org/probe:1",
    "command": "torchrun train.py --config 'a b.yaml'",
    "gpus_per_pod": "4",
    "pods_min": "1",
    "pods_max": "2",
    "class_1": "h100-80gb",
    "class_2": "a100-40gb",
    "run_time_limit": "14 h",
    "checkpoint_every": "20 min",
}


def faults(response):
    assert response.status_code == 422
    return {
        name: [str(e) for e in errors] for name, errors in response.context["form"].errors.items()
    }


def test_form_makes_the_job_and_leads_to_its_page(as_user, cluster, kube):
    client = as_user("researcher")
    response = client.post(SUBMIT, FORM)
    made = kube.get(job("pretraining", "probe"))
    assert response.headers["Location"] == f"/c/fra1/w/{made['metadata']['uid']}/"
    notes, spec = made["metadata"]["annotations"], made["spec"]
    assert notes["weir.dev/user"] == "researcher"
    assert notes["weir.dev/gpu-classes"] == "h100-80gb,a100-40gb"
    assert (spec["suspend"], spec["parallelism"], spec["activeDeadlineSeconds"]) == (True, 2, 50400)
    container = spec["template"]["spec"]["containers"][0]
    assert container["command"] == ["torchrun", "train.py", "--config", "a b.yaml"]


def test_page_of_what_is_not_mirrored_yet_waits_for_it(as_user, cluster, kube):
    client = as_user("researcher")
    url = client.post(SUBMIT, FORM).headers["Location"]
    assert b"Waiting for the cluster to report it" in client.get(url).content
    part = client.get(url, headers={"HX-Request": "true"})
    assert part.content.strip().startswith(b"<section")
    uid = url.split("/")[-2]
    make_workload(cluster.queues.get(name="pretraining"), uid=uid, name="probe")
    assert client.get(url, headers={"HX-Request": "true"}).headers["HX-Refresh"] == "true"
    assert b"Facts" in client.get(url).content


def test_only_who_submitted_it_is_told_to_wait(as_user, cluster, kube):
    url = as_user("researcher").post(SUBMIT, FORM).headers["Location"]
    assert as_user("admin").get(url).status_code == 404


def test_preview_is_the_job_that_submit_creates(as_user, cluster, kube):
    client = as_user("researcher")
    shown = yaml.safe_load(client.post(PREVIEW, FORM).context["yaml"])
    client.post(SUBMIT, FORM)
    made = kube.get(job("pretraining", "probe"))
    for key in ("parallelism", "completions", "completionMode", "activeDeadlineSeconds"):
        assert shown["spec"][key] == made["spec"][key]
    assert shown["metadata"]["labels"] == {"weir.dev/queue": "pretraining"}


def test_downloaded_manifest_can_be_pasted(as_user, cluster, kube):
    client = as_user("researcher")
    text = client.post(f"{PREVIEW}?download=1", FORM).content.decode()
    assert client.post(PASTE, {"text": text}).status_code == 302
    assert kube.get(job("pretraining", "probe"))


def test_preview_marks_weirs_lines(as_user, cluster):
    page = as_user("researcher").post(PREVIEW, FORM).content.decode()
    assert 'class="line weir">    <span class="key">weir.dev/queue:</span> pretraining' in page


def test_every_class_is_judged_chosen_ones_first(as_user, cluster):
    rows = as_user("researcher").post(PREVIEW, FORM).context["fits"]
    assert [(row.gpu_class.name, row.choice) for row in rows] == [
        ("h100-80gb", 1),
        ("a100-40gb", 2),
        ("a100-mig-1g.5gb", 0),
        ("l4", 0),
    ]
    assert rows[0].cost == "€8.40 an hour"
    assert rows[0].cost_note == "on 4 GPUs; at most €235.20 in 14 h"


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"name": "Bad Name"}, "name", "lower-case"),
        ({"name": ""}, "name", "required"),
        ({"queue": "search"}, "queue", "available choices"),
        ({"image": ""}, "image", "required"),
        ({"command": "echo 'open"}, "command", "quote"),
        ({"gpus_per_pod": "0"}, "gpus_per_pod", "greater"),
        ({"gpus_per_pod": "32"}, "gpus_per_pod", "fewer"),
        ({"pods_max": "1", "pods_min": "2"}, "pods_max", "fewer than"),
        ({"class_1": ""}, "class_1", "required"),
        ({"class_2": "h100-80gb"}, "class_1", "twice"),
        ({"class_2": "a100-mig-1g.5gb"}, "class_1", "same resource"),
        ({"priority_class": "inference"}, "priority_class", "available choices"),
        ({"run_time_limit": "soon"}, "run_time_limit", "14 h"),
        ({"run_time_limit": ""}, "run_time_limit", "needs a run-time limit"),
        ({"run_time_limit": "30 d"}, "run_time_limit", "168 h"),
    ],
)
def test_fault_stands_at_its_field_and_what_was_typed_stays(as_user, cluster, change, field, says):
    response = as_user("researcher").post(SUBMIT, {**FORM, **change})
    found = faults(response)
    assert list(found) == [field]
    assert says in found[field][0]
    form = response.context["form"]
    assert {name: form[name].value() for name in FORM} == {**FORM, **change}


def test_gang_past_every_limit_is_refused_with_the_limit(as_user, cluster):
    Persona.objects.filter(name="researcher").update(max_gpus_per_workload=None)
    change = {"gpus_per_pod": "8", "pods_min": "9", "pods_max": "", "class_2": ""}
    [said] = faults(as_user("researcher").post(SUBMIT, {**FORM, **change}))["gpus_per_pod"]
    assert "needs 72 GPUs; the limit of" in said


def test_taken_name_is_said_at_the_name(as_user, cluster, kube):
    as_user("researcher").post(SUBMIT, FORM)
    [said] = faults(as_user("researcher").post(SUBMIT, FORM))["name"]
    assert "Choose another name" in said


def test_pasted_manifest_keeps_its_text_with_the_fault(as_user, cluster):
    text = "apiVersion: batch/v1\nkind: Job\nmetadata: {labels: {weir.dev/queue: search}}\n"
    response = as_user("researcher").post(PASTE, {"text": text})
    assert response.status_code == 422
    assert text.splitlines()[0] in response.content.decode()
    assert "search" in response.context["form"].errors["text"][0]


@pytest.mark.parametrize("text", ["", "- a", "kind: [", "kind: Job"])
def test_pasted_nonsense_is_refused(as_user, cluster, text):
    assert as_user("researcher").post(PASTE, {"text": text}).status_code == 422


def test_pasted_object_of_a_kind_that_is_not_queued_is_refused_with_those_that_are(
    as_user, cluster
):
    response = as_user("researcher").post(PASTE, {"text": "apiVersion: v1\nkind: Pod\n"})
    [said] = faults(response)["text"]
    assert said.startswith("kind: The manifest is a v1 Pod, which cannot be submitted here.")
    assert "JobSet" in said


def test_clone_begins_with_what_was(as_user, cluster):
    work = Workload.objects.get(name="pt-13b-ctx32k")
    form = as_user("m.okafor").get(f"{SUBMIT}?clone={work.uid}").context["form"]
    values = {name: form[name].value() for name in ("name", "gpus_per_pod", "pods_min", "class_1")}
    assert values == {
        "name": "pt-13b-ctx32k-copy",
        "gpus_per_pod": 8,
        "pods_min": 2,
        "class_1": "h100-80gb",
    }


def test_who_may_submit_nowhere_finds_no_form(as_user, cluster):
    Persona.objects.filter(name="researcher").update(may_submit=False)
    assert as_user("m.okafor").get(SUBMIT).status_code == 404
