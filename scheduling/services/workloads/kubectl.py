"""Command lines with which the owner of a workload looks into it; who may run them, the cluster says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduling.cluster.adapters import ADAPTERS
from scheduling.models import State, Workload, WorkloadType

POD_LABELS = {adapter.kind: adapter.pod_label for adapter in ADAPTERS}


@dataclass(frozen=True, slots=True)
class Command:
    what: str
    text: str


def commands_for(work: Workload) -> list[Command]:
    """Those that tell something in its state; a shell only into interactive work that runs."""
    return [Command(what, f"kubectl -n {work.namespace} {rest}") for what, rest in _lines(work)]


def _lines(work: Workload) -> Iterator[tuple[str, str]]:
    label = POD_LABELS.get(work.kind)
    one = f"{work.kind.lower()}/{work.name}"
    pods = f"-l {label}={work.name}" if label else one
    # A group of plain pods is no object that could be named.
    is_group = work.kind == "PodGroup"
    yield "Describe", f"describe pods {pods}" if is_group else f"describe {one}"
    yield "Events", "events" if is_group else f"events --for {one}"
    if not work.is_waiting:
        yield "Logs", f"logs {pods} --all-containers --prefix --tail=200"
    if work.type == WorkloadType.INTERACTIVE and work.state == State.RUNNING:
        first = f"$(kubectl -n {work.namespace} get pods {pods} -o name | head -n 1)"
        yield "Shell", f"exec -it {first if label else one} -- sh"
