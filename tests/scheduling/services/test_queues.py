"""The doors of the queue tree: what each refuses, at which field, and that nothing is half done."""

import pytest

from scheduling.models import Cluster, Queue, State, Stop, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.queues.tree import (
    Bounds,
    change_queue,
    create_queue,
    delete_queue,
    subtree,
)
from tests.factories import example_cluster, make_user
from workshop.demo.organisation import H100

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    return example_cluster()


@pytest.fixture
def queue(cluster):
    return lambda name: cluster.queues.get(name=name)


def refusal(verb, **fields):
    with pytest.raises(ServiceError) as error:
        verb(**{"author": None, **fields})
    return error.value


def idle(queue):
    Workload.objects.filter(queue=queue).update(state=State.FINISHED, members=0)
    return queue


def test_new_queue_stands_last_below_its_parent(cluster, queue):
    author = make_user("lead-2")

    made = create_queue(parent=queue("products"), name="maps", author=author, priority=2)

    assert made.path == "products/maps"
    assert [q.name for q, _ in subtree(queue("products"))][-1] == "maps"
    assert made.history.first().history_user == author
    assert Cluster.objects.get().revision == cluster.revision + 1


@pytest.mark.parametrize("name", ["", "Maps", "a b", "a/b", "-a", "a" * 64, "é"])
def test_malformed_name_is_refused_at_name(queue, name):
    error = refusal(create_queue, parent=queue("products"), name=name)

    assert error.field == "name"


def test_name_taken_elsewhere_in_the_cluster_is_refused_at_name(queue):
    error = refusal(create_queue, parent=queue("products"), name="vision")

    assert (error.field, error.sentence) == ("name", "fra1 has a queue named vision.")


def test_child_below_a_queue_that_holds_workloads_is_refused_at_parent(queue):
    error = refusal(create_queue, parent=queue("pretraining"), name="small")

    assert (error.code, error.field) == ("parent_holds_workloads", "parent")


def test_rename_carries_the_paths_below(queue):
    change_queue(queue=queue("language"), author=None, name="text")

    assert queue("pretraining").path == "research/text/pretraining"


def test_rename_while_workloads_carry_the_name_is_refused(queue):
    error = refusal(change_queue, queue=queue("vision"), name="sight")

    assert (error.code, error.field) == ("name_in_use", "name")
    assert queue("vision").name == "vision"


def test_rename_of_an_idle_queue_passes(queue):
    change_queue(queue=idle(queue("vision")), author=None, name="sight")

    assert queue("sight").path == "research/sight"


@pytest.mark.parametrize("target", ["research", "language", "alignment"])
def test_cycle_in_the_tree_is_refused_at_parent(queue, target):
    error = refusal(change_queue, queue=queue("research"), parent=queue(target))

    assert error.field == "parent"
    assert error.sentence
    assert error.remedy == "Choose a queue outside it."
    assert queue("research").parent.is_root


def test_move_to_another_cluster_is_refused_at_parent(queue):
    other = Cluster.objects.create(name="ams1")
    root = Queue.objects.create(cluster=other, name="ams1")

    error = refusal(change_queue, queue=queue("vision"), parent=root)

    assert error.field == "parent"


def test_move_that_breaks_the_new_parents_sum_is_refused_at_parent(queue):
    error = refusal(change_queue, queue=queue("vision"), parent=queue("products"))

    assert error.field == "parent"
    assert error.sentence == f"products was given 32 {H100} and its queues would hold 48."
    assert error.remedy == "Lower vision by 16 first, or raise products."


def test_move_to_the_root_carries_paths(queue):
    change_queue(queue=queue("language"), author=None, parent=queue("fra1"))

    assert queue("pretraining").path == "language/pretraining"


def test_priority_and_stop_change_together(queue):
    change_queue(queue=queue("vision"), author=None, priority=-3, stop=Stop.HOLD)

    assert (queue("vision").priority, queue("vision").stop) == (-3, "hold")


def test_priority_out_of_range_is_refused_at_priority(queue):
    error = refusal(change_queue, queue=queue("vision"), priority=40_000)

    assert error.field == "priority"


def test_root_is_refused(queue):
    assert refusal(change_queue, queue=queue("fra1"), name="x").code == "root"
    assert refusal(delete_queue, queue=queue("fra1")).code == "root"


@pytest.mark.parametrize(
    ("name", "code"), [("language", "has_children"), ("vision", "has_workloads")]
)
def test_queue_that_is_not_empty_is_not_deleted(queue, name, code):
    assert refusal(delete_queue, queue=queue(name)).code == code


def test_queue_of_a_team_is_not_deleted(queue):
    Workload.objects.filter(queue__name="robotics").delete()

    assert refusal(delete_queue, queue=queue("robotics")).code == "has_team"


def test_empty_queue_is_deleted_and_its_history_stays(queue):
    made = create_queue(parent=queue("products"), name="maps", author=None)
    pk = made.pk

    delete_queue(queue=made, author=None)

    assert not Queue.objects.filter(pk=pk).exists()
    assert Queue.history.filter(id=pk, history_type="-").exists()


@pytest.mark.parametrize(
    ("field", "value"), [("pod_security", "lax"), ("max_cpus", -1), ("max_pods", 2**31)]
)
def test_bounds_out_of_range_are_refused_at_their_field(queue, field, value):
    error = refusal(change_queue, queue=queue("vision"), bounds=Bounds(**{field: value}))

    assert error.field == field


def test_bounds_of_a_new_queue_are_kept(queue):
    bounds = Bounds(pod_security="restricted", max_cpus=8000, max_memory_mib=1024, max_pods=3)
    made = create_queue(parent=queue("products"), name="maps", author=None, bounds=bounds)

    found = Queue.objects.get(pk=made.pk)
    assert (found.pod_security, found.max_cpus, found.max_memory_mib) == ("restricted", 8000, 1024)
