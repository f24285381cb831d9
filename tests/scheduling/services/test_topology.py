"""Gangs that want to be together, on a cluster whose topology has levels of its own names.

Nodes n1 and n2 have 8 GPUs each and share a pod of machines; n3 and n4 share a switch of another one.
"""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.models import State
from scheduling.services.errors import ServiceError
from scheduling.services.queues.knobs import set_policy
from tests.scheduling.kube import JOBS, World, add_node

Json = dict[str, Any]

LEVELS = "pod=example.com/pod; example.com/switch"
SWITCH = "example.com/switch"


@pytest.fixture
def labelled(world: World) -> World:
    first = world.kube.get("/api/v1/nodes/n1")
    for name in ("n3", "n4"):
        node = {key: first[key] for key in ("apiVersion", "kind", "status")}
        own = first["metadata"]["labels"] | {"kubernetes.io/hostname": name}
        add_node(world.kube, node | {"metadata": {"name": name, "labels": own}})
    where = {"n1": ("p1", "s1"), "n2": ("p1", "s2"), "n3": ("p2", "s3"), "n4": ("p2", "s3")}
    for name, (pod, switch) in where.items():
        own = {"example.com/pod": pod, SWITCH: switch}
        world.kube.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": own}})
    set_policy(
        cluster=world.cluster, values={"topology_levels": LEVELS}, author=None, reason="Ours"
    )
    return world


def gang(world: World, name: str, **wants: str) -> None:
    job = world.manifest(name, gpus=8, pods=2)
    job["metadata"]["annotations"] |= {f"weir.dev/topology-{how}": lv for how, lv in wants.items()}
    world.kube.create(JOBS, job)


def noted(world: World, name: str, notes: dict[str, str]) -> None:
    job = world.manifest(name, gpus=8, pods=2)
    job["metadata"]["annotations"] |= {f"weir.dev/{key}": value for key, value in notes.items()}
    world.kube.create(JOBS, job)


@pytest.mark.parametrize(
    ("level", "together"),
    [
        (SWITCH, {"n3": 1, "n4": 1}),
        ("pod", {"n1": 1, "n2": 1}),
        ("example.com/pod", {"n1": 1, "n2": 1}),
    ],
)
def test_gang_stays_inside_the_level_that_it_names(
    labelled: World, level: str, together: dict[str, int]
) -> None:
    gang(labelled, "w1", required=level)
    labelled.cycles_until(lambda: labelled.row("w1").state == State.RUNNING)

    assert labelled.row("w1").placement == together
    assert labelled.cycle().written == 0


def test_segments_that_a_job_asks_for_sit_in_one_domain_each(labelled: World) -> None:
    noted(labelled, "w1", {"segment-size": "2", "segment-required": SWITCH})
    labelled.cycles_until(lambda: labelled.row("w1").state == State.RUNNING)

    assert labelled.row("w1").placement == {"n3": 1, "n4": 1}
    assert labelled.row("w1").topology == {"segment_size": "2", "segment_required": SWITCH}


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        (
            {"segment-size": "3", "segment-required": SWITCH},
            "It asks for segments of 3 members each, and has 2 members. Set weir.dev/segment-size to a"
            " divisor of its members, or take weir.dev/segment-required out.",
        ),
        (
            {"segment-required": SWITCH},
            "It asks for segments of no size that can be read, and has 2 members.",
        ),
        (
            {"segment-size": "2", "segment-required": "aisle"},
            "It asks for segments inside one 'aisle' each, which is no level. Set"
            " weir.dev/segment-required to one of pod, example.com/switch, node.",
        ),
    ],
)
def test_segments_that_no_start_could_keep_wait_with_a_remedy(
    labelled: World, notes: dict[str, str], said: str
) -> None:
    noted(labelled, "w1", notes)
    labelled.cycle()

    assert labelled.notes("w1")["weir.dev/reason"] == "never_fits"
    assert labelled.notes("w1")["weir.dev/sentence"].startswith(said)


def test_segments_that_are_preferred_and_make_no_sense_count_as_left_out(labelled: World) -> None:
    noted(labelled, "w1", {"segment-size": "3", "segment-preferred": SWITCH})
    labelled.cycles_until(lambda: labelled.row("w1").state == State.RUNNING)


def test_pods_of_a_gang_that_may_grow_are_kept_to_the_label_of_its_level(labelled: World) -> None:
    job = labelled.manifest("w1", gpus=8, pods=1, pods_max=2)
    job["metadata"]["annotations"]["weir.dev/topology-required"] = SWITCH
    labelled.kube.create(JOBS, job)
    labelled.cycles_until(lambda: labelled.row("w1").state == State.RUNNING)

    rules = labelled.read("w1")["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    [term] = rules["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {e["key"] for e in term["matchExpressions"]} >= {SWITCH}


def test_levels_that_are_changed_hold_for_what_waits_already(labelled: World) -> None:
    gang(labelled, "w1", required="rack")
    labelled.cycle()
    assert "one of pod, example.com/switch, node" in labelled.notes("w1")["weir.dev/sentence"]

    renamed = f"pod=example.com/pod; rack={SWITCH}"
    set_policy(
        cluster=labelled.cluster, values={"topology_levels": renamed}, author=None, reason="Short"
    )
    labelled.cycles_until(lambda: labelled.row("w1").state == State.RUNNING)

    assert labelled.row("w1").placement == {"n3": 1, "n4": 1}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("block=a/b; block=a/c", "block stands twice"),
        ("block=a/b; rack=a/b", "a/b stands twice"),
        ("node=a/b", "'node' cannot be the name of a level"),
        ("rack=not a label", "'not a label' is no label of a node"),
        ("rack=", "'' is no label"),
        ("; ".join(f"a/l{i}" for i in range(7)), "more than 6 levels"),
        (12, "Write a text"),
    ],
)
def test_levels_that_cannot_be_are_refused_with_what_is_wrong(
    world: World, text: object, wrong: str
) -> None:
    with pytest.raises(ServiceError, match=wrong):
        set_policy(
            cluster=world.cluster, values={"topology_levels": text}, author=None, reason="Ours"
        )
