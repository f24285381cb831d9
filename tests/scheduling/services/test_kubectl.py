"""Command lines of the workload page, by kind and state."""

import pytest

from scheduling.models import State, Workload, WorkloadType
from scheduling.services.workloads.kubectl import commands_for


def said(**fields):
    work = Workload(**{"kind": "Job", "namespace": "vision", "name": "probe", **fields})
    return {command.what: command.text for command in commands_for(work)}


def test_waiting_work_has_no_logs():
    assert set(said(state=State.PENDING)) == {"Describe", "Events"}


@pytest.mark.parametrize(
    ("kind", "pods"),
    [
        ("Job", "job/probe"),
        ("Deployment", "deployment/probe"),
        ("JobSet", "-l jobset.sigs.k8s.io/jobset-name=probe"),
        ("PodGroup", "-l weir.dev/pod-group=probe"),
    ],
)
def test_logs_are_those_of_all_its_pods(kind, pods):
    logs = said(kind=kind, state=State.RUNNING)["Logs"]
    assert logs == f"kubectl -n vision logs {pods} --all-containers --prefix --tail=200"


def test_group_of_plain_pods_is_described_by_its_pods():
    described = said(kind="PodGroup", state=State.PENDING)["Describe"]
    assert described == "kubectl -n vision describe pods -l weir.dev/pod-group=probe"


def test_shell_leads_into_interactive_work_that_runs_and_no_other():
    interactive = {"type": WorkloadType.INTERACTIVE, "state": State.RUNNING}
    assert said(**interactive)["Shell"] == "kubectl -n vision exec -it job/probe -- sh"
    assert "get pods -l ray.io/cluster=probe" in said(**interactive, kind="RayCluster")["Shell"]
    assert "Shell" not in said(state=State.RUNNING, type=WorkloadType.TRAINING)
    assert "Shell" not in said(state=State.PENDING, type=WorkloadType.INTERACTIVE)
