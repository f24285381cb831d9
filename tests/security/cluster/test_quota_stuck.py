"""A quota that others of the namespace used up: no GPUs are kept for a gang whose pods it would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.models import Queue, State
from tests.scheduling.kube import eventually
from tests.scheduling.services.guardrails.lab import Lab, Pass

Json = dict[str, Any]


def gang(lab: Lab, name: str, *, gpus: int = 4, pods: int = 2, cpu: str = "16") -> None:
    body = lab.manifest(name, gpus=gpus, pods=pods)
    body["metadata"]["namespace"] = lab.namespace
    container = body["spec"]["template"]["spec"]["containers"][0]
    container["resources"].setdefault("requests", {})["cpu"] = cpu
    lab.kube.create(f"/apis/batch/v1/namespaces/{lab.namespace}/jobs", body)


def waiting(lab: Lab, name: str) -> bool:
    path = f"/apis/batch/v1/namespaces/{lab.namespace}/jobs/{name}"
    return bool(lab.kube.get(path)["spec"]["suspend"])


@pytest.fixture
def bounded(lab: Lab, guarded: Pass) -> Lab:
    """The namespace may request 40 CPUs and 6 pods."""
    Queue.objects.filter(name="research").update(max_cpus=40_000, max_pods=6)
    guarded()
    eventually(lambda: lab.kube.get(lab.quota).get("status", {}).get("used"))
    return lab


def flood(lab: Lab, cpu: str, pods: int = 1) -> None:
    resources = {"requests": {"cpu": cpu}}
    for number in range(pods):
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"flood-{number}"},
            "spec": {"containers": [{"name": "main", "image": "work", "resources": resources}]},
        }
        lab.kube.create(f"{lab.home}/pods", body)


def test_gang_within_the_quota_starts(bounded: Lab) -> None:
    gang(bounded, "fits")
    bounded.cycles_until(lambda: bounded.row("fits").state == State.RUNNING)


def test_gang_past_the_quota_waits_with_the_numbers(bounded: Lab) -> None:
    gang(bounded, "wide", cpu="24")
    bounded.cycle()
    assert waiting(bounded, "wide")
    space = bounded.namespace
    said = (
        f"The quota of namespace {space} leaves 40 CPUs of 40 CPUs, and its pods ask for 48 CPUs."
    )
    assert bounded.row("wide").sentence == said
    bounded.cycle()
    assert "The cluster refuses to start it: The quota of namespace" in bounded.row("wide").sentence
    assert waiting(bounded, "wide")


def test_gang_waits_while_other_pods_use_the_quota_up(bounded: Lab) -> None:
    flood(bounded, "20")
    gang(bounded, "late")
    bounded.cycle()
    assert "leaves 20 CPUs of 40 CPUs" in bounded.row("late").sentence
    assert waiting(bounded, "late")

    bounded.kube.delete(f"{bounded.home}/pods/flood-0", {"gracePeriodSeconds": 0})
    bounded.cycles_until(lambda: bounded.row("late").state == State.RUNNING)


def test_gangs_of_one_cycle_do_not_pass_the_quota_together(bounded: Lab) -> None:
    for name in ("first", "second"):
        gang(bounded, name, gpus=2)
    bounded.cycle()
    assert [waiting(bounded, "first"), waiting(bounded, "second")].count(True) == 1
    bounded.cycles_until(
        lambda: State.RUNNING in {bounded.row(n).state for n in ("first", "second")}
    )
    bounded.cycle()
    assert [waiting(bounded, "first"), waiting(bounded, "second")].count(True) == 1


def test_smaller_gang_goes_before_one_that_the_quota_refuses(bounded: Lab) -> None:
    gang(bounded, "wide", gpus=8, pods=1, cpu="48")
    gang(bounded, "small", gpus=8, pods=1, cpu="8")
    bounded.cycles_until(lambda: bounded.row("small").state == State.RUNNING)
    assert waiting(bounded, "wide")


def test_number_of_pods_is_a_bound_as_well(bounded: Lab) -> None:
    flood(bounded, "1m", pods=5)
    gang(bounded, "pair", cpu="1")
    bounded.cycle()
    assert "leaves 1 pod of 6 pods, and its pods ask for 2 pods" in bounded.row("pair").sentence
