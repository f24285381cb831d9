"""Gangs of unlike members: how files say them, and how they are counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduling.engine import MILLI, Role, SnapshotError, encode
from scheduling.engine.document.reader import dump, parse
from scheduling.engine.document.writer import Writer
from scheduling.engine.roles import members_on
from scheduling.engine.state.units import GPUS

Json = dict[str, Any]
HEAD: Json = {"name": "head", "gpus": 2}
WORKERS: Json = {"name": "worker", "members": 2, "gpus": 8}
RANGE: Json = {"members": {"min": 1, "max": 4}}
SOME: Json = {**WORKERS, **RANGE}


def world(**work: Any) -> Json:
    return {
        "now": "2026-01-05T10:00:00Z",
        "gpu_classes": [{"name": "gpu"}],
        "priority_classes": [{"name": "train"}],
        "nodes": [{"name": f"n{i}", "gpu_class": "gpu", "gpus": 8} for i in range(3)],
        "queues": [{"name": "team", "quotas": {"gpu": {"nominal": 24}}}],
        "workloads": [
            {
                "name": "ray",
                "queue": "team",
                "priority_class": "train",
                "submitted": "2026-01-05T09:00:00Z",
                "roles": [HEAD, WORKERS],
                **work,
            }
        ],
    }


def test_gang_with_roles_is_counted_in_the_most_gpus_that_divide_those_of_each_member() -> None:
    (work,) = parse(world()).workloads

    assert (work.gpus, work.members.min, work.members.max) == (2 * MILLI, 9, 9)


def test_running_gang_with_roles_is_read_and_written_alike() -> None:
    run = {"state": "running", "started": "2026-01-05T09:00:00Z", "gpu_class": "gpu"}
    roles = [{**HEAD, "placement": {"n2": 1}}, {**WORKERS, "placement": {"n0": 1, "n1": 1}}]
    snapshot = parse(world(**run, roles=roles))
    (work,) = snapshot.workloads

    assert work.placement == {"n0": 4, "n1": 4, "n2": 1}
    assert parse(dump(snapshot)) == snapshot
    assert not {"gpus", "members", "placement"} & dump(snapshot)["workloads"][0].keys()


def test_elastic_gang_with_roles_is_read_and_written_alike() -> None:
    run = {"state": "running", "started": "2026-01-05T09:00:00Z", "gpu_class": "gpu"}
    some = {**SOME, "placement": {"n0": 1}, "leaving": {"n1": 1}}
    snapshot = parse(world(**run, elastic=True, roles=[{**HEAD, "placement": {"n2": 1}}, some]))
    (work,) = snapshot.workloads

    assert (work.members.min, work.members.max) == (5, 17)
    assert (work.placement, work.leaving_members) == ({"n0": 4, "n2": 1}, {"n1": 4})
    assert parse(dump(snapshot)) == snapshot
    assert not {"gpus", "members", "placement"} & dump(snapshot)["workloads"][0].keys()


def test_waiting_gang_with_roles_is_written_alike_alone_and_after_others() -> None:
    snapshot = parse(world())

    assert json.loads(Writer().write(snapshot)) == dump(snapshot)


@pytest.mark.parametrize(
    ("work", "path", "remedy"),
    [
        ({"gpus": 2}, "gpus", "take the roles out"),
        ({"members": {"min": 2}}, "members", "take the roles out"),
        ({"elastic": True}, "elastic", "a min and a max"),
        ({"roles": [HEAD, SOME]}, "elastic", "elastic: true"),
        ({"roles": [{**HEAD, **RANGE}, SOME]}, "roles[1].members", "of one role"),
        ({"roles": [HEAD, {**SOME, "members": {"min": 3, "max": 2}}]}, "roles[1].members.max", ""),
        ({"roles": [HEAD, {**SOME, "placement": {"n1": 5}}]}, "roles[1].placement", "correct it"),
        ({"leaving_members": {"n1": 1}}, "leaving_members", "take the roles out"),
        ({"roles": [WORKERS]}, "roles", "put members that are alike together"),
        ({"roles": [HEAD, {**HEAD, "gpus": 4}]}, "roles[1].name", "rename"),
        (
            {"roles": [WORKERS, {**HEAD, "gpus": 0}]},
            "roles[1].gpus",
            "leave a role without GPUs out",
        ),
        ({"roles": [WORKERS, {**HEAD, "gpus": 0.5}]}, "roles[1].gpus", "round it"),
        (
            {"roles": [WORKERS, {**HEAD, "placement": {"n1": 2}}]},
            "roles[1].placement",
            "correct it, or members",
        ),
    ],
)
def test_roles_that_cannot_be_are_a_fault_with_its_path_and_remedy(
    work: Json, path: str, remedy: str
) -> None:
    with pytest.raises(SnapshotError) as caught:
        parse(world(**work))

    assert any(
        fault.path == f"workloads[0].{path}" and remedy in fault.remedy
        for fault in caught.value.faults
    )


def test_roles_of_one_shape_share_a_slot_that_no_workload_has() -> None:
    document = world()
    document["workloads"].append({**document["workloads"][0], "name": "twin"})
    frame = encode(parse(document))
    shapes = set(frame.work.roles[:2, :2].flatten().tolist())

    assert len(shapes) == 2
    assert shapes.isdisjoint(frame.slot_names)
    assert sorted(frame.work.need[GPUS, list(shapes)].tolist()) == [2 * MILLI, 8 * MILLI]


@pytest.mark.parametrize(
    ("placement", "sit", "loose"),
    [
        ({"n0": 4, "n1": 4, "n2": 1}, [(0, "n0", 1), (0, "n1", 1), (1, "n2", 1)], {}),
        ({"n0": 5, "n1": 4}, [(0, "n0", 1), (0, "n1", 1), (1, "n0", 1)], {}),
        ({"n0": 3, "n1": 4}, [(0, "n1", 1), (1, "n0", 1)], {"n0": 2}),
    ],
)
def test_members_of_each_role_follow_from_the_parts_on_each_node(
    placement: dict[str, int], sit: list[Any], loose: dict[str, int]
) -> None:
    roles = [Role("head", 1, 2 * MILLI), Role("worker", 2, 8 * MILLI)]

    assert members_on(roles, placement, 2 * MILLI) == (sit, loose)
