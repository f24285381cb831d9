"""Personas: kubectl is bound by them as the portal is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from portal.accounts.models import Persona, User
from portal.teams.models import Membership, Team
from scheduling.cluster.connection.client import Person
from scheduling.models import GpuClass, PriorityClass, Queue
from tests.factories import make_persona
from tests.scheduling.kube import eventually
from tests.scheduling.manifests import MANIFESTS, template
from tests.scheduling.operators import install
from tests.scheduling.services.guardrails.lab import Lab, Pass, job
from tests.scheduling.services.guardrails.test_admission import of_kind

from .people import TEAM, Member, account, let_edit
from .test_owners import owned, owner

Json = dict[str, Any]
PARAMETERS = "/api/v1/namespaces/{}/configmaps/weir-personas"


@pytest.fixture
def choice(lab: Lab) -> None:
    """A second GPU class and a second priority class from the first pass on: policies name the latter."""
    GpuClass.objects.create(cluster=lab.cluster, name="l4", node_labels={"gpu": "l4"})
    PriorityClass.objects.create(name="urgent", value=90)


@pytest.fixture
def junior(lab: Lab, choice: None, guarded: Pass, ann: Member) -> Member:
    """ann, whose persona gives her 4 GPUs of class h100 for an hour at the default priority."""
    persona = persona_of("Junior", max_gpus_per_workload=4000, max_run_time_s=3600)
    persona.gpu_classes.add(GpuClass.objects.get(name="h100"))
    persona.priority_classes.add(PriorityClass.objects.get(is_default=True))
    team = Team.objects.create(name="Research", queue=Queue.objects.get(name="research"))
    join(team, "ann", persona)
    guarded()
    eventually(lambda: "needs a run-time limit" in ann.tries(job(lab)))
    return ann


def persona_of(name: str, **fields: Any) -> Persona:
    return make_persona(name, may_submit=True, **fields)


def join(team: Team, name: str, persona: Persona) -> None:
    user, _ = User.objects.get_or_create(username=name)
    Membership.objects.create(user=user, team=team, persona=persona)


def allowed(lab: Lab, *, gpus: int = 1, **labels: str) -> Json:
    """A Job that the persona allows, unless told otherwise."""
    body = job(lab, gpus=gpus)
    body["metadata"]["labels"] |= labels
    body["spec"]["activeDeadlineSeconds"] = 3600
    return body


def test_what_the_persona_allows_is_taken(junior: Member) -> None:
    assert junior.tries(allowed(junior.lab, gpus=4)) == ""


def test_priority_class_past_the_persona_is_refused(junior: Member) -> None:
    said = "Persona Junior may not use the priority class urgent. Use one of"
    labelled = allowed(junior.lab, **{"weir.dev/priority-class": "urgent"})
    assert said in junior.tries(labelled)
    named = allowed(junior.lab)
    named["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
    eventually(lambda: said in junior.tries(named))


def test_default_priority_class_is_judged_as_well(lab: Lab, guarded: Pass, junior: Member) -> None:
    persona = Persona.objects.get(name="Junior")
    persona.priority_classes.set([PriorityClass.objects.get(name="urgent")])
    guarded()
    said = f"may not use the priority class {lab.priority}. Use one of urgent."
    eventually(lambda: said in junior.tries(allowed(lab)))


@pytest.mark.parametrize("named", ["l4", "h100, l4", "l4,h100"])
def test_gpu_class_past_the_persona_is_refused(junior: Member, named: str) -> None:
    body = allowed(junior.lab)
    body["metadata"]["annotations"]["weir.dev/gpu-classes"] = named
    said = "Persona Junior may not use the GPU class l4. Use one of h100."
    assert said in junior.tries(body)


@pytest.mark.parametrize("amount", [5, "5", "5000m", "0.005k", "5e0", "5.0"])
def test_size_past_the_persona_is_refused_however_it_is_written(
    junior: Member, amount: Any
) -> None:
    body = allowed(junior.lab)
    container = body["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": amount}}
    said = "5 GPUs are more than the 4 persona Junior may ask for. Ask for fewer GPUs per pod"
    assert said in junior.tries(body)


def test_gpus_of_init_containers_count(junior: Member) -> None:
    body = allowed(junior.lab)
    pod = body["spec"]["template"]["spec"]
    pod["initContainers"] = [pod["containers"][0] | {"name": "first"} for _ in range(1)]
    pod["initContainers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
    assert "8 GPUs are more than the 4" in junior.tries(body)
    pod["initContainers"][0] |= {"restartPolicy": "Always"}
    assert "9 GPUs are more than the 4" in junior.tries(body)


def test_run_time_past_the_persona_is_refused(junior: Member) -> None:
    remedy = "Set a limit of at most 1 h, which is 3600 s, in spec.activeDeadlineSeconds."
    body = allowed(junior.lab)
    body["spec"]["activeDeadlineSeconds"] = 3601
    assert f"3601 s is longer than persona Junior may run. {remedy}" in junior.tries(body)
    del body["spec"]["activeDeadlineSeconds"]
    assert f"Persona Junior needs a run-time limit. {remedy}" in junior.tries(body)


@pytest.mark.parametrize(
    ("limit", "taken"), [("3600", True), ("1h", True), ("61m", False), ("1h1s", False)]
)
def test_run_time_of_kinds_without_a_field_is_in_an_annotation(
    junior: Member, limit: str, taken: bool
) -> None:
    body = job(junior.lab) | {"apiVersion": "apps/v1", "kind": "Deployment"}
    body["spec"] = {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "work"}},
        "template": template(1),
    }
    place = "in the annotation weir.dev/run-time-limit."
    eventually(lambda: place in junior.tries(body))
    body["metadata"]["annotations"]["weir.dev/run-time-limit"] = limit
    assert (junior.tries(body) == "") is taken


def patch_of(path: str, value: Any) -> Json:
    first, *rest = path.split("/", 1)
    return {first: patch_of(rest[0], value) if rest else value}


EDITS: dict[str, Callable[[Lab], Json]] = {
    "priority class": lambda lab: {"metadata": {"labels": {"weir.dev/priority-class": "urgent"}}},
    "GPU class": lambda lab: {"metadata": {"annotations": {"weir.dev/gpu-classes": "l4"}}},
    "GPUs are more": lambda lab: patch_of("spec/parallelism", 5),
    "is longer": lambda lab: patch_of("spec/activeDeadlineSeconds", 7200),
    "needs a run-time": lambda lab: patch_of("spec/activeDeadlineSeconds", None),
}


@pytest.mark.parametrize("said", EDITS)
def test_nothing_is_raised_past_the_persona_in_a_second_step(junior: Member, said: str) -> None:
    assert junior.creates(allowed(junior.lab)) == ""
    path = f"{junior.path(allowed(junior.lab))}/w"
    assert said in junior.edits(path, EDITS[said](junior.lab))


@pytest.mark.parametrize("said", ["priority class", "GPU class"])
def test_nothing_is_raised_with_the_status_either(junior: Member, said: str) -> None:
    let_report(junior.lab, junior.person)
    assert junior.creates(allowed(junior.lab)) == ""
    path = f"{junior.path(allowed(junior.lab))}/w/status"
    eventually(lambda: "cannot patch" not in junior.edits(path, {"metadata": {}}))
    assert said in junior.edits(path, EDITS[said](junior.lab))


def let_report(lab: Lab, person: Person) -> None:
    rule = {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["patch"]}
    root = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{lab.namespace}"
    lab.kube.create(f"{root}/roles", {"metadata": {"name": "reporter"}, "rules": [rule]})
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": person.name}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reporter"}
    body = {"metadata": {"name": "reporter"}, "roleRef": role, "subjects": [subject]}
    lab.kube.create(f"{root}/rolebindings", body)


def test_what_no_persona_bounds_can_be_edited_by_all(lab: Lab, junior: Member) -> None:
    assert junior.creates(allowed(lab)) == ""
    bob = Member(lab, Person("bob", TEAM))
    path = f"{junior.path(allowed(lab))}/w"
    hold = {"metadata": {"annotations": {"weir.dev/hold": "true"}}}
    release = {"metadata": {"annotations": {"weir.dev/hold": None}}}
    for member in (junior, bob):
        assert member.edits(path, hold) == ""
        assert member.edits(path, release) == ""


@pytest.mark.parametrize("name", ["bob", "an", "nn", "0 ann", "system:serviceaccount:default:x"])
def test_who_has_no_persona_submits_nothing(lab: Lab, junior: Member, name: str) -> None:
    stranger = Member(lab, Person(name, TEAM))
    said = "You may not submit to the queue research. Ask the lead of its team to add you."
    assert said in stranger.tries(allowed(lab))


def test_most_generous_of_several_personas_counts(lab: Lab, guarded: Pass, junior: Member) -> None:
    root = Team.objects.create(name="All", queue=Queue.objects.get(name="root"))
    join(root, "ann", persona_of("Senior", max_gpus_per_workload=12000))
    guarded()
    eventually(lambda: junior.tries(job(lab, gpus=12)) == "")
    assert "13 GPUs are more than the 12 persona Senior" in junior.tries(job(lab, gpus=13))


def test_work_of_a_controller_and_who_acts_for_weir_are_not_bound(lab: Lab, junior: Member) -> None:
    lab.kube.create(junior.path(job(lab)), job(lab, gpus=8))
    body = owned(job(lab, gpus=8), owner("batch/v1", "CronJob"))
    body["metadata"]["name"] = "child"
    cron = Member(lab, account("kube-system", "cronjob-controller"))
    assert cron.tries(body) == ""


def test_members_do_not_write_the_parameters(lab: Lab, junior: Member) -> None:
    path = PARAMETERS.format(lab.namespace)
    let_edit(lab, junior.person)
    refused = "Only Weir writes weir-personas."
    more = {"data": {"personas": "0 * * * * * * Me"}}
    eventually(lambda: refused in junior.tries_edit(path, more))
    assert refused in junior.edits(path, more)
    assert refused in junior.deletes(path)
    body = lab.kube.get(path)
    lab.kube.delete(path)
    bare = {"metadata": {"name": "weir-personas", "namespace": lab.namespace}}
    assert refused in junior.creates({"kind": "ConfigMap", **bare, "data": body["data"]})
    other = {"metadata": {"name": "mine", "namespace": lab.namespace}}
    assert junior.creates({"kind": "ConfigMap", **other, "data": {"a": "1"}}) == ""


def test_parameters_from_before_are_taken_over(lab: Lab, guarded: Pass, junior: Member) -> None:
    path = PARAMETERS.format(lab.namespace)
    lab.kube.delete(path)
    forged = {"queue.research": "0 ann", "personas": "0 * * * * * * Me"}
    meta = {"metadata": {"name": "weir-personas"}}
    lab.kube.request(
        "POST", path.rpartition("/")[0], query={"fieldManager": "ann"}, body=meta | {"data": forged}
    )
    guarded()
    assert lab.kube.get(path)["data"]["personas"].endswith("Junior")


def test_persona_that_changes_reaches_the_namespace(
    lab: Lab, guarded: Pass, junior: Member
) -> None:
    Persona.objects.filter(name="Junior").update(max_gpus_per_workload=8000)
    guarded()
    eventually(lambda: junior.tries(allowed(lab, gpus=8)) == "")
    Membership.objects.all().delete()
    guarded()
    eventually(lambda: "You may not submit" in junior.tries(allowed(lab)))
    Team.objects.all().delete()
    guarded()
    eventually(lambda: junior.tries(job(lab, gpus=12)) == "")


GPUS = {
    "Deployment": 2,
    "JobSet": 2,
    "LeaderWorkerSet": 2,
    "MPIJob": 2,
    "PaddleJob": 2,
    "PyTorchJob": 2,
    "RayCluster": 2,
    "RayJob": 2,
    "TrainJob": 2,
}


def test_size_of_every_kind_is_counted(lab: Lab, guarded: Pass, junior: Member) -> None:
    install(lab.kube)
    Persona.objects.update(max_gpus_per_workload=1000, max_run_time_s=None)
    guarded()
    for kind in sorted(MANIFESTS):
        said = f"{GPUS[kind]} GPUs are more than the 1 persona Junior"
        body = of_kind(lab, kind)
        # What was allowed before asks for a run-time limit, until the new parameters are read.
        eventually(
            lambda said=said, body=body: said in junior.tries(body),
            seen=lambda kind=kind, body=body: f"{kind}: {junior.tries(body)}",
        )
        assert junior.tries(MANIFESTS[kind]("w", gpus=0) | {"metadata": body["metadata"]}) == "", (
            kind
        )


def test_five_hundred_people_are_judged_within_the_budget_of_the_server(
    lab: Lab, guarded: Pass, junior: Member
) -> None:
    team, many = Team.objects.get(), persona_of("Many")
    users = User.objects.bulk_create(
        User(username=f"person-{i:03}@example.org") for i in range(500)
    )
    Membership.objects.bulk_create(Membership(user=u, team=team, persona=many) for u in users)
    guarded()
    last = Member(lab, Person("person-499@example.org", TEAM))
    eventually(lambda: last.tries(job(lab, gpus=8)) == "")
    assert "You may not submit" in Member(lab, Person("person-500@example.org", TEAM)).tries(
        job(lab)
    )
