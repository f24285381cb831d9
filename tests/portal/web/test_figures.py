"""The overview's figures against the example organisation."""

import pytest

from portal.accounts.models import User
from portal.selectors import overview as figures
from portal.selectors.losses import lost_by, lost_in
from portal.web.frame.division import shares_of, tree_of
from scheduling.models import Eviction, Node, Queue, Share, State, Workload
from tests.factories import NOW, make_workload

pytestmark = pytest.mark.django_db
G = 1000


def h100(cluster):
    return cluster.gpu_classes.get(name="h100-80gb")


def capacity_of(cluster, name="h100-80gb"):
    classes = cluster.gpu_classes.all()
    return next(one for one in figures.capacity(cluster, classes) if one.gpu_class.name == name)


def tree_for(cluster, name):
    user = User.objects.get(username=name)
    shares = shares_of(cluster)[h100(cluster).pk]
    return figures.tree(cluster, user, capacity_of(cluster), tree_of(cluster), shares)


def test_parts_of_capacity_add_up_to_what_is_installed(cluster):
    for one in figures.capacity(cluster, cluster.gpu_classes.all()):
        assert sum(amount for _, amount in one.parts) == one.installed


def test_capacity_counts_down_nodes_apart(cluster):
    one = capacity_of(cluster)
    assert (one.installed, one.allocated, one.down) == (128 * G, 114 * G, 8 * G)
    assert (one.nodes, one.nodes_down) == (16, 1)


def test_pods_outside_the_queues_are_not_free(cluster):
    Node.objects.filter(cluster=cluster, name="a100-01").update(foreign_gpus=3 * G)
    one = capacity_of(cluster, "a100-40gb")
    assert (one.foreign, one.free + one.fragmented) == (3 * G, 85 * G)


def free_alone(cluster, gpus):
    """Every h100 node full but one, which has ``gpus`` free."""
    nodes = Node.objects.filter(cluster=cluster, gpu_class=h100(cluster))
    nodes.update(allocated_gpus=8 * G)
    nodes.filter(name="h100-01").update(allocated_gpus=(8 - gpus) * G)


def test_free_gpus_that_the_smallest_waiting_member_fits_are_free(cluster):
    free_alone(cluster, 4)
    assert (capacity_of(cluster).free, capacity_of(cluster).fragmented) == (4 * G, 0)


def test_free_gpus_too_few_for_any_waiting_member_are_fragmented(cluster):
    free_alone(cluster, 3)
    assert (capacity_of(cluster).free, capacity_of(cluster).fragmented) == (0, 3 * G)


def test_member_that_waits_for_another_class_makes_nothing_usable(cluster):
    free_alone(cluster, 3)
    make_workload(Queue.objects.get(name="ci"), gpus=1 * G, gpu_classes=["l4"])
    assert capacity_of(cluster).fragmented == 3 * G


def test_typical_running_member_counts_where_nothing_waits(cluster):
    Workload.objects.filter(cluster=cluster, state__in=("pending", "requeued")).delete()
    free_alone(cluster, 6)
    assert capacity_of(cluster).fragmented == 6 * G
    free_alone(cluster, 8)
    assert capacity_of(cluster).fragmented == 0


def test_work_that_a_quota_stops_makes_nothing_usable(cluster):
    free_alone(cluster, 3)
    ci = Queue.objects.get(name="ci")
    make_workload(ci, gpus=1 * G, gpu_classes=["h100-80gb"], reason="at_limit")
    make_workload(ci, gpus=4 * G, gpu_classes=["h100-80gb"], reason="fragmented")
    assert (capacity_of(cluster).free, capacity_of(cluster).fragmented) == (0, 3 * G)


def test_small_work_that_runs_frees_nothing_for_what_waits(cluster):
    Workload.objects.filter(cluster=cluster, state__in=("pending", "requeued")).delete()
    ci = Queue.objects.get(name="ci")
    for _ in range(200):
        make_workload(ci, gpus=1 * G, gpu_classes=["h100-80gb"], state=State.RUNNING)
    make_workload(ci, gpus=8 * G, gpu_classes=["h100-80gb"], reason="fragmented")
    free_alone(cluster, 6)
    assert capacity_of(cluster).fragmented == 6 * G


def test_slices_are_sevenths_in_the_sum_over_classes(cluster):
    together = figures.sums(figures.capacity(cluster, cluster.gpu_classes.all()))
    assert together.installed == 312 * G
    assert together.down == 12 * G


def test_operator_sees_all_queues_depth_first_on_one_axis(cluster):
    tree = tree_for(cluster, "admin")
    names = [row.queue.name for row in tree.rows]
    assert names[:5] == ["research", "language", "pretraining", "alignment", "vision"]
    assert len(names) == 16
    assert [row.depth for row in tree.rows[:4]] == [0, 1, 2, 2]
    assert tree.axis.end == 96 * G


