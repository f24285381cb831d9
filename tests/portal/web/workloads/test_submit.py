import pytest
import yaml

from portal.accounts.models import Persona, User
from portal.web.workloads.copies import clone_of
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


def test_form_asks_for_a_domain_and_for_segments_inside_it(as_user, cluster, kube):
    near = {"pods_min": "2", "pods_max": "", "together": "node", "segment_size": "2"}
    as_user("researcher").post(SUBMIT, {**FORM, **near, "segment_level": "node"})
    notes = kube.get(job("pretraining", "probe"))["metadata"]["annotations"]
    assert notes["weir.dev/topology-required"] == "node"
    assert (notes["weir.dev/segment-size"], notes["weir.dev/segment-required"]) == ("2", "node")


def test_segment_without_a_level_is_refused_at_the_level(as_user, cluster):
    response = as_user("researcher").post(SUBMIT, {**FORM, "segment_size": "2"})
    told = ["A segment has a size and a level. Say both, or neither."]
    assert faults(response) == {"segment_level": told}


def test_segments_that_do_not_divide_the_pods_are_refused(as_user, cluster, kube):
    near = {"segment_size": "3", "segment_level": "rack"}
    response = as_user("researcher").post(SUBMIT, {**FORM, **near})
    assert "It asks for segments of 3 members each, and has 1 members." in str(faults(response))


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
    assert shown["metadata"]["labels"] == {
        "weir.dev/queue": "pretraining",
        "weir.dev/priority-class": "research-normal",
    }


def test_downloaded_manifest_can_be_pasted(as_user, cluster, kube):
    client = as_user("researcher")
    text = client.post(f"{PREVIEW}?download=1", FORM).content.decode()
    assert client.post(PASTE, {"text": text}).status_code == 302
    assert kube.get(job("pretraining", "probe"))


def test_preview_before_anything_is_typed_says_what_is_to_come_and_finds_no_fault(as_user, cluster):
    page = as_user("researcher").post(PREVIEW, {"queue": "pretraining"}).content.decode()
    assert "is required" not in page
    assert "Still to be filled in: Name, Image, GPUs per pod, Pods, min, 1st choice" in page


def test_preview_tells_the_fault_of_what_is_typed(as_user, cluster):
    page = as_user("researcher").post(PREVIEW, {"name": "Not OK"}).content.decode()
    assert "Name: Use lower-case letters" in page
    assert "As it is, it <b>would be refused</b>: name: Use lower-case letters" in page
    assert "Image:" not in page


def test_what_begins_with_an_abbreviation_keeps_it_within_a_sentence(as_user, cluster, kube):
    page = as_user("researcher").post(PREVIEW, {**FORM, "gpus_per_pod": "1024"}).content.decode()
    assert "<b>would be refused</b>: GPUs per pod:" in page


def test_check_of_an_empty_form_names_what_is_required(as_user, cluster):
    page = as_user("researcher").post(SUBMIT, {"check": "1"}).content.decode()
    assert "Image: This field is required." in page


def test_preview_marks_weirs_lines(as_user, cluster):
    page = as_user("researcher").post(PREVIEW, FORM).content.decode()
    assert 'class="line weir">    <span class="key">weir.dev/queue:</span> pretraining' in page


def outlook(client, **change):
    return client.post(PREVIEW, {**FORM, **change}).context["outlook"]


def heads(client, **change):
    rows = outlook(client, **change).rows
    return {row.gpu_class.name: row.verdict.head for row in rows}


def test_every_class_is_planned_chosen_ones_first(as_user, cluster, kube):
    rows = outlook(as_user("researcher")).rows
    assert [(row.gpu_class.name, row.choice) for row in rows] == [
        ("h100-80gb", 1),
        ("a100-40gb", 2),
        ("a100-mig-1g.5gb", 0),
        ("l4", 0),
    ]
    assert rows[0].cost_note.endswith("at most €235.20 in 14 h")


def test_work_that_finds_room_is_said_to_start_with_what_it_gets(as_user, cluster, kube):
    rows = outlook(as_user("researcher"), gpus_per_pod="1", pods_max="").rows
    assert (rows[0].verdict.tone, rows[0].verdict.head) == ("ok", "Starts now")
    assert rows[0].cost == "€2.10 an hour"


def test_class_whose_nodes_are_too_small_never_fits(as_user, cluster, kube):
    said = heads(as_user("researcher"), gpus_per_pod="8", pods_max="")
    assert said["l4"] == "Never fits"
    assert said["h100-80gb"] == "Starts now"


def waiting_job(kube, name, gpus):
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": {"weir.dev/queue": "pretraining"},
            "annotations": {"weir.dev/gpu-classes": "h100-80gb", "weir.dev/user": "researcher"},
        },
        "spec": {
            "suspend": True,
            "parallelism": 1,
            "activeDeadlineSeconds": 3600,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {
                            "name": "main",
                            "image": "a/b:1",
                            "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
                        }
                    ],
                }
            },
        },
    }
    return kube.create("/apis/batch/v1/namespaces/pretraining/jobs", body)


