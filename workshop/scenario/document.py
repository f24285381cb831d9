"""The scenario document (what a YAML or JSON reader returned) as an organisation and its cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from scheduling.engine import document as snapshots
from scheduling.engine.document.reader import EXPECTED, REMEDIES
from scheduling.engine.model import MILLI, Fault, Snapshot, SnapshotError

from .model import Kind, Organisation, RunTime, Service, Size, Source
from .schema import KindDoc, ScenarioDoc, SizeDoc, SourceDoc


class ScenarioError(SnapshotError):
    """A scenario that cannot be; nothing of it is used."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """``cluster.now`` is when it begins."""

    cluster: Snapshot
    organisation: Organisation


def parse(document: Any) -> Scenario:
    """Raises ScenarioError with a fault for each place that cannot be: unknown keys, wrong types and ranges,
    names that refer to nothing, gangs that fit on no node."""
    try:
        doc = ScenarioDoc.model_validate(document)
    except ValidationError as error:
        raise ScenarioError(fault_of(line) for line in error.errors()) from None
    try:
        cluster = snapshots.parse(doc.cluster)
    except SnapshotError as error:
        raise ScenarioError(
            fault._replace(path=f"cluster.{fault.path}") for fault in error.faults
        ) from None
    faults = [*contradictions(doc), *strangers(doc, cluster)]
    if faults:
        raise ScenarioError(faults)
    return Scenario(cluster, organisation_of(doc, cluster))


def fault_of(line: Any) -> Fault:
    """One error of pydantic."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in line["loc"])
    missing = line["type"] == "missing"
    text = EXPECTED.get(line["type"])
    expected = text.format(**line.get("ctx", {})) if text else str(line["msg"])
    return Fault(
        "".join(steps).lstrip(".") or "document",
        "nothing" if missing else repr(line["input"])[:80],
        expected,
        REMEDIES.get(line["type"], "correct it; docs/scenarios.md says what may stand there"),
    )


def contradictions(doc: ScenarioDoc) -> Iterator[Fault]:
    """Least above most, and more than all."""
    for number, kind in enumerate(doc.kinds):
        at = f"kinds[{number}]"
        for row, size in enumerate(kind.sizes):
            yield from ordered(f"{at}.sizes[{row}].most", size.members, size.most)
        yield from ordered(f"{at}.run_time.most_s", kind.run_time.least_s, kind.run_time.most_s)
        if kind.sweep:
            yield from ordered(f"{at}.sweep.most", kind.sweep.fewest, kind.sweep.most)
        ending_early = kind.failing + kind.cancelled
        if ending_early > 1:
            expected = "failing and cancelled to be at most 1 together"
            yield Fault(f"{at}.failing", f"{ending_early:g} together", expected, "lower one")
    for number, service in enumerate(doc.services):
        yield from ordered(f"services[{number}].most", service.least, service.most)


def ordered(path: str, least: int, most: int | None) -> Iterator[Fault]:
    if most is not None and most < least:
        yield Fault(path, str(most), f"at least {least}, the fewest", "raise it or lower those")


def strangers(doc: ScenarioDoc, cluster: Snapshot) -> Iterator[Fault]:
    """Names that the cluster or the scenario does not know, and pods that no node of a class could hold."""
    known = {
        "queue": leaves(cluster),
        "GPU class": largest_nodes(cluster),
        "priority class": {each.name for each in cluster.priority_classes},
        "kind": {kind.name for kind in doc.kinds},
    }
    for path, what, name in references(doc):
        if name not in known[what]:
            there = ", ".join(sorted(known[what])) or "none"
            yield Fault(path, repr(name), f"a {what} that there is: {there}", "name one of those")
    largest = largest_nodes(cluster)
    for path, gpu_class, gpus in pods(doc):
        if gpus > largest.get(gpu_class, gpus):
            expected = f"at most {largest[gpu_class]}, what the largest node of {gpu_class} has"
            yield Fault(path, str(gpus), expected, "ask for fewer, or for more members")


