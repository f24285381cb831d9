"""Devices that nodes offer and claims take, counted under the name of their class."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.adapters import ClassSpec, JobAdapter
from scheduling.cluster.vocabulary.devices import Devices, count

Json = dict[str, Any]
L40 = "deviceclass.resource.kubernetes.io/l40"
CLASSES = (ClassSpec("l40", L40, {}),)


def device_class(name: str = "l40", cel: str = "", **spec: Any) -> Json:
    selectors = [{"cel": {"expression": cel}}] if cel else []
    return {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}


def device(name: str, model: str = "L40", **more: Any) -> Json:
    return {"name": name, "attributes": {"model": {"string": model}}, **more}


def resource_slice(
    *devices: Json, node: str | None = "n1", driver: str = "gpu.example.com"
) -> Json:
    spec: Json = {"driver": driver, "devices": list(devices)}
    return {"metadata": {"name": "s"}, "spec": {**spec, **({"nodeName": node} if node else {})}}


def template(*requests: Json, name: str = "one") -> Json:
    spec = {"spec": {"devices": {"requests": list(requests)}}}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


def exactly(**more: Any) -> Json:
    return {"name": "gpu", "exactly": {"deviceClassName": "l40", **more}}


def test_devices_of_a_class_are_counted_by_node() -> None:
    found = count([device_class()], [resource_slice(device("a"), device("b"))], [])

    assert found.offered("n1") == {L40: 2000}
    assert found.offered("n2") == {}


@pytest.mark.parametrize(
    ("cel", "devices"),
    [
        ("device.driver == 'gpu.example.com'", 2),
        ('device.driver == "other.example.com"', 0),
        ("device.attributes['gpu.example.com'].model == 'L40'", 1),
        (
            "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].model == 'T4'",
            1,
        ),
        ("device.attributes['elsewhere.com'].model == 'L40'", 0),
        ("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('40Gi'))", 0),
    ],
)
def test_selector_decides_which_devices_are_of_a_class(cel: str, devices: int) -> None:
    offered = resource_slice(device("a"), device("b", "T4"))

    assert count([device_class(cel=cel)], [offered], []).offered("n1").get(L40, 0) == 1000 * devices


def test_tainted_device_is_not_offered() -> None:
    broken = device("a", taints=[{"key": "broken", "effect": "NoExecute"}])

    assert count([device_class()], [resource_slice(broken)], []).offered("n1") == {}


MIG = "deviceclass.resource.kubernetes.io/mig"


def partition(name: str, memory_gib: int, *, of: str, model: str = "L40") -> Json:
    drawn = {"counterSet": of, "counters": {"memory": {"value": f"{memory_gib}Gi"}}}
    return device(name, model, consumesCounters=[drawn])


def pool(*parts: Json, generation: int = 1) -> list[Json]:
    """Slices of one pool."""
    described = {"name": "n1", "generation": generation, "resourceSliceCount": len(parts)}
    return [{**part, "spec": {**part["spec"], "pool": described}} for part in parts]


def counters(**memory_gib: int) -> Json:
    """A slice that says how much memory each GPU has; devices are in others."""
    held = resource_slice()
    held["spec"]["sharedCounters"] = [
        {"name": name, "counters": {"memory": {"value": f"{amount}Gi"}}}
        for name, amount in memory_gib.items()
    ]
    return held


@pytest.mark.parametrize(
    ("sizes", "most"),
    [
        ({"whole": 40}, 1),
        ({"whole": 40, "a": 20, "b": 20}, 2),
        ({"whole": 40, "a": 10, "b": 10, "c": 10, "d": 10, "e": 10}, 4),
        ({"a": 30, "b": 20}, 1),
        ({"too-large": 41}, 0),
    ],
)
def test_partitions_are_counted_as_many_as_fit_their_gpu_at_once(
    sizes: dict[str, int], most: int
) -> None:
    parts = [partition(name, size, of="gpu-0") for name, size in sizes.items()]
    slices = pool(counters(**{"gpu-0": 40}), resource_slice(*parts))

    assert count([device_class()], slices, []).offered("n1") == {L40: 1000 * most}


def test_each_gpu_has_counters_of_its_own() -> None:
    parts = [partition(f"{gpu}-{n}", 20, of=gpu) for gpu in ("g0", "g1") for n in range(3)]
    slices = pool(counters(g0=40, g1=60), resource_slice(*parts))

    assert count([device_class()], slices, []).offered("n1") == {L40: 5000}


def test_gpu_that_is_whole_for_one_class_is_not_cut_up_for_the_next() -> None:
    classes = [
        device_class(cel="device.attributes['gpu.example.com'].model == 'L40'"),
        device_class("mig", cel="device.attributes['gpu.example.com'].model == 'MIG'"),
    ]
    parts = [partition(f"m{n}", 10, of="g0", model="MIG") for n in range(4)]
    slices = pool(counters(g0=40), resource_slice(partition("g0", 40, of="g0"), *parts))
    found = count(classes, slices, [])

    assert found.offered("n1", [L40, MIG]) == {L40: 1000, MIG: 0}
    assert found.offered("n1", [MIG, L40]) == {MIG: 4000, L40: 0}
    assert found.offered("n1", [MIG]) == {MIG: 4000}
    assert found.offered("n1") == {L40: 1000, MIG: 4000}


def test_device_that_two_classes_select_is_one_device() -> None:
    found = count([device_class(), device_class("mig")], [resource_slice(device("a"))], [])

    assert found.offered("n1", [L40, MIG]) == {L40: 1000, MIG: 0}


def test_slices_of_an_older_generation_of_their_pool_are_past() -> None:
    old = pool(resource_slice(device("a"), device("b")))
    new = pool(resource_slice(device("a")), generation=2)

    assert count([device_class()], [*old, *new], []).offered("n1") == {L40: 1000}


def test_device_that_names_its_own_node_is_there() -> None:
    offered = resource_slice(device("a", nodeName="n1"), device("b", nodeName="n2"), node=None)
    found = count([device_class()], [offered], [])

    assert (found.offered("n1"), found.offered("n2")) == ({L40: 1000}, {L40: 1000})


def test_class_with_an_extended_resource_name_goes_by_that_name() -> None:
    known = device_class(extendedResourceName="example.com/gpu")

    assert count([known], [resource_slice(device("a"))], []).offered("n1") == {
        "example.com/gpu": 1000
    }


@pytest.mark.parametrize(
    ("request_", "taken"),
    [
        (exactly(), 1000),
        (exactly(count=4), 4000),
        (exactly(adminAccess=True), 0),
        (exactly(deviceClassName="unknown"), 0),
        (
            {
                "name": "gpu",
                "firstAvailable": [
                    {"deviceClassName": "unknown"},
                    {"deviceClassName": "l40", "count": 2},
                ],
            },
            2000,
        ),
    ],
)
def test_claim_template_takes_what_it_requests(request_: Json, taken: int) -> None:
    claims = count([device_class()], [], [template(request_)]).claims("ns")

    assert claims["one"].get(L40, 0) == taken


def job(*claims: Json) -> Json:
    pod = {"containers": [{"name": "c"}], "resourceClaims": list(claims)}
    meta = {"uid": "u", "name": "w", "namespace": "ns", "creationTimestamp": "2026-01-05T09:00:00Z"}
    return {"metadata": meta, "spec": {"suspend": True, "template": {"spec": pod}}}


def observe(obj: Json, known: Devices) -> Any:
    return JobAdapter().observe(obj, (), CLASSES, known.claims("ns"))


def test_job_that_claims_devices_asks_for_them() -> None:
    known = count([device_class()], [], [template(exactly(count=2))])
    seen = observe(job({"name": "gpu", "resourceClaimTemplateName": "one"}), known)

    assert (seen.gpus, seen.gpu_classes, seen.fault) == (2000, ("l40",), "")


def test_job_that_shares_a_claim_or_names_none_that_is_there_says_so() -> None:
    known = count([device_class()], [], [])
    shared = observe(job({"name": "gpu", "resourceClaimName": "ours"}), known)
    missing = observe(job({"name": "gpu", "resourceClaimTemplateName": "two"}), known)

    assert "ResourceClaimTemplate" in shared.fault
    assert "There is no ResourceClaimTemplate two" in missing.fault


def test_job_that_claims_all_devices_of_a_node_says_so() -> None:
    known = count([device_class()], [], [template(exactly(allocationMode="All"))])
    seen = observe(job({"name": "gpu", "resourceClaimTemplateName": "one"}), known)

    assert "Set their count." in seen.fault
