"""The map of nodes and a node's page, as different people see them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test.utils import CaptureQueriesContext

from portal.web.nodes.ages import age_of
from scheduling.models import Node, Workload
from tests.factories import NOW

pytestmark = pytest.mark.django_db


def text_of(client, path="/c/fra1/nodes/"):
    return client.get(path).content.decode()


def test_operator_sees_every_rack_and_whose_each_gpu_is(cluster, as_user):
    text = text_of(as_user("admin"))
    racks = {node.topology.get("rack") for node in Node.objects.filter(cluster=cluster)}
    assert all(f"?domain={rack}" in text for rack in racks if rack)
    running = Workload.objects.filter(cluster=cluster, state="running").first()
    assert f"/c/fra1/w/{running.uid}/" in text


def test_member_sees_what_others_hold_without_a_name(cluster, as_user):
    text = text_of(as_user("p.rossi"))
    others = Workload.objects.filter(cluster=cluster).exclude(queue__path__startswith="products")
    assert "held by work of another team" in text
    assert not any(work.name in text or f"/{work.uid}/" in text for work in others)
    assert "pretraining" not in text


def test_class_and_domain_of_the_address_narrow_what_is_drawn(cluster, as_user):
    client = as_user("admin")
    assert 'id="room-l4"' not in text_of(client, "/c/fra1/nodes/?class=h100-80gb")
    narrowed = text_of(client, "/c/fra1/nodes/?domain=a1")
    assert "h100-01" in narrowed
    assert "h100-09" not in narrowed


def lead_of(client, query):
    told = text_of(client, f"/c/fra1/nodes/{query}").split('id="lead"')[1].split("</p>")[0]
    return " ".join(re.sub("<[^>]+>", " ", told.split(">", 1)[1]).split())


def test_filter_leaves_the_sentence_on_all_nodes_as_it_is_and_says_how_many_are_chosen(
    cluster, as_user
):
    client = as_user("admin")
    Node.objects.filter(cluster=cluster, name="h100-01").update(ready=False)
    whole = lead_of(client, "?class=h100-80gb")
    chosen = lead_of(client, "?class=h100-80gb&state=down")
    assert chosen.split(".")[0] == whole.split(".")[0]
    assert "Chosen of these" not in whole
    assert "Chosen of these: 2 nodes , down." in chosen


def test_consolidation_and_fragmentation_stand_beside_the_map_of_who_operates(cluster, as_user):
    beside = 'aria-label="Consolidation and fragmentation"'
    page = as_user("admin").get("/c/fra1/nodes/")
    assert beside in page.content.decode()
    assert 'hx-get="/c/fra1/consolidation/"' in page.content.decode()
    rooms = page.context["rooms"]
    assert (
        page.context["most_fragmented"]
        == max(rooms, key=lambda room: room.capacity.fragmented).gpu_class
    )
    for room in rooms:
        held = room.capacity.allocated + room.capacity.foreign + room.capacity.down
        assert room.unheld + held == room.capacity.installed
    assert beside not in as_user("p.rossi").get("/c/fra1/nodes/").content.decode()


def test_class_that_is_not_there_is_absent(cluster, as_user):
    assert as_user("admin").get("/c/fra1/nodes/?class=nothing").status_code == 404


def test_node_page_lists_the_work_that_one_may_see(cluster, as_user):
    work = Workload.objects.filter(cluster=cluster, state="running").exclude(placement={}).first()
    node = next(iter(work.placement))
    assert work.name in text_of(as_user("admin"), f"/c/fra1/nodes/{node}/")
    stranger = text_of(as_user("p.rossi"), f"/c/fra1/nodes/{node}/")
    assert work.name not in stranger
    assert "Nothing of yours runs here" in stranger


def test_node_that_is_not_there_is_absent(cluster, as_user):
    assert as_user("admin").get("/c/fra1/nodes/nowhere/").status_code == 404


def test_node_that_takes_no_work_says_what_to_look_at(cluster, as_user):
    Node.objects.filter(cluster=cluster, name="h100-01").update(ready=False)
    text = text_of(as_user("admin"), "/c/fra1/nodes/h100-01/")
    assert "kubectl describe node h100-01" in text


def test_queries_do_not_grow_with_nodes(cluster, as_user):
    from django.db import connection

    client = as_user("admin")
    with CaptureQueriesContext(connection) as few:
        text_of(client)
    gpu_class = cluster.gpu_classes.first()
    Node.objects.bulk_create(
        Node(cluster=cluster, gpu_class=gpu_class, name=f"more-{i}", gpus=8000) for i in range(30)
    )
    with CaptureQueriesContext(connection) as many:
        text_of(client)
    assert len(many) == len(few)


def test_tiles_are_coloured_by_how_long_work_has_run_where_that_is_asked(cluster, as_user):
    client = as_user("admin")
    Workload.objects.filter(cluster=cluster).update(started_at=cluster.now() - timedelta(days=2))
    assert "running 1 to 7 d" not in text_of(client)
    text = text_of(client, "/c/fra1/nodes/?colour=age&class=h100-80gb")
    assert "age-2" in text
    assert ", running 1 to 7 d" in text
    assert client.get("/c/fra1/nodes/?colour=quokka").status_code == 404


@pytest.mark.parametrize(
    ("hours", "place"), [(None, 0), (0.9, 0), (1, 1), (23, 1), (24, 2), (167, 2), (168, 3)]
)
def test_age_is_the_step_that_the_run_has_reached(hours, place):
    started = NOW - timedelta(hours=hours) if hours is not None else None
    assert age_of(started, NOW) == place


def test_gpus_kept_for_work_that_waits_are_framed_for_whoever_may_see_it(cluster, as_user):
    waits = Workload.objects.filter(cluster=cluster, state="pending", queue__isnull=False).first()
    node = Node.objects.filter(cluster=cluster, ready=True, allocated_gpus=0).first()
    node = node or Node.objects.filter(cluster=cluster, ready=True).first()
    Workload.objects.filter(cluster=cluster, placement__has_key=node.name).update(placement={})
    Node.objects.filter(pk=node.pk).update(allocated_gpus=0, foreign_gpus=0)
    waits.claim = {
        "gpu_class": node.gpu_class.name, "placement": {node.name: 1}, "devices": {}, "victims": [],
        "since": cluster.now().isoformat(), "room_due": None,
    }  # fmt: skip
    waits.gpus = 1000
    waits.save()
    said = f"kept for {waits.name} of {waits.queue.name}"
    assert said in text_of(as_user("admin"))
    assert said not in text_of(as_user("p.rossi"))


def test_tiles_are_coloured_by_workload_where_that_is_asked(cluster, as_user):
    text = text_of(as_user("admin"), "/c/fra1/nodes/?colour=workload")
    assert '?colour=workload" aria-current="true"' in text
    assert "each workload keeps one of six colours" in text
