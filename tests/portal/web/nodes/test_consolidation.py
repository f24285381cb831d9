"""The preview of a consolidation, as an operator reads it."""

from __future__ import annotations

import re

import pytest

from scheduling.models import ClusterMode, Consolidation, ConsolidationState, Workload
from scheduling.services.clusters.consolidation import ConsolidationEffect, Move
from scheduling.services.errors import ServiceError
from scheduling.services.explain import asking

pytestmark = pytest.mark.django_db
ADDRESS = "/c/fra1/consolidation/?class=h100-80gb&nodes=1"
NOTHING = ConsolidationEffect("h100-80gb", 1, (), (), (), (), 8000, 8000)


@pytest.fixture
def asked(monkeypatch):
    """What was asked; ``asked.answer`` is what is answered."""

    class Asked(list):
        answer = NOTHING

    calls = Asked()

    def freed(cluster, gpu_class, nodes):
        calls.append((cluster.name, gpu_class, nodes))
        if isinstance(calls.answer, ServiceError):
            raise calls.answer
        return calls.answer

    monkeypatch.setattr(asking, "freed", freed)
    return calls


def moves_of_one(work):
    """``work`` leaves its node for h100-14, which makes the node whole; somebody who waits starts."""
    [(origin, members)] = work.placement.items()
    moves = (
        Move(asking.name_in_plan(work), work.gpus, {origin: members}, {"h100-14": members}, 7200),
    )
    waits = Workload.objects.filter(state="pending").first()
    starts = (asking.name_in_plan(waits),)
    return ConsolidationEffect(
        "h100-80gb", 1, ("h100-99",), (origin,), moves, starts, 6000, 8000
    ), waits


def shown(as_user, address=ADDRESS):
    return as_user("admin").get(address).content.decode()


def test_preview_says_who_moves_what_it_frees_costs_and_starts(cluster, as_user, asked):
    work = Workload.objects.filter(state="running", placement__has_key="h100-10").first()
    asked.answer, waits = moves_of_one(work)
    text = shown(as_user)
    assert asked == [("fra1", "h100-80gb", 1)]
    assert "Moving 1 workload makes" in text
    assert work.name in text
    assert waits.name in text
    assert "1 → <b>2</b>" in text
    assert text.count("run-moved") == 2
    assert "Nothing has been moved" in text


def test_plan_beside_the_map_says_what_it_frees_and_is_ordered_on_its_own_page(
    cluster, as_user, asked
):
    work = Workload.objects.filter(state="running", placement__has_key="h100-10").first()
    asked.answer, _ = moves_of_one(work)
    planned = shown(as_user, f"{ADDRESS}&beside=1").split('id="planned"')[1]
    assert "Moving 1 workload makes" in planned
    assert 'hx-select-oob="#lead"' not in planned
    assert f'action="{ADDRESS.replace("&", "&amp;")}"' in planned


def test_too_few_free_gpus_are_said_with_the_numbers(cluster, as_user, asked):
    asked.answer = ConsolidationEffect("h100-80gb", 2, (), (), (), (), 6000, 16000)
    assert "6 GPUs of h100-80gb are free; 16 would be needed" in shown(as_user)


def test_no_moves_are_explained(cluster, as_user, asked):
    assert "No moves free 1 more node" in shown(as_user)


def test_cluster_that_does_not_answer_is_said(cluster, as_user, asked):
    asked.answer = ServiceError("cluster_unreachable", "Cluster fra1 does not answer.", "Later.")
    assert "Cluster fra1 does not answer." in shown(as_user)


@pytest.mark.parametrize("nodes", ["0", "-1", "65", "x", "1.5", "9" * 5000, "٣"])
def test_number_of_nodes_out_of_range_is_refused_before_anybody_is_asked(
    cluster, as_user, asked, nodes
):
    answer = as_user("admin").get("/c/fra1/consolidation/", {"nodes": nodes})
    assert answer.status_code == 400
    assert "Ask for 1 to 64 nodes" in answer.content.decode()
    assert asked == []


def test_map_leads_operators_there_and_nobody_else(cluster, as_user):
    assert "consolidating free" in as_user("admin").get("/c/fra1/nodes/").content.decode()
    assert "consolidating free" not in as_user("lead").get("/c/fra1/nodes/").content.decode()


@pytest.fixture
def offered(cluster, asked):
    """One move is foreseen, and the cluster is enforced."""
    cluster.mode = ClusterMode.ENFORCE
    cluster.save()
    work = Workload.objects.filter(state="running", placement__has_key="h100-10").first()
    asked.answer, _ = moves_of_one(work)


def test_confirmed_plan_is_ordered_and_listed(cluster, as_user, offered):
    client = as_user("admin")
    answer = client.post(ADDRESS, {"moves": "1", "confirm": "yes"}, follow=True)
    made = Consolidation.objects.get()
    assert (made.author, made.nodes, made.most_moves, made.state) == ("admin", 1, 1, "waiting")
    assert "Waits for the next cycle" in answer.content.decode()


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"moves": "1"}, "Tick the box"),
        ({"moves": "2", "confirm": "yes"}, "The cluster has changed"),
        ({}, "The cluster has changed"),
    ],
)
def test_plan_that_is_not_confirmed_as_it_is_now_is_not_ordered(
    cluster, as_user, offered, sent, said
):
    answer = as_user("admin").post(ADDRESS, sent)
    assert answer.status_code == 400
    assert said in answer.content.decode()
    assert not Consolidation.objects.exists()


def test_order_that_waits_is_cancelled_by_its_button(cluster, as_user, offered):
    client = as_user("admin")
    client.post(ADDRESS, {"moves": "1", "confirm": "yes"})
    client.post(f"/c/fra1/consolidation/{Consolidation.objects.get().pk}/cancel/")
    assert Consolidation.objects.get().state == "cancelled"


@pytest.mark.parametrize(
    ("moved", "said", "told"),
    [([True, False], "Partly done", "partly_done"), ([True, True], "Done", "done")],
)
def test_consolidation_that_was_cut_off_reads_partly_done(cluster, as_user, moved, said, told):
    row = {"workload": 1, "uid": "u", "name": "w1", "origin": ["n1"], "target": ["n2"]}
    row |= {"gpus": 1000, "lost_gpu_s": 0, "why": ""}
    Consolidation.objects.create(
        cluster=cluster,
        gpu_class=cluster.gpu_classes.first(),
        nodes=1,
        most_moves=2,
        author="admin",
        asked_at=cluster.now(),
        state=ConsolidationState.DONE,
        moves=[row | {"moved": each} for each in moved],
    )
    text = shown(as_user)
    assert re.findall(r"</svg>(Partly done|Done)</span>", text) == [said]
    (order,) = as_user("admin").get("/api/v1/clusters/fra1/consolidations").json()["results"]
    assert order["state"] == told


def test_live_fragment_lists_orders_and_asks_nobody(cluster, as_user, asked):
    answer = as_user("admin").get(ADDRESS, headers={"X-Weir-Live": "1"})
    assert answer.status_code == 200
    assert asked == []
