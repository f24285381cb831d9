"""What did not change is not read again; whatever did is."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.adapters import ClassSpec, Sighting
from scheduling.cluster.adapters.roles import RoleAdapter
from scheduling.cluster.picture.around import Circumstances
from scheduling.cluster.picture.compose import compose
from scheduling.cluster.picture.memo import Memo

CLASSES = (ClassSpec("h100", "nvidia.com/gpu", {}),)


def job() -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    meta = {"uid": "u", "name": "w", "namespace": "ns", "creationTimestamp": "2026-01-05T09:00:00Z"}
    return {"metadata": meta, "spec": {"template": {"spec": {"containers": [container]}}}}


def pod() -> dict[str, Any]:
    return {"metadata": {}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}


def look(memo: Memo, obj: Any, *pods: Any, classes: Any = CLASSES) -> Sighting:
    obj["metadata"]["labels"] = {"weir.dev/queue": "q"}
    owners = [{"uid": obj["metadata"]["uid"], "kind": "Job", "controller": True}]
    for each in pods:
        each["metadata"]["ownerReferences"] = owners
    (observed,) = compose([], pods, {"Job": [obj]}, Circumstances(classes), memo).workloads
    return observed


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


class Reads:
    """How often an object's own words were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, asked = 0, RoleAdapter.demand_of

        def count(adapter: RoleAdapter, *args: Any) -> Any:
            self.count += 1
            return asked(adapter, *args)

        monkeypatch.setattr(RoleAdapter, "demand_of", count)


def version(generation: int = 1, gpus: str = "1", **meta: Any) -> dict[str, Any]:
    made = job()
    made["metadata"] |= {"generation": generation, **meta}
    made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = (
        gpus
    )
    return made


def test_new_status_alone_is_read_without_the_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    memo, reads = Memo(), Reads(monkeypatch)
    look(memo, version())
    ended = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}

    observed = look(memo, {**version(), **ended})

    assert (observed.outcome, observed.gpus, reads.count) == ("succeeded", 1000, 1)


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(version(2, "2"), id="spec"),
        pytest.param(version(1, "2", annotations={"weir.dev/min-members": "1"}), id="annotations"),
    ],
)
def test_new_words_are_read_anew(after: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    memo, reads = Memo(), Reads(monkeypatch)
    look(memo, version())

    assert (look(memo, after).gpus, reads.count) == (2000, 2)


def of_template(uid: str, **meta: Any) -> dict[str, Any]:
    """One of many Jobs of a template, with what the API server puts on each."""
    made = version(1, uid=uid, name=uid, **meta)
    own = {"controller-uid": uid, "batch.kubernetes.io/job-name": uid}
    made["spec"] |= {"selector": {"matchLabels": own}}
    made["spec"]["template"]["metadata"] = {"labels": own}
    return made


def test_jobs_of_one_template_have_their_words_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    memo, reads = Memo(), Reads(monkeypatch)
    said = {"annotations": {"weir.dev/reason": "behind"}}
    each = [
        look(memo, of_template("a")), look(memo, of_template("b")), look(memo, of_template("c", **said))
    ]  # fmt: skip

    assert ([one.name for one in each], [one.gpus for one in each]) == (["a", "b", "c"], [1000] * 3)
    assert reads.count == 1


def _apart_from_its_own_kind() -> dict[str, Any]:
    other = of_template("b")
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"job-name": "b"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    other["spec"]["template"]["spec"]["affinity"] = {"podAntiAffinity": required}
    return other


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(of_template("b", namespace="other"), id="namespace"),
        pytest.param(of_template("b", annotations={"weir.dev/original": "{}"}), id="admitted"),
        pytest.param(of_template("b", annotations={"weir.dev/min-members": "1"}), id="annotation"),
        pytest.param(_apart_from_its_own_kind(), id="affinity"),
    ],
)
def test_job_that_asks_otherwise_has_its_own_words_read(
    other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    memo, reads = Memo(), Reads(monkeypatch)
    look(memo, of_template("a"))
    look(memo, other)

    assert reads.count == 2


def test_other_classes_have_words_read_anew() -> None:
    memo, obj = Memo(), version()
    look(memo, obj)

    assert look(memo, {**obj}, classes=()).gpu_classes == ()


def test_object_without_a_generation_is_read_whole_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memo, reads = Memo(), Reads(monkeypatch)
    look(memo, job())

    look(memo, job())

    assert reads.count == 2


def test_what_is_gone_is_forgotten() -> None:
    memo, obj = Memo(), job()
    first = look(memo, obj)
    shown(memo)

    assert look(memo, obj) is not first


def shown(memo: Memo, *objects: Any, pods: Any = (), sets: Any = ()) -> list[str]:
    held = {"Job": list(objects), "JobSet": list(sets)}
    found = compose([], list(pods), held, Circumstances(CLASSES), memo)
    return [observed.name for observed in found.workloads]


def queued(uid: str, **meta: Any) -> dict[str, Any]:
    made = job()
    made["metadata"] |= {"uid": uid, "name": uid, "labels": {"weir.dev/queue": "q"}, **meta}
    return made


def test_retired_is_left_out_until_it_changes_or_runs_again() -> None:
    memo, old, other = Memo(), queued("old"), queued("other")
    shown(memo, old, other)
    memo.retire(["old"])

    assert shown(memo, old, other) == ["other"]
    assert shown(memo, old, other) == ["other"]
    assert shown(memo, dict(old), other) == ["old", "other"]
    memo.retire(["old"])
    back = pod()
    back["metadata"] = {"uid": "p", "ownerReferences": [{"uid": "other", "kind": "Job"}]}
    assert shown(memo, old, other, pods=[back]) == ["old", "other"]


def test_owner_that_is_seen_later_takes_its_parts_in() -> None:
    memo, part = Memo(), queued("part", ownerReferences=[{"uid": "whole", "kind": "JobSet"}])
    whole = queued("whole")
    whole["spec"] = {"replicatedJobs": [{"name": "r", "replicas": 1, "template": job()}]}

    assert shown(memo, part) == ["part"]
    assert shown(memo, part, sets=[whole]) == ["whole"]
    assert shown(memo, part) == ["part"]


def test_job_makes_no_other_jobs_whatever_they_say() -> None:
    part = queued("part", ownerReferences=[{"uid": "whole", "kind": "Job"}])
    assert shown(Memo(), part, queued("whole")) == ["part", "whole"]


def test_younger_seen_first_stands_behind_those_that_are_older() -> None:
    memo = Memo()
    at = {name: f"2026-01-05T09:00:0{second}Z" for second, name in enumerate("abcdef")}
    made = {name: queued(name, creationTimestamp=stamp) for name, stamp in at.items()}

    assert shown(memo, *(made[n] for n in "ae")) == ["a", "e"]
    assert shown(memo, *(made[n] for n in "aefcd")) == ["a", "c", "d", "e", "f"]
    assert shown(memo, *(made[n] for n in "afcdb")) == ["a", "b", "c", "d", "f"]
    made["f"] = queued("f", creationTimestamp=at["b"])
    assert shown(memo, *(made[n] for n in "afcdb")) == ["a", "b", "f", "c", "d"]


def test_object_that_leaves_its_queue_is_shown_no_more() -> None:
    memo, one = Memo(), queued("one")
    assert shown(memo, one) == ["one"]

    assert shown(memo, queued("one", labels={})) == []
    assert shown(memo, one) == ["one"]
