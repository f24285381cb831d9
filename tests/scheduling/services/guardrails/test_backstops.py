"""Which limit the backstop of a namespace states, and who may work there."""

from __future__ import annotations

import pytest

from scheduling.cluster.connection.client import ApiError, Person
from scheduling.models import GpuClass, PriorityClass, Queue, Quota
from scheduling.services.clusters import guardrails
from scheduling.services.errors import ServiceError
from scheduling.services.queues import rows as policies
from scheduling.services.workloads.submit import submit
from tests.scheduling.control_plane import ON
from tests.scheduling.kube import eventually
from workshop.demo.cluster.furnish import furnish

from .lab import Lab, Pass, job


def limits(lab: Lab) -> dict[str, dict[str, int]]:
    rows = policies.load(lab.cluster, at=lab.cluster.now())
    return {n.name: dict(n.hard) for n in guardrails.rails_of(rows).namespaces}


def test_backstop_is_the_least_limit_along_the_line(lab: Lab) -> None:
    top = Queue.objects.get(name="research")
    child = Queue.objects.create(cluster=lab.cluster, parent=top, name="child", namespace="den")
    assert limits(lab)["den"] == {"nvidia.com/gpu": 12}

    own = Quota.objects.get(queue=top)
    own.pk, own.queue, own.nominal_gpus, own.borrowing_limit_gpus = None, child, 2000, 1000
    own.save()
    assert limits(lab)["den"] == {"nvidia.com/gpu": 3}


def test_queues_that_share_a_namespace_share_its_backstop(lab: Lab) -> None:
    products = Queue.objects.get(name="products")
    Queue.objects.filter(pk=products.pk).update(namespace=lab.namespace)
    assert limits(lab)[lab.namespace] == {}

    Quota.objects.filter(queue=products).update(borrowing_limit_gpus=0)
    assert limits(lab)[lab.namespace] == {"nvidia.com/gpu": 20}


def test_queue_below_another_of_the_same_namespace_counts_once(lab: Lab) -> None:
    top = Queue.objects.get(name="research")
    Queue.objects.create(cluster=lab.cluster, parent=top, name="child", namespace=lab.namespace)
    assert limits(lab)[lab.namespace] == {"nvidia.com/gpu": 12}


def test_classes_of_one_resource_are_bounded_together(lab: Lab) -> None:
    other = GpuClass.objects.create(cluster=lab.cluster, name="a100", node_labels={"gpu": "a100"})
    assert limits(lab)[lab.namespace] == {}

    own = Quota.objects.get(queue__name="research")
    own.pk, own.gpu_class, own.nominal_gpus, own.borrowing_limit_gpus = None, other, 1000, 0
    own.save()
    assert limits(lab)[lab.namespace] == {"nvidia.com/gpu": 13}


def test_devices_of_a_class_are_bounded_by_their_claims(lab: Lab, guarded: Pass) -> None:
    name = "deviceclass.resource.kubernetes.io/gpu.example.com"
    GpuClass.objects.update(resource_name=name)
    guarded()

    # GPUs of the nodes that no class lists any more are nobody's to run on.
    assert lab.hard_gpus() == {
        "gpu.example.com.deviceclass.resource.k8s.io/devices": "12",
        "requests.nvidia.com/gpu": "0",
    }


def test_furnished_cluster_lets_people_work_in_their_queues_alone(lab: Lab) -> None:
    PriorityClass.objects.all().delete()
    products = f"{lab.namespace}-products"
    Queue.objects.filter(name="products").update(namespace=products, access_group="sellers")
    furnish(lab.cluster, machines=[])

    def may_submit() -> bool:
        manifest = lab.manifest("w")
        manifest["metadata"]["namespace"] = lab.namespace
        try:
            return bool(submit(lab.cluster, manifest=manifest, user="ann"))
        except ServiceError as error:  # new rights take a moment to be known
            if error.code != "forbidden":
                raise
            return False

    eventually(may_submit)
    if ON:
        person = Person("ann", ("lab-people",))
        path = f"/apis/batch/v1/namespaces/{products}/jobs"
        with pytest.raises(ApiError, match="forbidden"):
            lab.kube.create(path, job(lab), as_person=person)


def test_group_of_a_queue_above_works_in_the_namespaces_below(lab: Lab) -> None:
    top = Queue.objects.get(name="research")
    Queue.objects.create(cluster=lab.cluster, parent=top, name="child", namespace="den")
    rows = policies.load(lab.cluster, at=lab.cluster.now())
    groups = {n.name: n.groups for n in guardrails.rails_of(rows).namespaces}
    assert groups == {lab.namespace: ("lab-people",), "den": ("lab-people",)}


def test_sharing_a_namespace_with_others_gives_no_rights_there(lab: Lab) -> None:
    Queue.objects.filter(name="products").update(namespace=lab.namespace, access_group="sellers")
    rows = policies.load(lab.cluster, at=lab.cluster.now())
    assert guardrails.rails_of(rows).namespaces[0].groups == ()
