"""What a Job asks for and how it stands, and the patches that let it go, stop it and size it."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduling.cluster.adapters import Admission, ClassSpec, JobAdapter, Sighting
from scheduling.cluster.vocabulary.quantities import duration_s, mib, milli, quantity

H100 = ClassSpec("h100", "nvidia.com/gpu", {"gpu": "h100"})
A100 = ClassSpec("a100", "nvidia.com/gpu", {"gpu": "a100"})
MIG = ClassSpec("a100-mig", "nvidia.com/mig-1g.5gb", {"gpu": "a100"})
CLASSES = (H100, A100, MIG)
NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)


def job(*, gpus: str = "2", notes: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"nvidia.com/gpu": gpus, "cpu": "8", "memory": "64Gi"}}
    pod = {"containers": [{"name": "c", "resources": resources}], **spec.pop("pod", {})}
    return {
        "metadata": {
            "uid": "u1",
            "name": "w1",
            "namespace": "ns",
            "resourceVersion": "7",
            "generation": 1,
            "creationTimestamp": "2026-01-05T09:00:00Z",
            "labels": {"weir.dev/queue": "research"},
            "annotations": notes or {},
        },
        "spec": {"suspend": True, "parallelism": 1, "template": {"spec": pod}, **spec},
        "status": {},
    }


def pod(node: str | None, phase: str = "Running", **meta: Any) -> dict[str, Any]:
    return {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": phase}}


def observe(obj: dict[str, Any], *pods: dict[str, Any]) -> Sighting:
    return JobAdapter().observe(obj, pods, CLASSES)


def admitted(obj: dict[str, Any], members: int = 1, at: datetime = NOW) -> dict[str, Any]:
    """``obj`` after the admission patch, merged as the server does it."""
    place = Admission(A100, members, {"host-1": members}, {"node-1": members}, at)
    return merged(obj, JobAdapter().admission(obj, place))


def merged(obj: Any, patch: dict[str, Any]) -> dict[str, Any]:
    made = deepcopy(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        elif isinstance(value, dict):
            made[key] = merged(made.get(key), value)
        else:
            made[key] = value
    return made


def terms(obj: dict[str, Any]) -> list[dict[str, Any]]:
    affinity = obj["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def test_demand_is_the_sum_of_the_containers_requests() -> None:
    seen = observe(job(gpus="4"))

    assert (seen.gpus, seen.cpus, seen.memory_mib) == (4000, 8000, 65536)
    assert (seen.min_members, seen.max_members) == (1, 1)


def test_init_containers_count_where_they_ask_for_more() -> None:
    def container(gpus: str, **more: Any) -> dict[str, Any]:
        return {"resources": {"limits": {"nvidia.com/gpu": gpus}}, **more}

    sidecar = container("1", restartPolicy="Always")
    assert observe(job(gpus="2", pod={"initContainers": [container("1")]})).gpus == 2000
    assert observe(job(gpus="2", pod={"initContainers": [sidecar]})).gpus == 3000
    assert observe(job(gpus="2", pod={"initContainers": [sidecar, container("4")]})).gpus == 5000


def test_classes_without_an_annotation_are_those_the_selector_allows() -> None:
    assert observe(job()).gpu_classes == ("h100", "a100")
    assert observe(job(pod={"nodeSelector": {"gpu": "a100"}})).gpu_classes == ("a100",)


def test_annotation_orders_classes_of_any_resource_and_keeps_unknown_names() -> None:
    notes = {"weir.dev/gpu-classes": "a100, h200,a100-mig, h100"}

    assert observe(job(notes=notes)).gpu_classes == ("a100", "h200", "a100-mig", "h100")


def test_annotations_say_the_rest() -> None:
    seen = observe(
        job(
            notes={
                "weir.dev/user": "ann",
                "weir.dev/min-members": "2",
                "weir.dev/checkpoint-interval": "20m",
                "weir.dev/checkpointed-at": "2026-01-05T09:50:00Z",
                "weir.dev/predicted-seconds": "3600,7200",
                "weir.dev/topology-required": "rack",
                "weir.dev/hold": "true",
            },
            parallelism=4,
            completions=4,
            activeDeadlineSeconds=9000,
        )
    )

    assert (seen.user, seen.min_members, seen.max_members) == ("ann", 2, 4)
    assert (seen.checkpoint_interval_s, seen.run_time_limit_s) == (1200, 9000)
    assert seen.checkpointed == datetime(2026, 1, 5, 9, 50, tzinfo=UTC)
    assert (seen.predicted_s, seen.topology) == ((3600, 7200), {"required": "rack"})
    assert seen.is_held


@pytest.mark.parametrize("nonsense", ["soon", "", "-1", "1,x"])
def test_annotations_that_make_no_sense_are_ignored(nonsense: str) -> None:
    seen = observe(
        job(
            notes={
                "weir.dev/min-members": nonsense,
                "weir.dev/checkpoint-interval": nonsense,
                "weir.dev/checkpointed-at": nonsense,
            },
            parallelism=3,
        )
    )

    assert (seen.min_members, seen.checkpoint_interval_s, seen.checkpointed) == (3, None, None)


def test_label_goes_before_the_templates_priority_class() -> None:
    obj = job(pod={"priorityClassName": "train"})
    assert observe(obj).priority_class == "train"
    obj["metadata"]["labels"]["weir.dev/priority-class"] = "urgent"
    assert observe(obj).priority_class == "urgent"


def test_kueues_label_routes_as_well() -> None:
    obj = job()
    obj["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research"}

    assert observe(obj).queue_label == "research"


def test_admission_narrows_the_persons_own_terms_to_class_and_hosts() -> None:
    own = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [own]}}
    obj = admitted(job(pod={"affinity": {"nodeAffinity": affinity, "podAffinity": {"kept": 1}}}))

    keys = [(e["key"], e["values"]) for e in terms(obj)[0]["matchExpressions"]]
    assert keys == [("zone", ["a"]), ("gpu", ["a100"]), ("kubernetes.io/hostname", ["host-1"])]
    assert obj["spec"]["template"]["spec"]["affinity"]["podAffinity"] == {"kept": 1}
    assert obj["spec"]["suspend"] is False
    assert (
        "parallelism" not in JobAdapter().admission(job(), Admission(A100, 1, {}, {}, NOW))["spec"]
    )


def test_second_admission_starts_from_what_the_person_wrote() -> None:
    first = admitted(job())
    stopped = merged(first, JobAdapter().suspension(first, 12))
    again = admitted(stopped)

    assert terms(again) == terms(first)
    assert again["spec"]["template"]["spec"]["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    ]


def test_selector_edited_since_an_admission_says_where_it_may_run() -> None:
    waiting = job(pod={"nodeSelector": {"gpu": "h100"}})
    again = admitted(waiting)
    again["spec"] |= {"suspend": True}
    again["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "a100"}

    assert observe(again).gpu_classes == ("a100",)


def test_suspension_takes_the_mark_and_says_by_which_cycle() -> None:
    obj = admitted(job())
    assert observe(obj).marked
    assert observe(obj).planned == {"node-1": 1}
    stopped = merged(obj, JobAdapter().suspension(obj, 12))

    seen = observe(stopped)
    assert (seen.marked, seen.suspended, seen.evicted_by) == (False, True, 12)
    assert not seen.stopped_by_hand
    assert observe(merged(obj, {"spec": {"suspend": True}})).stopped_by_hand


def test_elastic_indexed_job_is_sized_in_both_numbers_and_remembers_its_own() -> None:
    obj = job(
        notes={"weir.dev/min-members": "2"}, parallelism=4, completions=4, completionMode="Indexed"
    )
    small = admitted(obj, members=3)

    assert (small["spec"]["parallelism"], small["spec"]["completions"]) == (3, 3)
    assert (observe(small).min_members, observe(small).max_members) == (2, 4)
    place = Admission(A100, 2, {}, {"node-1": 2}, NOW)
    smaller = merged(small, JobAdapter().resize(small, place))
    assert smaller["spec"]["parallelism"] == 2
    assert observe(smaller).max_members == 4
    assert observe(smaller).admitted == NOW


def test_size_lowered_by_a_person_counts_from_then_on() -> None:
    obj = admitted(job(notes={"weir.dev/min-members": "1"}, parallelism=4), members=3)
    obj["spec"]["parallelism"] = 2

    assert observe(obj).max_members == 2
    assert not observe(obj).overgrown


def test_growing_work_of_a_class_without_labels_may_run_on_any_node() -> None:
    """A required term that asks for nothing matches no node."""
    anywhere = ClassSpec("nvidia-gpu", "nvidia.com/gpu", {})
    obj = job(notes={"weir.dev/min-members": "1"}, parallelism=4)
    place = Admission(anywhere, 3, {"host-1": 3}, {"node-1": 3}, NOW)
    affinity = merged(obj, JobAdapter().admission(obj, place))["spec"]["template"]["spec"][
        "affinity"
    ]
    assert list(affinity["nodeAffinity"]) == ["preferredDuringSchedulingIgnoredDuringExecution"]


def test_size_raised_while_it_runs_is_overgrown_and_counts_once_it_waits() -> None:
    obj = admitted(job(notes={"weir.dev/min-members": "1"}, parallelism=4), members=2)
    obj["spec"]["parallelism"] = 6
    assert observe(obj).overgrown
    assert observe(obj).max_members == 4

    stopped = merged(obj, JobAdapter().suspension(obj, 3))
    assert observe(stopped).max_members == 6


def test_class_of_another_resource_takes_its_place_and_gives_it_back() -> None:
    names = tuple(c.resource_name for c in CLASSES)

    def place(spec: ClassSpec) -> Admission:
        return Admission(spec, 1, {"host-1": 1}, {"node-1": 1}, NOW, resource_names=names)

    def requests(obj: dict[str, Any]) -> dict[str, str]:
        return obj["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]

    obj = job(gpus="2", notes={"weir.dev/gpu-classes": "h100,a100-mig"})
    small = merged(obj, JobAdapter().admission(obj, place(MIG)))
    assert requests(small) == {"nvidia.com/mig-1g.5gb": "2", "cpu": "8", "memory": "64Gi"}
    assert observe(small).gpus == 2000
    assert observe(small).gpu_classes == ("h100", "a100-mig")

    stopped = merged(small, JobAdapter().suspension(small, 3))
    again = merged(stopped, JobAdapter().admission(stopped, place(H100)))
    assert requests(again) == requests(obj)


def test_pods_say_who_runs_who_holds_and_who_is_left() -> None:
    seen = observe(
        job(suspend=False, parallelism=4),
        pod("n1"),
        pod("n1", "Pending"),
        pod("n2", "Succeeded"),
        pod(None, "Pending"),
        pod("n2", deletionTimestamp="2026-01-05T10:00:00Z"),
    )

    assert (seen.members_up, seen.placement, seen.pods_left) == (1, {"n1": 2, "n2": 1}, 4)
    assert not seen.is_up


def test_members_that_are_done_are_not_missed() -> None:
    obj = job(suspend=False, parallelism=4, completions=4)
    obj["status"] = {"succeeded": 3}

    seen = observe(obj, pod("n1"))
    assert (seen.members_wanted, seen.is_up) == (1, True)


@pytest.mark.parametrize(("kind", "outcome"), [("Complete", "succeeded"), ("Failed", "failed")])
def test_condition_says_how_it_ended(kind: str, outcome: str) -> None:
    obj = job()
    obj["status"] = {
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": "2026-01-05T09:30:00Z"}
        ]
    }

    seen = observe(obj)
    assert (seen.outcome, seen.finished) == (outcome, datetime(2026, 1, 5, 9, 30, tzinfo=UTC))


def test_gang_is_as_old_as_its_oldest_members_checkpoint() -> None:
    notes = [{"weir.dev/checkpointed-at": f"2026-01-05T09:{m}:00Z"} for m in (50, 40)]
    seen = observe(job(suspend=False), *(pod("n1", annotations=n) for n in notes))

    assert seen.checkpointed == datetime(2026, 1, 5, 9, 40, tzinfo=UTC)


def test_mark_is_json_a_person_can_read() -> None:
    notes = admitted(job(), members=2)["metadata"]["annotations"]

    assert json.loads(notes["weir.dev/placement"]) == {"node-1": 2}
    assert notes["weir.dev/admitted-at"] == "2026-01-05T10:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("500m", 0.5), ("2k", 2000), ("1Ki", 1024), ("1e3", 1000)]
)
def test_quantities_are_read_as_kubernetes_writes_them(text: str, value: float) -> None:
    assert quantity(text) == value
    assert milli("0.5") == 500
    assert (mib("1Gi"), mib("1500k")) == (1024, 2)
    with pytest.raises(ValueError, match="no Kubernetes quantity"):
        quantity("many")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20m", 1200),
        ("1h30m", 5400),
        ("90s", 90),
        ("45", 45),
        ("soon", None),
        ("5x", None),
        ("1e9", 1e9),
        ("1e10", None),
        ("nan", None),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float | None) -> None:
    assert duration_s(text) == seconds
