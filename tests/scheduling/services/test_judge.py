"""The one judge: what may run where, for whom, as what, on which classes, how large and how long."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from scheduling.cluster.adapters import Sighting
from scheduling.cluster.vocabulary import topology
from scheduling.models import PriorityClass
from scheduling.services.queues.judge import Rules, judge
from scheduling.services.queues.service_classes import ServiceClass, ServiceClasses

TEAM = "research/vision"
LEVELS = topology.parse("zone=example.com/zone; example.com/switch")
CLASSES = (
    PriorityClass(name="urgent", value=90, preemptible=False),
    PriorityClass(name="normal", value=50, is_default=True),
    PriorityClass(name="low", value=10),
)


def work(**asked: Any) -> Sighting:
    given: dict[str, Any] = {
        "uid": "u", "kind": "Job", "namespace": "vision", "name": "w", "generation": 1,
        "queue_label": "vision", "user": "ann", "priority_class": "", "gpus": 1000, "cpus": 0,
        "memory_mib": 0, "min_members": 1, "max_members": 2, "members": 2,
        "gpu_classes": ("h100", "l4"), "created": datetime(2026, 1, 5, tzinfo=UTC),
    }  # fmt: skip
    return Sighting(**(given | asked))


def service(**gives: Any) -> ServiceClass:
    return ServiceClass(**{"user": "ann", "path": TEAM, "team": "vision", "persona": "p", **gives})


def judged(*held: ServiceClass, path: str = TEAM, **asked: Any) -> tuple[list[str], list[str]]:
    """(codes of faults, GPU classes that are left)."""
    rules = Rules(ServiceClasses(held or (service(),), frozenset({TEAM})), CLASSES, LEVELS)
    found = judge(work(**asked), path, rules)
    return [fault.code for fault in found.faults], list(found.gpu_classes)


BOTH = ["h100", "l4"]


def test_work_within_its_class_of_service_is_let_be() -> None:
    assert judged() == ([], BOTH)


@pytest.mark.parametrize("user", ["", "eve"])
def test_queue_of_a_team_runs_nothing_for_outsiders(user: str) -> None:
    assert judged(user=user)[0] == ["not_a_member"]


def test_queue_below_that_of_a_team_is_bound_as_well() -> None:
    assert judged(user="eve", path=f"{TEAM}/sub")[0] == ["not_a_member"]
    assert judged(path=f"{TEAM}/sub")[0] == []


def test_queue_of_no_team_is_bound_by_nothing_here() -> None:
    assert judged(service(max_gpus=1), user="eve", path="research") == ([], BOTH)


@pytest.mark.parametrize("named", ["urgent", "normal", "", "no-such-class"])
def test_priority_class_is_judged_by_what_it_comes_to(named: str) -> None:
    low = service(priority_classes=frozenset({"low"}))
    assert judged(low, priority_class=named)[0] == ["priority_class_not_allowed"]
    assert judged(low, priority_class="low")[0] == []


def test_work_that_names_no_class_runs_on_what_is_given() -> None:
    assert judged(service(gpu_classes=frozenset({"l4"}))) == ([], ["l4"])


@pytest.mark.parametrize("given", [set(), {"a100"}])
def test_work_that_nothing_is_left_for_is_refused(given: set[str]) -> None:
    found = judged(service(gpu_classes=frozenset(given)))
    assert found == (["gpu_class_not_allowed"], [])


def test_class_that_is_named_has_to_be_given() -> None:
    narrow = service(gpu_classes=frozenset({"l4"}))
    assert judged(narrow, names_classes=True)[0] == ["gpu_class_not_allowed"]
    assert judged(narrow, names_classes=True, gpu_classes=("l4",)) == ([], ["l4"])


def test_work_without_gpus_needs_no_class() -> None:
    narrow = service(gpu_classes=frozenset())
    assert judged(narrow, gpus=0, gpu_classes=())[0] == []


def test_all_of_its_members_count() -> None:
    assert judged(service(max_gpus=2000))[0] == []
    assert judged(service(max_gpus=1999))[0] == ["too_many_gpus"]


@pytest.mark.parametrize(("limit", "codes"), [(None, 1), (3601, 1), (3600, 0)])
def test_run_time_has_to_be_limited_as_far(limit: int | None, codes: int) -> None:
    found = judged(service(max_run_time_s=3600), run_time_limit_s=limit)
    assert found[0] == ["run_time_too_long"] * codes


@pytest.mark.parametrize("held", [(), (service(user="bob"),)])
@pytest.mark.parametrize("path", [TEAM, "research"])
@pytest.mark.parametrize("gpus", [0, 1000])
def test_priority_of_its_pods_is_weirs_own_everywhere(
    held: tuple[ServiceClass, ...], path: str, gpus: int
) -> None:
    found = judged(*held, path=path, gpus=gpus, pod_priority_classes=("system-node-critical",))
    assert "pod_priority_not_allowed" in found[0]


def test_pods_may_name_the_class_that_they_are_queued_with() -> None:
    both = {"priority_class": "low", "pod_priority_classes": ("low",)}
    assert judged(**both)[0] == []
    assert judged(pod_priority_classes=("normal",))[0] == []
    raised = {"priority_class": "low", "pod_priority_classes": ("low", "urgent")}
    assert judged(**raised)[0] == ["pod_priority_not_allowed"]


def test_the_most_generous_class_of_service_counts() -> None:
    assert judged(service(max_gpus=1, max_run_time_s=1), service())[0] == []


def test_gpu_classes_of_one_that_forbids_it_do_not_count() -> None:
    found = judged(
        service(gpu_classes=frozenset({"l4"})),
        service(gpu_classes=frozenset({"h100"}), max_gpus=1000),
    )
    assert found == ([], ["l4"])


@pytest.mark.parametrize(
    ("level", "faults"),
    [
        ("zone", []),
        ("example.com/zone", []),
        ("example.com/switch", []),
        ("node", []),
        ("kubernetes.io/hostname", []),
        ("rack", ["no_level"]),
    ],
)
def test_gang_may_require_a_level_by_its_name_or_its_label(level: str, faults: list[str]) -> None:
    found, _ = judged(topology={"required": level})

    assert found == faults
