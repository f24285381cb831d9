"""Tables: the columns that `kubectl get` prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workshop.testbed.server.kinds.clock import parse_stamp
from workshop.testbed.server.kinds.resources import Json, Resource
from workshop.testbed.server.store.store import Record

Cells = Callable[[Json, float], list[Any]]
"""Body and now (epoch seconds) to one row."""

_AGE = ("Age", 0)


def age(stamp: str | None, now: float) -> str:
    """Return the time since `stamp` the way kubectl writes it."""
    return duration(now - parse_stamp(stamp)) if stamp else "<unknown>"


def duration(seconds: float) -> str:
    """Return `seconds` in at most two units: 45s, 3m20s, 5h2m, 8d."""
    s = max(0, int(seconds))
    if s < 120:
        return f"{s}s"
    if s < 600:
        return f"{s // 60}m{s % 60}s" if s % 60 else f"{s // 60}m"
    if s < 3 * 3600:
        return f"{s // 60}m"
    if s < 8 * 3600:
        rest = s % 3600 // 60
        return f"{s // 3600}h{rest}m" if rest else f"{s // 3600}h"
    return f"{s // 3600}h" if s < 48 * 3600 else f"{s // 86400}d"


def _created(body: Json, now: float) -> str:
    return age(body["metadata"].get("creationTimestamp"), now)


def _job(body: Json, now: float) -> list[Any]:
    spec, status = body["spec"], body.get("status", {})
    done = status.get("succeeded", 0)
    wanted = spec.get("completions")
    completions = f"{done}/{wanted}" if wanted is not None else f"{done}/1"
    ran = ""
    if status.get("startTime"):
        end = status.get("completionTime")
        ran = duration((parse_stamp(end) if end else now) - parse_stamp(status["startTime"]))
    containers = spec["template"]["spec"].get("containers") or []
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    return [
        body["metadata"]["name"], job_state(body), completions, ran, _created(body, now),
        ",".join(c["name"] for c in containers), ",".join(c.get("image", "") for c in containers),
        ",".join(f"{k}={v}" for k, v in labels.items()),
    ]  # fmt: skip


def job_state(body: Json) -> str:
    """Return the STATUS column of a Job."""
    conditions = body.get("status", {}).get("conditions") or ()
    holding = {c["type"] for c in conditions if c["status"] == "True"}
    for name in ("Complete", "Failed"):
        if name in holding:
            return name
    if body["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for name in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if name in holding:
            return name
    return "Running"


def _pod(body: Json, now: float) -> list[Any]:
    spec, status = body["spec"], body.get("status", {})
    states = status.get("containerStatuses") or []
    ready = sum(bool(s.get("ready")) for s in states)
    restarts = sum(s.get("restartCount", 0) for s in states)
    return [
        body["metadata"]["name"], f"{ready}/{len(spec.get('containers') or ())}",
        _pod_state(body), str(restarts), _created(body, now), status.get("podIP", "<none>"),
        spec.get("nodeName", "<none>"), status.get("nominatedNodeName", "<none>"), "<none>",
    ]  # fmt: skip


def _pod_state(body: Json) -> str:
    if body["metadata"].get("deletionTimestamp"):
        return "Terminating"
    status = body.get("status", {})
    for condition in status.get("conditions") or ():
        if condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    states = [s.get("state", {}) for s in status.get("containerStatuses") or ()]
    for state in states:
        if reason := (state.get("terminated") or state.get("waiting") or {}).get("reason"):
            return str(reason)
    return str(status.get("phase", "Pending"))


def _node(body: Json, now: float) -> list[Any]:
    status, labels = body.get("status", {}), body["metadata"].get("labels") or {}
    conditions = {c["type"]: c["status"] for c in status.get("conditions") or ()}
    state = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    if body.get("spec", {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = ",".join(k.removeprefix(prefix) for k in labels if k.startswith(prefix))
    version = status.get("nodeInfo", {}).get("kubeletVersion", "")
    return [body["metadata"]["name"], state, roles or "<none>", _created(body, now), version]


def _namespace(body: Json, now: float) -> list[Any]:
    return [body["metadata"]["name"], body["status"]["phase"], _created(body, now)]


def _event(body: Json, now: float) -> list[Any]:
    seen = body.get("lastTimestamp") or body.get("eventTime") or body.get("firstTimestamp")
    seen = seen or body["metadata"].get("creationTimestamp")
    involved = body.get("involvedObject") or {}
    about = f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"
    return [
        age(seen, now), body.get("type"), body.get("reason"), about, body.get("message", "").strip(),
        body["metadata"]["name"],
    ]  # fmt: skip


def _priority_class(body: Json, now: float) -> list[Any]:
    policy = body.get("preemptionPolicy", "")
    default = bool(body.get("globalDefault"))
    return [body["metadata"]["name"], body["value"], default, _created(body, now), policy]


def _quota(body: Json, now: float) -> list[Any]:
    hard = (body.get("spec") or {}).get("hard") or {}
    used = (body.get("status") or {}).get("used") or {}
    parts = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = ", ".join(text for name, text in parts.items() if name.startswith("limits."))
    requests = ", ".join(text for name, text in parts.items() if not name.startswith("limits."))
    return [body["metadata"]["name"], requests, limits, _created(body, now)]


def _lease(body: Json, now: float) -> list[Any]:
    holder = (body.get("spec") or {}).get("holderIdentity", "")
    return [body["metadata"]["name"], holder, _created(body, now)]


def _budget(body: Json, now: float) -> list[Any]:
    spec, status = body.get("spec") or {}, body.get("status") or {}
    return [
        body["metadata"]["name"], str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")), status.get("disruptionsAllowed", 0),
        _created(body, now),
    ]  # fmt: skip


def _plain(body: Json, now: float) -> list[Any]:
    return [body["metadata"]["name"], _created(body, now)]


_NAME = ("Name", 0)
_PLAIN: tuple[list[tuple[str, int]], Cells] = ([_NAME, _AGE], _plain)
_KINDS: dict[str, tuple[list[tuple[str, int]], Cells]] = {
    "Job": (
        [_NAME, ("Status", 0), ("Completions", 0), ("Duration", 0), _AGE, ("Containers", 1),
         ("Images", 1), ("Selector", 1)], _job,
    ),
    "Pod": (
        [_NAME, ("Ready", 0), ("Status", 0), ("Restarts", 0), _AGE, ("IP", 1), ("Node", 1),
         ("Nominated Node", 1), ("Readiness Gates", 1)], _pod,
    ),
    "Node": ([_NAME, ("Status", 0), ("Roles", 0), _AGE, ("Version", 0)], _node),
    "Namespace": ([_NAME, ("Status", 0), _AGE], _namespace),
    "Event": (
        [("Last Seen", 0), ("Type", 0), ("Reason", 0), ("Object", 0), ("Message", 0), ("Name", 1)],
        _event,
    ),
    "PriorityClass": (
        [_NAME, ("Value", 0), ("Global-Default", 0), _AGE, ("PreemptionPolicy", 0)],
        _priority_class,
    ),
    "ResourceQuota": ([_NAME, ("Request", 0), ("Limit", 0), _AGE], _quota),
    "Lease": ([_NAME, ("Holder", 0), _AGE], _lease),
    "PodDisruptionBudget": (
        [_NAME, ("Min Available", 0), ("Max Unavailable", 0), ("Allowed Disruptions", 0), _AGE],
        _budget,
    ),
}  # fmt: skip


def wants_table(accept: str) -> bool:
    """Return whether a client asks for a table first."""
    first = accept.partition(",")[0]
    return "as=Table" in first and "g=meta.k8s.io" in first and "v=v1" in first


def table(
    resource: Resource, records: list[Record], now: float, metadata: Json, *, heads: bool = True
) -> Json:
    """Return `records` as a Table; watches repeat the rows but not the `heads`."""
    columns, cells = _KINDS.get(resource.kind, _PLAIN)
    kind = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    definitions = [
        {
            "name": name, "type": "string", "format": "name" if name == "Name" else "",
            "description": name, "priority": priority,
        }
        for name, priority in columns
    ]  # fmt: skip
    rows = [{"cells": cells(r.body, now), "object": _partial(r)} for r in records]
    return {**kind, "columnDefinitions": definitions if heads else None, "rows": rows}


def _partial(record: Record) -> Json:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": record.body["metadata"],
    }
