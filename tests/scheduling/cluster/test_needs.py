"""What pods take of their nodes, mount and keep near, as it is read from what their authors write."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.adapters import bounds, needs, neighbours, volumes
from scheduling.cluster.picture.neighbourhood import Neighbourhood
from scheduling.cluster.picture.node_sets import NodeSets
from scheduling.cluster.picture.nodes import ObservedNode
from scheduling.cluster.vocabulary import limit_ranges
from scheduling.cluster.vocabulary import volumes as known_volumes
from scheduling.cluster.vocabulary.limit_ranges import Defaults

Json = dict[str, Any]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def container(*ports: Json, **more: Any) -> Json:
    return {"ports": list(ports), **more}


PORT, UDP, INSIDE = ({"hostPort": 80}, {"hostPort": 53, "protocol": "UDP"}, {"containerPort": 9000})


@pytest.mark.parametrize(
    ("pod", "taken"),
    [
        pytest.param({"containers": [container(PORT, UDP)]}, ["53/UDP", "80/TCP"], id="host_ports"),
        pytest.param({"containers": [container(INSIDE)]}, [], id="port_inside_takes_none"),
        pytest.param(
            {"hostNetwork": True, "containers": [container(INSIDE)]},
            ["9000/TCP"],
            id="host_network",
        ),
        pytest.param({"containers": [container(PORT), container(PORT)]}, ["80/TCP"], id="once"),
        pytest.param(
            {"initContainers": [container(PORT, restartPolicy="Always"), container(UDP)]},
            ["80/TCP"],
            id="sidecar_alone_of_those_before",
        ),
        pytest.param({}, [], id="nothing"),
    ],
)
def test_ports_of_its_host_that_a_pod_takes(pod: Json, taken: list[str]) -> None:
    assert needs.ports(pod) == [f"host port {each}" for each in taken]


@pytest.mark.parametrize(
    ("members", "each"),
    [
        pytest.param([{"a": 2}], (("a", 2),), id="one_role"),
        pytest.param([{"a": 2}, {"a": 1}], (("a", 1),), id="the_least_of_both"),
        pytest.param([{"a": 2}, {}], (), id="what_one_role_alone_takes_is_not_planned"),
        pytest.param([{}, {"a": 2}], (), id="nor_what_the_other_takes"),
    ],
)
def test_members_are_planned_alike(members: list[dict[str, int]], each: needs.Amounts) -> None:
    assert needs.of_all(members) == each


@pytest.mark.parametrize(
    ("members", "each"),
    [
        pytest.param([{"a": 2}], (("a", 2),), id="one_role"),
        pytest.param([{"a": 1}, {"a": 2}], (("a", 2),), id="the_most_of_both"),
        pytest.param([{"a": 2}, {"b": 1}], (("a", 2), ("b", 1)), id="what_any_role_takes"),
        pytest.param([{"a": 0}, {}], (), id="nothing"),
    ],
)
def test_members_planned_as_the_largest_take_what_any_does(
    members: list[dict[str, int]], each: needs.Amounts
) -> None:
    assert needs.of_any(members) == each


def rule(kind: str, key: str = HOST, **more: Any) -> Json:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}, **more}
    return {"affinity": {kind: {neighbours.REQUIRED: [term]}}}


def read(spec: Json, labels: Json | None = None, name: str = "w1") -> Json:
    return neighbours.of(spec, {"labels": labels or {}}, name, "default")


IN = {"key": "app", "operator": "In", "values": ["a", "b"]}


@pytest.mark.parametrize(
    ("spec", "labels", "place"),
    [
        pytest.param(rule("podAntiAffinity"), {"app": "a"}, "app=a in default", id="own_kind"),
        pytest.param(rule("podAntiAffinity"), {"app": "b"}, "", id="another_kind"),
        pytest.param(rule("podAntiAffinity", ZONE), {"app": "a"}, "", id="another_domain"),
        pytest.param(rule("podAffinity"), {"app": "a"}, "", id="affinity"),
        pytest.param(
            rule("podAntiAffinity", labelSelector={"matchExpressions": [IN]}),
            {"app": "b"},
            "app In a, b in default",
            id="expressions",
        ),
        pytest.param(
            rule("podAntiAffinity", labelSelector={"matchLabels": {"job-name": "w1"}}),
            {},
            "job-name=w1 in default",
            id="label_of_its_controller",
        ),
        pytest.param(
            rule("podAntiAffinity", namespaces=["other"]), {"app": "a"}, "", id="another_namespace"
        ),
        pytest.param(
            rule("podAntiAffinity", namespaceSelector={}),
            {"app": "a"},
            "app=a in any namespace",
            id="all_namespaces",
        ),
        pytest.param(
            rule("podAntiAffinity", namespaceSelector={"matchLabels": {"x": "y"}}),
            {"app": "a"},
            "",
            id="namespaces_by_label_are_not_read",
        ),
        pytest.param(
            rule("podAntiAffinity", matchLabelKeys=["hash"]),
            {"app": "a"},
            "",
            id="keys_are_not_read",
        ),
        pytest.param(
            rule("podAntiAffinity", labelSelector=None), {"app": "a"}, "", id="selects_none"
        ),
    ],
)
def test_place_apart_that_a_member_takes(spec: Json, labels: Json, place: str) -> None:
    wanted = {f"node apart from pods with {place}": 1} if place else {}

    assert neighbours.places_apart(read(spec, labels)) == wanted


@pytest.mark.parametrize(
    ("key", "labels", "together"),
    [(ZONE, {"app": "a"}, (ZONE,)), (ZONE, {"app": "b"}, ()), ("disk", {"app": "a"}, ("disk",))],
)
def test_label_by_which_members_near_their_own_kind_have_to_be_together(
    key: str, labels: Json, together: tuple[str, ...]
) -> None:
    assert neighbours.together(read(rule("podAffinity", key), labels)) == together


def a_node(name: str, zone: str) -> ObservedNode:
    return ObservedNode(
        name, name, {HOST: name, ZONE: zone}, "h100", 8000, 0, 0, ready=True, foreign_gpus=0
    )


NODES = [a_node("n1", "a"), a_node("n2", "a"), a_node("n3", "b")]


def a_pod(host: str, app: str, namespace: str = "default") -> Json:
    return {
        "metadata": {"uid": f"{host}-{app}", "namespace": namespace, "labels": {"app": app}},
        "spec": {"nodeName": host},
        "status": {"phase": "Running"},
    }


def written(spec: Json, labels: Json | None = None) -> str:
    return bounds.written([{"selector": {}, "terms": [], **read(spec, labels)}])


@pytest.mark.parametrize(
    ("spec", "labels", "pods", "left"),
    [
        pytest.param(rule("podAntiAffinity"), {}, [a_pod("n1", "a")], {"n2", "n3"}, id="off_a_node"),
        pytest.param(rule("podAntiAffinity", ZONE), {}, [a_pod("n1", "a")], {"n3"}, id="off_a_zone"),
        pytest.param(rule("podAffinity", ZONE), {}, [a_pod("n2", "a")], {"n1", "n2"}, id="in_a_zone"),
        pytest.param(rule("podAffinity"), {}, [a_pod("n2", "b")], set(), id="near_none_that_is_there"),
        pytest.param(
            rule("podAffinity", ZONE), {"app": "a"}, [], {"n1", "n2", "n3"}, id="first_of_its_kind"
        ),
        pytest.param(
            rule("podAntiAffinity"), {}, [a_pod("n1", "a", "other")], {"n1", "n2", "n3"},
            id="other_namespaces_do_not_count",
        ),
    ],
)  # fmt: skip
def test_nodes_that_pods_there_leave_open(
    spec: Json, labels: Json, pods: list[Json], left: set[str]
) -> None:
    assert Neighbourhood(NODES, pods, {}).left_to(written(spec, labels)) == left


def test_bounds_without_neighbours_are_left_alone() -> None:
    assert Neighbourhood(NODES, [a_pod("n1", "a")], {}).left_to("") is None


CLAIM = {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}
MADE = {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}


def test_volumes_that_a_pod_mounts() -> None:
    spec = {"volumes": [CLAIM, MADE, {"name": "x", "emptyDir": {}}]}

    assert volumes.of(spec, "default") == {"claims": ["default/data"], "classes": ["fast"]}
    assert volumes.that_bind(spec) == [CLAIM, MADE]
    assert volumes.of({}, "default") == {}


def in_zone(zone: str) -> Json:
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}


def a_volume(*terms: Json, **labels: str) -> Json:
    affinity = {"required": {"nodeSelectorTerms": list(terms)}} if terms else {}
    return {"metadata": {"name": "v", "labels": labels}, "spec": {"nodeAffinity": affinity}}


def a_class(mode: str, zone: str, default: str = "false") -> Json:
    notes = {known_volumes.DEFAULT: default}
    topology = {"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}
    return {
        "metadata": {"name": "zonal", "annotations": notes},
        "volumeBindingMode": mode,
        "allowedTopologies": [topology],
    }


def claimed(volume: str = "", of: str = "") -> Json:
    return {
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"volumeName": volume, "storageClassName": of},
    }


WAITS = "WaitForFirstConsumer"


@pytest.mark.parametrize(
    ("volume", "claim", "one", "left"),
    [
        pytest.param(a_volume(in_zone("b")), claimed("v"), None, {"n3"}, id="affinity_of_its_volume"),
        pytest.param(a_volume(**{ZONE: "a"}), claimed("v"), None, {"n1", "n2"}, id="label_of_it"),
        pytest.param(
            a_volume(in_zone("a"), **{ZONE: "b"}), claimed("v"), None, set(), id="both_have_to_match"
        ),
        pytest.param(a_volume(), claimed("v"), None, {"n1", "n2", "n3"}, id="of_any_zone"),
        pytest.param(None, claimed(of="zonal"), a_class(WAITS, "b"), {"n3"}, id="class_that_waits"),
        pytest.param(
            None, claimed(), a_class(WAITS, "b", default="true"), {"n3"}, id="class_by_default"
        ),
        pytest.param(
            None, claimed(of="zonal"), a_class("Immediate", "b"), {"n1", "n2", "n3"},
            id="class_that_binds_at_once",
        ),
        pytest.param(
            a_volume(in_zone("a")), claimed("v", "zonal"), a_class(WAITS, "b"), {"n1", "n2"},
            id="what_is_bound_is_where_it_is",
        ),
        pytest.param(None, claimed("gone"), None, {"n1", "n2", "n3"}, id="volume_that_is_gone"),
    ],
)  # fmt: skip
def test_nodes_on_which_its_volume_can_be_used(
    volume: Json | None, claim: Json, one: Json | None, left: set[str]
) -> None:
    found = known_volumes.read(
        [known_volumes.trim_volume(volume)] if volume else [],
        [known_volumes.trim_claim(claim)],
        [known_volumes.trim_class(one)] if one else [],
    )
    said = volumes.of({"volumes": [CLAIM]}, "default")
    text = bounds.written([{"selector": {}, "terms": [], "volumes": said}])

    assert NodeSets().of({text}, NODES, found)[text] == left


def a_range(name: str = "r", **item: Any) -> Json:
    meta = {"name": name, "namespace": "default"}
    return {"metadata": meta, "spec": {"limits": [{"type": "Container", **item}]}}


@pytest.mark.parametrize(
    ("ranges", "resources", "asks"),
    [
        pytest.param(
            [a_range(defaultRequest={"cpu": "2"})], {}, {"requests": {"cpu": "2"}}, id="request"
        ),
        pytest.param(
            [a_range(default={"cpu": "4"})], {}, {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}},
            id="request_by_the_limit",
        ),
        pytest.param(
            [a_range(max={"cpu": "8"})], {}, {"requests": {"cpu": "8"}, "limits": {"cpu": "8"}},
            id="limit_by_the_most",
        ),
        pytest.param(
            [a_range(defaultRequest={"cpu": "2"})], {"limits": {"cpu": "1"}},
            {"limits": {"cpu": "1"}}, id="own_limit_is_its_request",
        ),
        pytest.param(
            [a_range(defaultRequest={"cpu": "2"})], {"requests": {"cpu": "1"}},
            {"requests": {"cpu": "1"}}, id="own_request",
        ),
        pytest.param(
            [a_range("b", defaultRequest={"cpu": "2"}), a_range("a", defaultRequest={"cpu": "3"})], {},
            {"requests": {"cpu": "3"}}, id="first_by_name",
        ),
        pytest.param(
            [a_range(type="Pod", max={"cpu": "2"})], {}, {}, id="of_whole_pods_adds_nothing"
        ),
    ],
)  # fmt: skip
def test_what_a_limit_range_has_a_container_ask_for(
    ranges: list[Json], resources: Json, asks: Json
) -> None:
    pod: Json = {"containers": [{"resources": resources}]}
    limit_ranges.fill(pod, limit_ranges.read(ranges).get("default", Defaults()))

    assert pod["containers"][0]["resources"] == asks


def test_bounds_say_in_words_what_binds() -> None:
    text = bounds.written(
        [
            {
                "selector": {"a": "b"},
                "terms": [],
                "volumes": {"claims": ["x"]},
                **read(rule("podAffinity")),
            }
        ]
    )

    assert bounds.in_words(text, is_tainted=False) == (
        "node selector or runtime class, volumes and pod affinity"
    )
    assert bounds.in_words("", is_tainted=True) == "tolerations"
    assert bounds.plain(bounds.barring(text, {"n1"})) == text
