"""When work starts, arrays, kinds and the address of the form."""

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from portal.accounts.models import Persona
from tests.factories import make_workload
from tests.portal.kubernetes import job
from tests.portal.web.workloads.test_submit import FORM, PREVIEW, SUBMIT, faults

pytestmark = pytest.mark.django_db


def later(cluster, days=2):
    return (cluster.now() + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M")


def test_form_writes_when_it_starts(as_user, cluster, kube):
    make_workload(cluster.queues.get(name="pretraining"), name="first", user="researcher")
    form = FORM | {"not_before": later(cluster), "after": "first, first:ended"}
    assert as_user("researcher").post(SUBMIT, form).status_code == 302
    notes = kube.get(job("pretraining", "probe"))["metadata"]["annotations"]
    assert notes["weir.dev/after"] == "first,first:ended"
    assert notes["weir.dev/not-before"].endswith("Z")


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"not_before": "2020-01-01T10:00"}, "not_before", "is past"),
        ({"after": "nothing-there"}, "after", "no workload nothing-there"),
        ({"after": "probe"}, "after", "none of them ever would"),
        ({"at_once": "2"}, "array", "how many members"),
        ({"array": "1000"}, "array", "200"),
        ({"array": "3", "name": "x" * 60}, "name", "at most 59"),
        ({"secrets": "Not A Name"}, "secrets", "is no name"),
        ({"volumes": "data=relative"}, "volumes", "no value that can be used"),
    ],
)
def test_bad_input_is_refused_at_its_field(as_user, cluster, kube, typed, field, said):
    found = faults(as_user("researcher").post(SUBMIT, FORM | typed))
    assert said in " ".join(found[field])


def test_what_failed_already_is_refused_to_start_after(as_user, cluster, kube):
    queue = cluster.queues.get(name="pretraining")
    make_workload(queue, name="first", user="researcher", state="finished", outcome="failed")
    client = as_user("researcher")
    assert "first:ended" in faults(client.post(SUBMIT, FORM | {"after": "first"}))["after"][0]
    assert client.post(SUBMIT, FORM | {"after": "first:ended"}).status_code == 302


def test_array_makes_members_that_know_their_number(as_user, cluster, kube):
    form = FORM | {"array": "3", "at_once": "2", "env": "SEED=1"}
    assert as_user("researcher").post(SUBMIT, form).status_code == 302
    made = [kube.get(job("pretraining", f"probe-{n}")) for n in range(3)]
    for number, one in enumerate(made):
        notes = one["metadata"]["annotations"]
        assert (notes["weir.dev/array"], notes["weir.dev/array-index"]) == ("probe", str(number))
        assert notes["weir.dev/array-at-once"] == "2"
        env = one["spec"]["template"]["spec"]["containers"][0]["env"]
        assert {"name": "WEIR_ARRAY_INDEX", "value": str(number)} in env
        assert {"name": "SEED", "value": "1"} in env


def test_volumes_and_secrets_by_name_stand_in_the_pod(as_user, cluster, kube):
    form = FORM | {"volumes": "datasets=/data", "secrets": "wandb, hub"}
    page = as_user("researcher").post(PREVIEW, form)
    pod = page.context["form"].manifest["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "datasets"
    assert container["volumeMounts"] == [{"name": "volume-1", "mountPath": "/data"}]
    assert [one["secretRef"]["name"] for one in container["envFrom"]] == ["wandb", "hub"]


def test_session_stays_and_service_is_a_deployment(as_user, cluster, kube):
    client = as_user("researcher")
    form = FORM | {"command": "", "kind": "interactive", "priority_class": "interactive"}
    session = client.post(PREVIEW, form).context["form"].manifest
    container = session["spec"]["template"]["spec"]["containers"][0]
    assert (session["kind"], container["command"]) == ("Job", ["sleep", "infinity"])
    service = client.post(PREVIEW, FORM | {"kind": "service"}).context["form"].manifest
    assert (service["kind"], service["spec"]["replicas"]) == ("Deployment", 0)
    assert service["metadata"]["annotations"]["weir.dev/replicas"] == "2"
    assert service["metadata"]["annotations"]["weir.dev/run-time-limit"] == "50400s"
    assert client.post(SUBMIT, FORM | {"kind": "service"}).status_code == 302
    assert kube.get("/apis/apps/v1/namespaces/pretraining/deployments/probe")


def test_session_with_a_class_of_training_takes_that_of_sessions(as_user, cluster, kube):
    page = as_user("researcher").post(PREVIEW, FORM | {"command": "", "kind": "interactive"})
    labels = page.context["form"].manifest["metadata"]["labels"]
    assert labels["weir.dev/priority-class"] == "interactive"


def test_filled_in_form_has_an_address_without_what_is_secret(as_user, cluster, kube):
    client = as_user("researcher")
    form = FORM | {"env": "TOKEN=hush", "secrets": "wandb", "after": ""}
    address = client.post(PREVIEW, form).context["address"]
    query = parse_qs(urlsplit(address).query)
    assert query["command"] == [FORM["command"]]
    assert query.keys().isdisjoint({"env", "secrets", "csrfmiddlewaretoken"})
    assert "hush" not in address
    again = client.get(f"{SUBMIT}?{urlsplit(address).query}").context["form"]
    assert {name: str(again[name].value()) for name in FORM} == FORM


def test_address_cannot_bring_what_is_secret(as_user, cluster):
    form = as_user("researcher").get(f"{SUBMIT}?env=A%3Db&name=x").context["form"]
    assert (form["env"].value(), form["name"].value()) == (None, "x")


def test_work_to_start_later_is_never_said_to_start_now(as_user, cluster, kube):
    page = as_user("researcher").post(PREVIEW, FORM | {"not_before": later(cluster)})
    outlook = page.context["outlook"]
    assert not any(row.starts for row in outlook.rows)
    assert outlook.lead.head == "Not before its time"


def test_what_the_judge_refuses_is_never_said_to_start_now(as_user, cluster, kube):
    client = as_user("researcher")
    manifest = client.post(PREVIEW, FORM).context["yaml"]
    Persona.objects.update(max_run_time_s=3600)
    for address, typed in ((PREVIEW, FORM), (f"{PREVIEW}?as=manifest", {"text": manifest})):
        outlook = client.post(address, typed).context["outlook"]
        assert not any(row.starts for row in outlook.rows)
        assert (outlook.lead.tone, outlook.lead.head) == ("err", "Not allowed")
