"""What the pods of a workload wrote and what happened to them, read from the cluster in a person's name.

Nothing is kept, and nothing is read that the person could not read with kubectl: the cluster decides.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from scheduling.cluster.adapters import ADAPTERS
from scheduling.cluster.connection.client import Client, NotFoundError, Person
from scheduling.models import Workload
from scheduling.services.clusters.connection import acting_on
from scheduling.services.errors import ServiceError
from scheduling.services.workloads.submit import person_of

Json = dict[str, Any]

LINES = 200
MOST_LINES = 2000
MOST_BYTES = 256 * 1024
MOST_PODS = 500
MOST_EVENTS = 50
LONGEST_LINE = 2000
"""Characters of one line that are shown."""
SLACK = timedelta(seconds=1)
"""Stamps of the cluster are cut to whole seconds."""
JOB_NAME = "batch.kubernetes.io/job-name"
POD_LABELS = {adapter.kind: adapter.pod_label for adapter in ADAPTERS} | {"Job": JOB_NAME}
FAILED_FIRST = {"Failed": 0, "Running": 1, "Succeeded": 2, "Pending": 3}


@dataclass(frozen=True, slots=True)
class Pod:
    """A member of the gang; ``ended`` is how its container ended, in the cluster's words, or empty."""

    name: str
    node: str
    phase: str
    containers: tuple[str, ...]
    ended: str
    restarts: int

    @property
    def is_running(self) -> bool:
        return self.phase == "Running"


@dataclass(frozen=True, slots=True)
class Line:
    at: str
    """As the cluster stamped it (RFC 3339), or empty."""
    text: str


@dataclass(frozen=True, slots=True)
class Log:
    """The end of what one container wrote. ``pods`` are all that there are, those that failed first; without
    any, ``pod`` is empty. ``why_not`` says why there are no lines."""

    pods: tuple[Pod, ...]
    pod: str = ""
    container: str = ""
    lines: tuple[Line, ...] = ()
    why_not: str = ""
    is_live: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    at: datetime | None
    about: str
    is_warning: bool
    reason: str
    message: str
    count: int


def log(
    workload: Workload,
    *,
    user: str,
    pod: str = "",
    container: str = "",
    lines: int = LINES,
    previous: bool = False,
) -> Log:
    """The last ``lines`` of ``container`` of ``pod``; of the first that failed, or that runs, where none is
    named. ``previous`` is the container before its last restart.

    Raises ServiceError where the cluster refuses the person or does not answer, and for a pod or container
    that is none of the workload's (field 'pod' or 'container').
    """
    person = person_of(user)
    with acting_on(workload.cluster) as client:
        pods = _pods(client, workload, person)
        if not pods and not pod:
            return Log((), why_not=_no_pods(workload))
        chosen = _chosen(pods, pod)
        name = _container(chosen, container)
        if chosen.phase == "Pending":
            return Log(pods, chosen.name, name, why_not="The pod has not started yet.")
        query: dict[str, str | int] = {
            "container": name, "tailLines": min(lines, MOST_LINES), "timestamps": "true",
        }  # fmt: skip
        if previous:
            query["previous"] = "true"
        path = f"/api/v1/namespaces/{workload.namespace}/pods/{chosen.name}/log"
        try:
            text = client.tail(path, query, most=MOST_BYTES, as_person=person)
        except NotFoundError:
            gone = "The pod is gone from the cluster, and its log with it."
            return Log(pods, chosen.name, name, why_not=gone)
        found = tuple(_lines(text))
        why_not = "" if found else "It has written nothing yet."
        return Log(pods, chosen.name, name, found, why_not, is_live=chosen.is_running)


def events(workload: Workload, *, user: str, pods: Sequence[str] = ()) -> list[Event]:
    """Events of the workload's object and of ``pods``, the newest first. The cluster forgets them after an
    hour or so. Raises ServiceError where it refuses the person or does not answer."""
    person = person_of(user)
    path = f"/api/v1/namespaces/{workload.namespace}/events"
    chosen = [
        f"involvedObject.uid={workload.uid}",
        *(f"involvedObject.name={name}" for name in pods),
    ]
    found = []
    with acting_on(workload.cluster) as client:
        for selector in chosen:
            query: dict[str, str | int] = {"fieldSelector": selector, "limit": MOST_EVENTS}
            answer = client.request("GET", path, query=query, as_person=person, tries=2)
            found += [_event(item) for item in answer["items"]]
    dated = sorted((e for e in found if e.at), key=attrgetter("at"), reverse=True)
    return [*dated, *(e for e in found if not e.at)][:MOST_EVENTS]


def _pods(client: Client, workload: Workload, person: Person) -> tuple[Pod, ...]:
    path = f"/api/v1/namespaces/{workload.namespace}/pods"
    selector = _selector(client, workload, person)
    if not selector:
        return ()
    query: dict[str, str | int] = {"labelSelector": selector, "limit": MOST_PODS}
    items = client.request("GET", path, query=query, as_person=person, tries=2)["items"]
    found = (_pod(item) for item in items if _is_its(item, workload))
    return tuple(sorted(found, key=lambda p: (FAILED_FIRST.get(p.phase, 4), p.name)))