def leaves(cluster: Snapshot) -> set[str]:
    parents = {queue.parent for queue in cluster.queues}
    return {queue.name for queue in cluster.queues if queue.name not in parents}


def largest_nodes(cluster: Snapshot) -> dict[str, int]:
    """GPU class -> whole GPUs of its largest node."""
    found = {each.name: 0 for each in cluster.gpu_classes}
    for node in cluster.nodes:
        found[node.gpu_class] = max(found[node.gpu_class], node.gpus // MILLI)
    return found


def references(doc: ScenarioDoc) -> Iterator[tuple[str, str, str]]:
    """(path, what it names, the name)."""
    for number, kind in enumerate(doc.kinds):
        at = f"kinds[{number}]"
        for row, name in enumerate(kind.gpu_classes):
            yield f"{at}.gpu_classes[{row}]", "GPU class", name
        for name in kind.priority_classes:
            yield f"{at}.priority_classes.{name}", "priority class", name
    for number, source in enumerate(doc.sources):
        at = f"sources[{number}]"
        yield f"{at}.queue", "queue", source.queue
        for name in source.kinds:
            yield f"{at}.kinds.{name}", "kind", name
        for name in (*source.demand, *source.fallback):
            part = "demand" if name in source.demand else "fallback"
            yield f"{at}.{part}.{name}", "GPU class", name
        for first, others in source.fallback.items():
            for row, name in enumerate(others):
                yield f"{at}.fallback.{first}[{row}]", "GPU class", name
    for number, service in enumerate(doc.services):
        at = f"services[{number}]"
        yield f"{at}.queue", "queue", service.queue
        yield f"{at}.priority_class", "priority class", service.priority_class
        yield f"{at}.gpu_class", "GPU class", service.gpu_class


def pods(doc: ScenarioDoc) -> Iterator[tuple[str, str, int]]:
    """(path, class, GPUs of a pod)."""
    for number, kind in enumerate(doc.kinds):
        for row, size in enumerate(kind.sizes):
            for name in kind.gpu_classes:
                yield f"kinds[{number}].sizes[{row}].gpus", name, size.gpus
    for number, service in enumerate(doc.services):
        yield f"services[{number}].gpus", service.gpu_class, service.gpus


def organisation_of(doc: ScenarioDoc, cluster: Snapshot) -> Organisation:
    capacity = {each.name: 0.0 for each in cluster.gpu_classes}
    for node in cluster.nodes:
        capacity[node.gpu_class] += node.gpus / MILLI
    kinds = {kind.name: kind_of(kind) for kind in doc.kinds}
    return Organisation(
        sources=tuple(source_of(source, kinds) for source in doc.sources),
        capacity_gpus=capacity,
        load=doc.load,
        zone=ZoneInfo(doc.zone),
        services=tuple(Service(**service.model_dump()) for service in doc.services),
    )


def kind_of(doc: KindDoc) -> Kind:
    sweep = doc.sweep
    return Kind(
        name=doc.name,
        names=tuple(doc.stems),
        priority_classes=tuple(doc.priority_classes.items()),
        run_time=RunTime(**doc.run_time.model_dump()),
        sizes=tuple(size_of(size) for size in doc.sizes),
        on=tuple(doc.gpu_classes),
        rhythm=doc.rhythm,
        checkpoint_s=doc.checkpoint_s,
        sweep=(sweep.chance, sweep.fewest, sweep.most) if sweep else (0.0, 1, 1),
        failing=doc.failing,
        cancelled=doc.cancelled,
        cpus_per_gpu=0,
        memory_gib_per_gpu=0,
    )


def size_of(doc: SizeDoc) -> Size:
    return Size(doc.members, doc.gpus, doc.weight, doc.most)


def source_of(doc: SourceDoc, kinds: Mapping[str, Kind]) -> Source:
    return Source(
        queue=doc.queue,
        users=tuple(doc.users),
        demand=doc.demand,
        kinds=tuple((kinds[name], weight) for name, weight in doc.kinds.items()),
        fallback={first: tuple(others) for first, others in doc.fallback.items()},
    )