def test_total_closes_the_sum(cluster):
    total = tree_for(cluster, "admin").total
    assert (total.allocated, total.fair_share, total.pending) == (114 * G, 118 * G, 60 * G)
    assert total.fair_share + total.kept_back + total.unclaimed == total.ready == 120 * G


def test_what_is_kept_back_is_named_by_the_lowest_queue_that_keeps_it(cluster):
    Share.objects.filter(queue__name__in=("platform", "inference")).update(kept_back=2 * G)
    total = tree_for(cluster, "admin").total
    assert total.keepers == ["platform/inference"]
    assert (total.kept_back, total.unclaimed) == (2 * G, 0)


def test_what_is_kept_back_out_of_sight_is_not_told_of_a_queue_in_sight(cluster):
    Share.objects.filter(queue__name__in=("platform", "inference")).update(kept_back=2 * G)
    Share.objects.filter(queue__name="fra1").update(kept_back=2 * G)
    assert tree_for(cluster, "m.okafor").total.keepers == ["other teams"]
    for name in ("research", "language", "pretraining"):
        Share.objects.filter(queue__name=name).update(kept_back=G)
    assert tree_for(cluster, "m.okafor").total.keepers == [
        "research/language/pretraining",
        "other teams",
    ]


def test_researcher_sees_own_queue_and_those_above_it_and_the_whole_total(cluster):
    tree = tree_for(cluster, "m.okafor")
    assert [row.queue.name for row in tree.rows] == ["research", "language", "pretraining"]
    assert tree.total.allocated == 114 * G


def test_queue_without_division_yet_shows_zeros(cluster):
    Share.objects.all().delete()
    tree = tree_for(cluster, "admin")
    assert {row.figures.allocated for row in tree.rows} == {0}


def test_wait_of_requeued_work_counts_from_its_last_eviction(cluster):
    admin = User.objects.get(username="admin")
    waits = figures.longest_waits(cluster, admin, count=50)
    evicted = next(work for work in waits if work.name == "pt-13b-ctx32k")
    assert (NOW - evicted.since).total_seconds() == pytest.approx(9840 - 30, abs=1)
    assert [work.since for work in waits] == sorted(work.since for work in waits)


def test_waiting_counts_everybody_and_lists_only_what_one_may_see(cluster):
    someone = User.objects.get(username="p.rossi")
    assert figures.waiting(cluster, cluster.gpu_classes.all()).count == 9
    assert {work.queue.name for work in figures.longest_waits(cluster, someone)} == {"search"}


def test_waiting_slices_count_the_part_of_a_gpu_that_they_are(cluster):
    before = figures.waiting(cluster, cluster.gpu_classes.all()).gpus
    vision = cluster.queues.get(name="vision")
    make_workload(vision, gpus=G, min_members=14, gpu_classes=["a100-mig-1g.5gb"])
    assert figures.waiting(cluster, cluster.gpu_classes.all()).gpus - before == pytest.approx(2 * G)


def test_work_lost_on_slices_counts_the_part_of_a_gpu_that_they_are(cluster):
    admin = User.objects.get(username="admin")
    queue = cluster.queues.get(name="vision")
    for gpu_class in cluster.gpu_classes.filter(name__in=["h100-80gb", "a100-mig-1g.5gb"]):
        Eviction.objects.create(
            workload=make_workload(queue), at=cluster.now(), rule="reclaim", gpus=1000,
            queue=queue, gpu_class=gpu_class, lost_gpu_s=7000,
        )  # fmt: skip
    mine = Eviction.objects.filter(queue=queue)
    assert lost_in(mine) == (2, pytest.approx(8000))
    seen = figures.last_evictions(cluster, admin)
    assert seen.lost_gpu_s == pytest.approx(lost_in(Eviction.objects.all())[1])
    assert sorted(lost_by(one) for one in mine) == [pytest.approx(1000), pytest.approx(7000)]


def test_evictions_of_strangers_are_not_listed(cluster):
    assert figures.last_evictions(cluster, User.objects.get(username="p.rossi")).rows == []
    lead = figures.last_evictions(cluster, User.objects.get(username="lead"))
    assert (lead.today, lead.lost_gpu_s) == (1, 7.5 * 3600)


def test_winner_sees_the_eviction_but_may_not_open_the_victim(cluster):
    seen = figures.last_evictions(cluster, User.objects.get(username="s.marchetti"))
    assert len(seen.rows) == 1
    assert seen.visible == {Eviction.objects.get().for_workload_id}


def test_finished_work_neither_waits_nor_sizes_the_free_gpus(cluster):
    queue = Queue.objects.get(name="ci")
    make_workload(queue, state=State.FINISHED, gpus=1 * G, finished_at=NOW)
    free_alone(cluster, 3)
    assert capacity_of(cluster).fragmented == 3 * G
