"""The scale of a Deployment that asks for GPUs is Weir's, on an API server of its own.

A policy reads each Deployment as its parameter. An API server that has seen a policy with such parameters
deleted keeps what it knew of them for the next (its shared informer runs once), so no test may have been
there before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.scheduling.control_plane import control_plane
from tests.scheduling.kube import eventually
from tests.scheduling.manifests import template
from workshop.testbed.control_plane.plane import ControlPlane

from .people import Member, let_edit
from .test_growth import started
from .test_starts import service

Json = dict[str, Any]
SCALING = "Only Weir scales GPU work up"


@pytest.fixture
def kubernetes() -> Iterator[ControlPlane]:
    with control_plane("scale") as plane:
        yield plane


@pytest.mark.real
def test_deployment_is_scaled_up_by_weir_alone_unless_it_asks_for_no_gpus(ann: Member) -> None:
    let_edit(ann.lab, ann.person)
    path = started(ann, service(ann.lab), {"replicas": 1})
    up: Json = {"spec": {"replicas": 4}}
    eventually(
        lambda: SCALING in ann.tries_edit(f"{path}/scale", up),
        seen=lambda: ann.tries_edit(f"{path}/scale", up),
    )
    assert ann.edits(f"{path}/scale", {"spec": {"replicas": 0}}) == ""
    assert SCALING in ann.edits(f"{path}/scale", {"spec": {"replicas": 1}})
    assert ann.lab.kube.patch(f"{path}/scale", up)["spec"]["replicas"] == 4

    assert ann.creates(without_gpus(ann)) == ""
    assert ann.edits(f"{ann.path(service(ann.lab))}/cpu/scale", up) == ""


def without_gpus(ann: Member) -> Json:
    body = service(ann.lab)
    body["metadata"] = {"name": "cpu", "namespace": ann.lab.namespace}
    body["spec"] |= {"selector": {"matchLabels": {"app": "cpu"}}}
    spec = template(0)["spec"] | {"restartPolicy": "Always"}
    body["spec"]["template"] = {"metadata": {"labels": {"app": "cpu"}}, "spec": spec}
    return body
