"""What did not change is not read again; whatever did is."""

from __future__ import annotations

from typing import Any

from scheduling.cluster.adapters import ClassSpec, JobAdapter, Observed
from scheduling.cluster.devices import Devices
from scheduling.cluster.memo import Memo

CLASSES = (ClassSpec("h100", "nvidia.com/gpu", {}),)


def job() -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    meta = {"uid": "u", "name": "w", "namespace": "ns", "creationTimestamp": "2026-01-05T09:00:00Z"}
    return {"metadata": meta, "spec": {"template": {"spec": {"containers": [container]}}}}


def pod() -> dict[str, Any]:
    return {"metadata": {}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}


def look(memo: Memo, obj: Any, *pods: Any, classes: Any = CLASSES) -> Observed:
    memo.open(classes, Devices())
    return memo.observe(JobAdapter(), obj, list(pods), classes, {})


def test_same_object_and_pods_are_read_once() -> None:
    memo, obj, own = Memo(), job(), pod()

    assert look(memo, obj, own) is look(memo, obj, own)


def test_new_version_new_pod_or_other_classes_are_read_again() -> None:
    memo, obj, own = Memo(), job(), pod()
    first = look(memo, obj, own)

    assert look(memo, job(), own) is not first
    assert look(memo, obj, pod()).members_up == 1
    assert look(memo, obj, own, pod()).members_up == 2
    assert look(memo, obj, own, classes=()).gpu_classes == ()


def test_what_is_gone_is_forgotten() -> None:
    memo, obj = Memo(), job()
    first = look(memo, obj)
    memo.open(CLASSES, Devices())

    assert look(memo, obj) is not first