def _selector(client: Client, workload: Workload, person: Person) -> str:
    """Of its pods; of a kind whose pods bear no name of it, what its own object selects them by."""
    if label := POD_LABELS.get(workload.kind):
        return f"{label}={workload.name}"
    adapter = next((a for a in ADAPTERS if a.kind == workload.kind), None)
    if adapter is None:
        return ""
    try:
        found = client.request(
            "GET", adapter.path(workload.namespace, workload.name), as_person=person, tries=2
        )
    except NotFoundError:
        return ""
    labels = ((found.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def _is_its(pod: Json, workload: Workload) -> bool:
    """Not of another object that had the name before or has it since."""
    meta = pod["metadata"]
    owners = [o for o in meta.get("ownerReferences") or () if o.get("kind") == workload.kind]
    if owners:
        return any(o.get("uid") == workload.uid for o in owners)
    made = _moment(meta.get("creationTimestamp"))
    return made is None or made >= workload.submitted_at - SLACK


def _pod(item: Json) -> Pod:
    status, spec = item.get("status") or {}, item["spec"]
    states = status.get("containerStatuses") or []
    names = [c["name"] for c in (*spec["containers"], *(spec.get("initContainers") or ()))]
    return Pod(
        item["metadata"]["name"],
        spec.get("nodeName") or "",
        status.get("phase") or "Pending",
        tuple(names),
        next((said for state in states if (said := _ended(state))), ""),
        max((int(state.get("restartCount") or 0) for state in states), default=0),
    )


def _ended(state: Json) -> str:
    """'Error, exit code 1' of a container that has ended with one."""
    ended = (state.get("state") or {}).get("terminated") or (state.get("lastState") or {}).get(
        "terminated"
    )
    if not ended or not ended.get("exitCode"):
        return ""
    return f"{ended.get('reason') or 'Error'}, exit code {ended['exitCode']}"


def _chosen(pods: Sequence[Pod], named: str) -> Pod:
    for pod in pods:
        if not named or pod.name == named:
            return pod
    raise ServiceError(
        "no_such_pod",
        f"The cluster has no pod {clean(named)[:80]} of this workload any more; its log went with it.",
        "Choose one of those that are there." if pods else "Read the log where it is collected.",
        field="pod",
    )


def _container(pod: Pod, named: str) -> str:
    if named and named not in pod.containers:
        raise ServiceError(
            "no_such_container",
            f"Pod {pod.name} has no container {clean(named)[:80]}.",
            f"Choose one of: {', '.join(pod.containers)}.",
            field="container",
        )
    return named or pod.containers[0]


def _no_pods(workload: Workload) -> str:
    if workload.started_at is None and workload.is_waiting:
        return "It has not started, so there is no log yet."
    if workload.is_waiting:
        return "It waits: the pods of its last run are gone from the cluster, and their logs with them."
    return "Its pods are gone from the cluster, and their logs with them."


def _lines(text: bytes) -> Iterator[Line]:
    for raw in text.decode(errors="replace").removesuffix("\n").split("\n") if text else ():
        stamp, _, said = raw.partition(" ")
        if _moment(stamp) is None:  # cut off before, or of a server that stamps nothing
            stamp, said = "", raw
        # A bar of progress writes over its own line: what stands there last is what a terminal shows.
        yield Line(stamp, clean(said.rstrip("\r").rpartition("\r")[2])[:LONGEST_LINE])


def clean(text: str) -> str:
    """``text`` without sequences that colour a terminal or move its cursor, and what turns text around."""
    return "".join(_printable(_uncoloured(text)))


def _uncoloured(text: str) -> str:
    first, *rest = text.split("\x1b[")
    return first + "".join(part.lstrip("0123456789;?")[1:] for part in rest)


def _printable(text: Iterable[str]) -> Iterator[str]:
    for character in text:
        if character == "\t":
            yield "    "
        elif unicodedata.category(character) not in ("Cc", "Cf"):
            yield character


def _event(item: Json) -> Event:
    series = item.get("series") or {}
    stamps = (series.get("lastObservedTime"), item.get("lastTimestamp"), item.get("eventTime"))
    about = item.get("involvedObject") or {}
    return Event(
        next((at for stamp in stamps if (at := _moment(stamp))), None),
        f"{about.get('kind', '')} {about.get('name', '')}".strip(),
        item.get("type") == "Warning",
        clean(str(item.get("reason") or "")),
        clean(str(item.get("message") or ""))[:LONGEST_LINE],
        int(series.get("count") or item.get("count") or 1),
    )


def _moment(stamp: object) -> datetime | None:
    """Of an RFC 3339 stamp with a zone; None for anything else."""
    try:
        found = datetime.fromisoformat(str(stamp))
    except ValueError:
        return None
    return found if found.tzinfo else None
