"""The change document: what it refuses, naming field and remedy, and what it does to a snapshot."""

import pytest

from scheduling.engine.model import MILLI, Phase
from scheduling.services.studies.whatif.answers import title
from scheduling.services.studies.whatif.changes import read
from scheduling.services.studies.whatif.kinds import ChangeError
from scheduling.services.studies.whatif.now import at_once
from tests.scheduling.simulation.ahead.test_forward import H100, workload, world

QUOTA = {"kind": "quota", "queue": "speech", "gpu_class": H100, "nominal_gpus": 4}
NODES = {"kind": "capacity", "gpu_class": H100, "nodes": 1}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], "changes"),
        ("text", "changes"),
        ([{"kind": "nothing"}], "changes.0.kind"),
        ([{**QUOTA, "nominal_gpus": -1}], "changes.0.nominal_gpus"),
        ([{**QUOTA, "nominal_gpus": None}], "changes.0.nominal_gpus"),
        ([{**QUOTA, "colour": 1}], "changes.0.colour"),
        ([{"kind": "quota", "queue": "speech", "gpu_class": H100}], "changes.0.kind"),
        ([NODES, {**NODES, "nodes": 0}], "changes.1.nodes"),
        ([{**NODES, "nodes": 1.5}], "changes.0.nodes"),
        ([{**NODES, "nodes": True}], "changes.0.nodes"),
        ([{"kind": "capacity", "gpu_class": H100}], "changes.0.nodes"),
        ([{"kind": "arrival", "queue": "speech", "gpu_classes": []}], "changes.0.gpu_classes"),
        ([{"kind": "queue", "queue": "speech", "stop": "later"}], "changes.0.stop"),
        ([NODES] * 21, "changes"),
    ],
)
def test_fault_names_the_field_and_a_remedy(document, field):
    with pytest.raises(ChangeError) as caught:
        read(document)
    assert caught.value.field == field
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({**QUOTA, "queue": "nowhere"}, "changes.0.queue"),
        ({**QUOTA, "gpu_class": "t4"}, "changes.0.gpu_class"),
        ({**NODES, "nodes": -2}, "changes.0.nodes"),
        ({"kind": "policy", "setting": "mood", "value": 1}, "changes.0.setting"),
        ({"kind": "policy", "setting": "order", "value": 3}, "changes.0.value"),
        ({"kind": "policy", "setting": "backfill_quantile", "value": 1.0}, "changes.0.value"),
        ({"kind": "policy", "setting": "charge_s", "value": -1}, "changes.0.value"),
        ({"kind": "priority", "priority_class": "none", "value": 1}, "changes.0.priority_class"),
        ({"kind": "queue", "queue": "speech", "parent": ""}, "changes.0.queue"),
    ],
)
def test_name_that_is_not_there_is_refused_where_it_stands(change, field):
    with pytest.raises(ChangeError) as caught:
        read([change]).applied(world(workload("waits")))
    assert caught.value.field == field


def test_document_is_read_back_as_it_was():
    arrival = {"kind": "arrival", "queue": "speech", "gpu_classes": [H100], "run_s": 60}
    changes = read([QUOTA, NODES, arrival])
    assert changes.document()[:2] == [QUOTA, NODES]
    assert read(changes.document()) == changes


def test_quota_changes_only_what_is_stated():
    changed = read([QUOTA]).applied(world())
    quota = changed.queues[0].quotas[H100]
    assert (quota.nominal, quota.borrowing_limit, quota.weight) == (4 * MILLI, None, 1.0)


def test_node_that_is_taken_away_throws_its_work_back_into_the_line():
    changed = read([{**NODES, "nodes": -1}]).applied(
        world(workload("runs", runs_for_s=60), nodes=1)
    )
    assert changed.nodes == ()
    assert changed.workloads[0].phase is Phase.PENDING


def test_more_nodes_start_who_waits():
    snapshot = world(workload("runs", runs_for_s=60), workload("waits"))
    more = read([NODES, {**QUOTA, "nominal_gpus": 16}])
    found = at_once(snapshot, more)
    assert [line.workload for line in found.starts] == ["waits"]
    assert not found.leaves
    assert found.ready[H100] == (8 * MILLI, 16 * MILLI)


def test_arrival_waits_behind_who_waits_already():
    snapshot = world(workload("runs", runs_for_s=60), workload("waits"))
    found = at_once(snapshot, read([{"kind": "arrival", "queue": "speech", "gpu_classes": [H100]}]))
    [line] = [line for line in found.lines if line.before is None]
    assert line.after is not None
    assert not line.starts


def test_title_says_each_change():
    told = title(read([QUOTA, NODES]))
    assert told == f"speech {H100}: nominal 4; 1 node {H100} more"


def test_limits_of_users_and_sharing_of_a_queue_are_tried():
    change = read([
        {"kind": "queue", "queue": "speech", "max_running_per_user": 2, "max_gpus_per_user": 1.5,
         "sharing": "throughput"}
    ])  # fmt: skip
    (queue,) = change.applied(world()).queues
    assert (queue.max_running_per_user, queue.max_gpus_per_user) == (2, 1500)
    assert queue.sharing == "throughput"


def test_way_of_sharing_that_there_is_not_is_named():
    with pytest.raises(ChangeError, match="no way of sharing"):
        read([{"kind": "queue", "queue": "speech", "sharing": "luck"}])
