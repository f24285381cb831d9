"""Which nodes workloads may use, by what their authors wrote and by the labels and taints of nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduling.cluster.adapters import bounds, pods
from scheduling.cluster.adapters.affinity import allows
from scheduling.cluster.picture.node_sets import MOST, NodeSets
from scheduling.cluster.picture.nodes import ObservedNode, Taint, closed, tolerates
from tests.scheduling.cluster.test_affinity import term

Json = dict[str, Any]
VISION = Taint("team", "vision", "NoSchedule")
OPEN: Json = {"selector": {}, "terms": [], "tolerations": []}


def a_node(name: str, *taints: Taint, **labels: str) -> ObservedNode:
    return ObservedNode(
        name, name, {"name": name, **labels}, "h100", 8000, 96000, 1024, True, 0, frozenset(taints)
    )


NODES = (
    a_node("n1", zone="a", disk="ssd", size="8"),
    a_node("n2", zone="b", size="16"),
    a_node("n3", zone="c"),
)


def said(*roles: Json) -> str:
    return bounds.written({**OPEN, **role} for role in roles)


def allowed(text: str, *nodes: ObservedNode) -> list[str]:
    asked = closed(list(nodes or NODES), set(), [text])
    return sorted(NodeSets().of({text}, asked)[text])


def named(operator: str, name: str) -> Json:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}


TERMS = [
    term("zone", "In", "a", "b"), term("zone", "NotIn", "a"), term("disk", "Exists"),
    term("disk", "DoesNotExist"), term("disk", "NotIn", "ssd"), term("size", "Gt", "8"),
    term("size", "Lt", "16"), term("zone", "Gt", "8"), term("zone", "Near", "a"), {},
    named("In", "n2"),
    named("NotIn", "n2"),
    {"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["n2"]}]},
    term("zone", "In", "a", "c") | named("In", "n3"),
]  # fmt: skip


@pytest.mark.parametrize("one", TERMS)
def test_term_matches_the_nodes_that_it_does_one_by_one(one: Json) -> None:
    expected = [n.name for n in NODES if allows({}, [one], n.name, n.labels)]

    assert allowed(said({"terms": [one]})) == expected


def test_selector_and_terms_both_have_to_match() -> None:
    wanted = {"selector": {"zone": "a"}, "terms": [term("size", "Exists")]}

    assert allowed(said(wanted)) == ["n1"]
    assert allowed(said({**wanted, "selector": {"zone": "c"}})) == []


def test_gang_may_go_where_any_of_its_roles_may() -> None:
    assert allowed(said({"selector": {"zone": "a"}}, {"selector": {"zone": "c"}})) == ["n1", "n3"]
    assert said({"selector": {"zone": "a"}}, {}) == said({}, {"selector": {"zone": "a"}})
    assert said({}, {}) == ""


def test_what_makes_no_sense_binds_nothing() -> None:
    assert allowed(said({"terms": ["zone"]})) == ["n1", "n2", "n3"]
    assert allowed(said({"selector": {"zone": {}}})) == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "team", "operator": "Equal", "value": "vision", "effect": "NoSchedule"}, True),
        ({"key": "team", "value": "vision"}, True),
        ({"key": "team", "value": "speech"}, False),
        ({"key": "team"}, False),
        ({"key": "team", "operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "Equal"}, False),
        ({"key": "team", "operator": "Near", "value": "vision"}, False),
        ("team", False),
    ],
)
def test_taint_is_tolerated_as_kubernetes_means_it(toleration: Any, expected: bool) -> None:
    assert tolerates(toleration, VISION) is expected


def test_node_kept_by_a_taint_is_for_those_alone_who_tolerate_it() -> None:
    nodes = (*NODES, a_node("n4", VISION, zone="a"))
    knows = said({"tolerations": [{"key": "team", "operator": "Exists"}]})
    bound = said({"selector": {"zone": "a"}})
    asked = closed(list(nodes), set(), [knows, bound])

    assert [(n.ready, bool(n.kept_for)) for n in asked[2:]] == [(True, False), (True, True)]
    found = NodeSets().of({knows, bound}, asked)
    assert found == {knows: {"n1", "n2", "n3", "n4"}, bound: {"n1"}}


def test_node_that_nobody_tolerates_is_closed() -> None:
    trouble = Taint("node.kubernetes.io/disk-pressure", "", "NoSchedule")
    everything = said({"tolerations": [{"operator": "Exists"}]})
    rows = [*NODES, a_node("n4", VISION), a_node("n5", trouble), a_node("n6", VISION, trouble)]

    assert [n.ready for n in closed(rows, set(), [])][3:] == [False, False, False]
    assert [n.ready for n in closed(rows, set(), [everything])][3:] == [True, False, False]


def test_sets_are_found_anew_when_a_node_changes() -> None:
    sets, text = NodeSets(), said({"selector": {"zone": "b"}})

    assert sets.of({text}, NODES)[text] == {"n2"}
    assert sets.of({text}, (*NODES, a_node("n4", zone="b")))[text] == {"n2", "n4"}
    assert sets.of({text}, NODES)[text] == {"n2"}


def test_bounds_past_the_most_that_are_told_apart_bind_nothing() -> None:
    texts = {said({"selector": {"zone": f"{i:04}"}}) for i in range(MOST + 1)}
    found = NodeSets().of(texts, NODES)

    assert sum(bool(nodes) for nodes in found.values()) == 1
    assert len(found) == MOST + 1


@pytest.mark.parametrize(
    ("asks", "may"),
    [
        pytest.param({"example.com/rdma": 1000}, {"n1", "n2"}, id="device"),
        pytest.param({"example.com/rdma": 2000}, {"n2"}, id="more than the smaller has"),
        pytest.param({"example.com/fpga": 1000}, set(), id="device of no node"),
        pytest.param({"hugepages-2Mi": 512}, {"n2"}, id="huge pages"),
        pytest.param({"ephemeral-storage": 2048}, {"n2", "n3"}, id="storage, unknown of one"),
    ],
)
def test_only_nodes_that_have_what_a_pod_asks_for_beside_gpus_may_be_used(
    asks: dict[str, int], may: set[str]
) -> None:
    offers = (
        {"example.com/rdma": 1000, "ephemeral-storage": 1024},
        {"example.com/rdma": 2000, "ephemeral-storage": 4096, "hugepages-2Mi": 1024},
        {},
    )
    nodes = [replace(node, beside=has) for node, has in zip(NODES, offers, strict=True)]
    text = bounds.written([{**OPEN, "beside": asks}])
    assert NodeSets().of({text}, nodes) == {text: may}


def test_beside_gpus_counts_what_no_plan_adds_up() -> None:
    asks = {
        "cpu": 1000, "memory": 512, "nvidia.com/gpu": 8000, "nvidia.com/mig-1g.10gb": 1000,
        "example.com/gpu": 1000, "rdma/hca": 1000, "ephemeral-storage": 10, "smarter/none": 0,
    }  # fmt: skip
    assert pods.beside(asks, ["example.com/gpu"]) == {"rdma/hca": 1000, "ephemeral-storage": 10}
