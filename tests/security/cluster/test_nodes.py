"""Nodes: people do not put pods on nodes past the scheduler, which counts what a node has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduling.kube import eventually
from tests.scheduling.manifests import template
from tests.scheduling.services.guardrails.lab import Lab

from .people import Member, account
from .test_priority import cpu_job, cpu_pod

Json = dict[str, Any]
REFUSED = "Where work runs is for Weir and the scheduler to say. Leave nodeName out."


def test_pod_that_names_its_node_is_refused(ann: Member) -> None:
    assert REFUSED in ann.tries(cpu_pod(ann.lab, nodeName="n1"))


def test_template_that_names_a_node_is_refused(ann: Member) -> None:
    assert REFUSED in ann.tries(cpu_job(ann.lab, nodeName="n1"))


def test_node_cannot_be_named_in_a_second_step(ann: Member) -> None:
    body = cpu_job(ann.lab) | {"apiVersion": "apps/v1", "kind": "Deployment"}
    body["spec"] = {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "work"}},
        "template": template(0),
    }
    assert ann.creates(body) == ""
    named = {"spec": {"template": {"spec": {"nodeName": "n1"}}}}
    assert REFUSED in ann.edits(f"{ann.path(body)}/w", named)


def test_account_of_the_namespace_names_no_node_either(lab: Lab, ann: Member) -> None:
    robot = Member(lab, account(lab.namespace, "default"))
    assert robot.tries(cpu_pod(lab, nodeName="n1")) != ""


def test_scheduler_binds_and_pods_that_stand_somewhere_can_be_labelled(ann: Member) -> None:
    body = cpu_pod(ann.lab)
    assert ann.creates(body) == ""
    path = f"{ann.path(body)}/p"
    eventually(lambda: ann.lab.kube.get(path)["spec"].get("nodeName"))
    assert ann.edits(path, {"metadata": {"labels": {"mine": "1"}}}) == ""


@pytest.mark.real
def test_daemon_sets_still_reach_every_node(ann: Member) -> None:
    body = cpu_job(ann.lab) | {"apiVersion": "apps/v1", "kind": "DaemonSet"}
    body["metadata"]["name"] = "every"
    body["spec"] = {"selector": {"matchLabels": {"app": "work"}}, "template": template(0)}
    path = f"/apis/apps/v1/namespaces/{ann.lab.namespace}/daemonsets"
    ann.lab.kube.create(path, body)
    eventually(lambda: ann.lab.kube.get(f"{path}/every")["status"].get("numberReady", 0) >= 2)
    ann.lab.kube.delete(f"{path}/every")