def test_work_that_waits_is_told_its_place_and_who_goes_before(as_user, cluster, kube):
    for node in kube.get("/api/v1/nodes")["items"]:
        if node["metadata"]["labels"]["nvidia.com/gpu.product"] != "NVIDIA-H100-80GB-HBM3":
            continue
        if node["metadata"]["name"] != "h100-01":
            kube.delete(f"/api/v1/nodes/{node['metadata']['name']}", {})
    for number in (1, 2):
        uid = waiting_job(kube, f"first-{number}", 8)["metadata"]["uid"]
        queue = cluster.queues.get(name="pretraining")
        make_workload(queue, uid=uid, name=f"first-{number}", gpus=8000)
    change = {"gpus_per_pod": "8", "pods_max": "", "class_2": ""}
    row = outlook(as_user("researcher"), **change).rows[0]
    assert row.verdict.head.startswith("Waits, place 2 in its queue")
    assert [work.name for work in row.behind] == ["first-2"]


def test_nothing_is_promised_while_the_cluster_does_not_answer(as_user, cluster):
    assert "does not answer" in outlook(as_user("researcher")).fault


def test_check_without_javascript_shows_what_would_happen_and_creates_nothing(
    as_user, cluster, kube
):
    response = as_user("researcher").post(SUBMIT, {**FORM, "check": "1"})
    assert response.status_code == 200
    assert [row.verdict.head for row in response.context["outlook"].rows]
    assert kube.get("/apis/batch/v1/jobs")["items"] == []
    assert response.context["form"]["command"].value() == FORM["command"]


def test_half_a_form_is_planned_as_far_as_it_can_be_read(as_user, cluster, kube):
    said = heads(as_user("researcher"), name="", image="", command="'", run_time_limit="soo")
    assert said["h100-80gb"] == "Starts now"


NEVER = {"gpus_per_pod": "16", "pods_max": "", "class_2": ""}


def test_work_that_can_never_start_is_refused_until_that_is_confirmed(as_user, cluster, kube):
    Persona.objects.filter(name="researcher").update(max_gpus_per_workload=None)
    client = as_user("researcher")
    response = client.post(SUBMIT, {**FORM, **NEVER})
    [said] = faults(response)["gpus_per_pod"]
    assert "never take 1 member of 16 GPUs" in said
    assert 'name="even_if_never"' in response.content.decode()
    assert client.post(SUBMIT, {**FORM, **NEVER, "even_if_never": "on"}).status_code == 302
    assert kube.get(job("pretraining", "probe"))


def test_pasted_work_that_can_never_start_is_refused_until_that_is_confirmed(
    as_user, cluster, kube
):
    Persona.objects.filter(name="researcher").update(max_gpus_per_workload=None)
    client = as_user("researcher")
    text = client.post(f"{PREVIEW}?download=1", {**FORM, **NEVER, "even_if_never": "on"}).content
    pasted = {"text": text.decode()}
    assert "never take" in faults(client.post(PASTE, pasted))["text"][0]
    assert client.post(PASTE, {**pasted, "even_if_never": "on"}).status_code == 302


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"name": "Bad Name"}, "name", "lower-case"),
        ({"name": ""}, "name", "required"),
        ({"queue": "search"}, "queue", "available choices"),
        ({"image": ""}, "image", "required"),
        ({"image": "not a valid image!!"}, "image", "no reference of an image"),
        ({"env": "NCCL_DEBUG"}, "env", "no '='"),
        ({"env": "A=1\nA=2"}, "env", "Line 2: A is there twice"),
        ({"labels": "weir.dev/queue=search"}, "labels", "set by the form's own fields"),
        ({"labels": "a b=1"}, "labels", "no name that can be used"),
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
        ({"run_time_limit": "30 d"}, "run_time_limit", "longer than the 7 d of persona researcher"),
    ],
)
def test_fault_stands_at_its_field_and_what_was_typed_stays(as_user, cluster, change, field, says):
    response = as_user("researcher").post(SUBMIT, {**FORM, **change})
    found = faults(response)
    assert list(found) == [field]
    assert says in found[field][0]
    form = response.context["form"]
    assert {name: form[name].value() for name in {**FORM, **change}} == {**FORM, **change}


def test_gang_past_every_limit_is_refused_with_the_limit(as_user, cluster, kube):
    Persona.objects.filter(name="researcher").update(max_gpus_per_workload=None)
    change = {"gpus_per_pod": "8", "pods_min": "9", "pods_max": "", "class_2": ""}
    [said] = faults(as_user("researcher").post(SUBMIT, {**FORM, **change}))["gpus_per_pod"]
    assert "needs 72 h100-80gb at once" in said
    assert "may hold at most" in said


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


def test_pasted_manifest_that_is_refused_is_not_told_to_start(as_user, cluster, kube):
    """Without a run-time limit, which the persona asks for."""
    Persona.objects.update(max_run_time_s=3600)
    job = as_user("researcher").post(PREVIEW, FORM).context["form"].manifest
    job["spec"].pop("activeDeadlineSeconds", None)
    answer = as_user("researcher").post(f"{PREVIEW}?as=manifest", {"text": yaml.safe_dump(job)})
    lead = answer.content.decode().split('id="lead"')[1].split("</p>")[0]
    assert answer.context["faults"]
    assert "would be refused" in lead
    assert "starts now" not in lead


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


