"""The portal acts in people's names; nobody's name makes it act as a part of the cluster."""

from __future__ import annotations

import pytest

from scheduling.models import Queue
from scheduling.services.errors import ServiceError
from scheduling.services.queues.tree import change_queue
from scheduling.services.workloads import submit as workloads
from tests.scheduling.kube import World


def jobs(world: World) -> list[object]:
    return world.kube.get("/apis/batch/v1/namespaces/default/jobs")["items"]


@pytest.mark.parametrize(
    "name", ["system:admin", "system:serviceaccount:kube-system:job-controller"]
)
def test_person_named_as_a_part_of_the_cluster_does_not_act_as_it(world: World, name: str) -> None:
    with pytest.raises(ServiceError) as refused:
        workloads.submit(world.cluster, manifest=world.manifest("w1"), user=name)
    assert refused.value.code == "reserved_user"
    assert not jobs(world)


@pytest.mark.parametrize("group", ["system:masters", "system:authenticated"])
def test_queue_gives_nobody_a_group_of_the_clusters_own(world: World, group: str) -> None:
    research = Queue.objects.get(name="research")
    with pytest.raises(ServiceError) as refused:
        change_queue(queue=research, author=None, access_group=group)
    assert refused.value.field == "access_group"


@pytest.mark.parametrize("name", ["j.müller", "李娜"])
def test_person_of_any_alphabet_acts_in_their_own_name(world: World, name: str) -> None:
    made = workloads.submit(world.cluster, manifest=world.manifest("w1"), user=name)
    assert made["metadata"]["annotations"]["weir.dev/user"] == name
    world.cycles_until(lambda: world.row("w1").user == name)


def test_name_that_begins_another_header_is_no_name(world: World) -> None:
    with pytest.raises(ServiceError):
        workloads.submit(
            world.cluster,
            manifest=world.manifest("w1"),
            user="ann\r\nImpersonate-Group: system:masters",
        )
    assert not jobs(world)