def submitted(client, **change):
    url = client.post(SUBMIT, {**FORM, **change}).headers["Location"]
    return url.split("/")[-2]


def row_of(cluster, uid, **fields):
    queue = cluster.queues.get(name="pretraining")
    return make_workload(queue, uid=uid, name="probe", user="researcher", **fields)


WHOLE = {"env": "NCCL_DEBUG=INFO\nSEED=7", "labels": "project=v2"}


@pytest.mark.parametrize("is_gone", [False, True])
def test_clone_keeps_everything_but_the_name(as_user, cluster, kube, is_gone):
    client = as_user("researcher")
    uid = submitted(client, **WHOLE)
    row_of(cluster, uid)
    if is_gone:
        kube.delete(job("pretraining", "probe"), {})
    form = client.get(f"{SUBMIT}?clone={uid}").context["form"]
    want = {**FORM, **WHOLE, "name": "probe-copy"}
    assert {name: str(form[name].value()) for name in want} == want


def test_clone_of_what_kubectl_made_is_read_from_the_cluster(as_user, cluster, kube):
    made = waiting_job(kube, "probe", 2)
    row_of(cluster, made["metadata"]["uid"])
    response = as_user("researcher").get(f"{SUBMIT}?clone={made['metadata']['uid']}")
    assert "image: a/b:1" in response.context["form"]["text"].value()


def test_clone_of_what_the_form_cannot_say_keeps_all_of_it_as_a_manifest(as_user, cluster, kube):
    client = as_user("researcher")
    text = client.post(f"{PREVIEW}?download=1", FORM).content.decode()
    odd = yaml.safe_load(text)
    odd["spec"]["template"]["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    uid = client.post(PASTE, {"text": yaml.safe_dump(odd)}).headers["Location"].split("/")[-2]
    row_of(cluster, uid)
    shown = client.get(f"{SUBMIT}?clone={uid}").context["form"]["text"].value()
    again = yaml.safe_load(shown)
    assert again["spec"]["template"]["spec"]["volumes"] == [{"name": "scratch", "emptyDir": {}}]
    assert again["metadata"]["name"] == "probe-copy"


def test_clone_by_who_may_not_submit_there_shows_no_environment(as_user, cluster, kube):
    uid = submitted(as_user("researcher"), **WHOLE)
    row_of(cluster, uid)
    Persona.objects.exclude(name="researcher").update(grants={"see": "all"})
    copied = clone_of(User.objects.get(username="admin"), cluster, uid)
    assert copied.text == ""
    assert "env" not in copied.values


def test_image_and_command_used_last_are_there_again(as_user, cluster, kube):
    client = as_user("researcher")
    submitted(client)
    form = client.get(SUBMIT).context["form"]
    assert (form["image"].value(), form["command"].value()) == (FORM["image"], FORM["command"])
    assert as_user("m.okafor").get(SUBMIT).context["form"]["image"].value() is None


def test_who_may_submit_nowhere_finds_no_form(as_user, cluster):
    Persona.objects.filter(name="researcher").update(grants={})
    assert as_user("m.okafor").get(SUBMIT).status_code == 404


def test_form_without_script_offers_each_place_of_the_order_and_no_dead_button(as_user, cluster):
    page = as_user("researcher").get(SUBMIT).content.decode()
    order = page[page.index('id="class-order"') : page.index("</fieldset>")]
    assert order.count("<select") == cluster.gpu_classes.count()
    assert all("hidden" in button.split(">")[0] for button in order.split("<button")[1:])


def test_home_says_of_work_to_submit_again_what_the_submit_page_would_say(as_user, cluster, kube):
    client, queue = as_user("researcher"), cluster.queues.get(name="pretraining")
    made = kube.get(job("pretraining", client.post(SUBMIT, FORM) and "probe"))
    uid = made["metadata"]["uid"]
    make_workload(queue, uid=uid, name="probe", user="researcher")
    home = client.get(f"/c/fra1/work/?part=again&clone={uid}").context
    page = client.post(PREVIEW, {**FORM, "name": "probe-copy"}).context["outlook"]
    runs = [row for row in page.rows if row.verdict.tone != "err"]
    assert [(r.gpu_class.name, r.starts, r.cost) for r in home["rows"]] == [
        (r.gpu_class.name, r.starts, r.cost) for r in runs
    ]
    assert len(runs) > 0


def test_home_plans_no_work_of_others(as_user, cluster, kube):
    queue = cluster.queues.get(name="pretraining")
    make_workload(queue, uid="theirs", name="theirs", user="lead")
    client = as_user("researcher")
    assert client.get("/c/fra1/work/?part=again&clone=theirs").status_code == 404
    assert client.get("/c/fra1/work/?part=again").status_code == 404
