"""What people do to workloads: each verb goes to the cluster's API in the person's own name.

Nothing is written to the database here: the cluster is the truth for workloads, and the next cycle
projects what it shows.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kubernetes.config import ConfigException

from scheduling.cluster import labels
from scheduling.cluster.adapters import ADAPTERS, Adapter
from scheduling.cluster.client import (
    ApiError,
    Client,
    ConflictError,
    InvalidError,
    NotFoundError,
    Person,
    UnreachableError,
)
from scheduling.models import Cluster, PriorityClass, Queue, State, Workload
from scheduling.models.workloads import WAITING
from scheduling.services.errors import ServiceError
from scheduling.services.workers import Address, address_of

Json = dict[str, Any]


def submit(cluster: Cluster, *, manifest: Mapping[str, Any], user: str) -> Json:
    """Create the Job that ``manifest`` describes as ``user`` (a user name), suspended.

    Sets ``spec.suspend`` and the annotation ``weir.dev/user``, whatever the manifest says, and the
    queue's namespace where it names none. Returns the object as the API server made it
    (``metadata.uid`` is the Workload's ``uid``). Raises ServiceError with the field at fault when the
    manifest is no Job of a leaf queue of this cluster, and with the server's own words when it refuses.
    """
    body, adapter = copy.deepcopy(dict(manifest)), _adapter_of(manifest)
    meta = body.get("metadata")
    if not isinstance(meta, dict):
        raise ServiceError("invalid", "The manifest has no metadata.", field="metadata")
    queue = _leaf(cluster, labels.queue_of(meta.get("labels")))
    meta.setdefault("namespace", queue.namespace or "default")
    meta["annotations"] = {**(meta.get("annotations") or {}), labels.USER: user}
    _unmark(meta["annotations"])
    if not isinstance(body.setdefault("spec", {}), dict):
        raise ServiceError("invalid", "The manifest's spec is no mapping.", field="spec")
    body = adapter.queued(body)
    with _talking_to(cluster) as client:
        return client.create(
            adapter.path(meta["namespace"], ""), body, as_person=_person(user, queue)
        )


def cancel(workload: Workload, *, user: str) -> None:
    """Delete the object; its pods get their grace. One that is gone already is no error.

    Raises ServiceError when the workload has finished or the server refuses.
    """
    _refuse_finished(workload)
    body: Json = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        # Another object of the same name, made since, is none of this person's.
        "preconditions": {"uid": workload.uid},
    }
    with _talking_to(workload.cluster) as client:
        try:
            client.delete(_path(workload), body, as_person=_person(user, workload.queue))
        except (NotFoundError, ConflictError):
            return


def hold(workload: Workload, *, user: str) -> None:
    """Keep a waiting workload from being admitted until ``release``.

    Raises ServiceError(code='not_waiting') when it has started meanwhile.
    """
    if workload.state not in WAITING:
        raise ServiceError(
            "not_waiting",
            f"{workload.name} does not wait: it is {workload.get_state_display().lower()}.",
            "Cancel it to stop it.",
        )
    _annotate(workload, {labels.HOLD: "true"}, user)


def release(workload: Workload, *, user: str) -> None:
    """Undo ``hold``, and a suspension by hand. Raises ServiceError when it has finished."""
    _refuse_finished(workload)
    _annotate(workload, {labels.HOLD: None}, user)


def set_priority_class(workload: Workload, *, name: str, user: str) -> None:
    """Give the workload another priority class.

    Raises ServiceError(field='priority_class') when there is none of that name.
    """
    _refuse_finished(workload)
    if not PriorityClass.objects.filter(name=name).exists():
        raise ServiceError(
            "unknown_priority_class",
            f"There is no priority class {name!r}.",
            "Choose one of the list.",
            field="priority_class",
        )
    patch: Json = {"metadata": {"labels": {labels.PRIORITY_CLASS: name}}}
    _patch(workload, patch, user)


def _adapter_of(manifest: Mapping[str, Any]) -> Adapter:
    kind, version = manifest.get("kind"), manifest.get("apiVersion")
    for adapter in ADAPTERS:
        if (kind, version) == (adapter.kind, adapter.api_version):
            return adapter
    raise ServiceError(
        "unknown_kind",
        f"The manifest is a {version or 'nameless'} {kind or 'object'}, which Weir does not queue.",
        "Submit a batch/v1 Job.",
        field="kind",
    )


def _leaf(cluster: Cluster, name: str) -> Queue:
    if not name:
        raise ServiceError(
            "no_queue",
            "The manifest names no queue.",
            f"Set the label {labels.QUEUE}.",
            field="queue",
        )
    queue = Queue.objects.filter(cluster=cluster, name=name, parent__isnull=False).first()
    if queue is None or queue.children.exists():
        what = "has queues below it" if queue else "does not exist"
        raise ServiceError(
            "unknown_queue",
            f"Queue {name!r} {what}.",
            "Name a queue at the end of a branch.",
            field="queue",
        )
    return queue


def _unmark(notes: Json) -> None:
    """A copied manifest of admitted work must not bring its admission along."""
    for note in labels.WRITTEN_BY_WEIR:
        notes.pop(note, None)


def _person(user: str, queue: Queue | None) -> Person:
    """``user`` with the groups that work in the queue: the portal has let them act on it already."""
    groups = set()
    while queue is not None:
        groups.add(queue.access_group)
        queue = queue.parent
    return Person(user, tuple(sorted(groups - {""})))


def _refuse_finished(workload: Workload) -> None:
    if workload.state == State.FINISHED:
        raise ServiceError("finished", f"{workload.name} has finished already.")


def _path(workload: Workload) -> str:
    adapter = next(a for a in ADAPTERS if a.kind == workload.kind)
    return adapter.path(workload.namespace, workload.name)


def _annotate(workload: Workload, notes: Json, user: str) -> None:
    _patch(workload, {"metadata": {"annotations": notes}}, user)


def _patch(workload: Workload, patch: Json, user: str) -> None:
    """A patch that only the very object accepts (its uid is the precondition)."""
    patch["metadata"]["uid"] = workload.uid
    with _talking_to(workload.cluster) as client:
        client.patch(_path(workload), patch, as_person=_person(user, workload.queue))


_clients: dict[Address, Client] = {}
_lock = threading.Lock()


@contextmanager
def _talking_to(cluster: Cluster) -> Iterator[Client]:
    """A shared client for ``cluster``; its refusals become ServiceErrors."""
    address = address_of(cluster)
    try:
        with _lock:
            client = _clients.get(address) or _clients.setdefault(address, Client.connect(cluster))
        yield client
    except (ConfigException, OSError) as error:
        raise ServiceError(
            "no_connection",
            f"Weir cannot connect to cluster {cluster.name}: {error}",
            "Ask an admin to check how the cluster is reached.",
        ) from error
    except ApiError as error:
        raise _translated(error, cluster) from error


def _translated(error: ApiError, cluster: Cluster) -> ServiceError:
    if isinstance(error, UnreachableError):
        return ServiceError(
            "no_answer", f"Cluster {cluster.name} does not answer.", "Try again in a minute."
        )
    if isinstance(error, NotFoundError):
        return ServiceError("gone", "The cluster has no such object any more.", "Reload the page.")
    if isinstance(error, ConflictError) and error.reason == "AlreadyExists":
        sentence = "There is a workload of that name already."
        return ServiceError("name_taken", sentence, "Choose another name.", field="name")
    if isinstance(error, InvalidError):
        field = error.causes[0][0] if error.causes else None
        return ServiceError("invalid", f"{error.message}.".replace("..", "."), field=field)
    if error.status == 403:
        return ServiceError(
            "forbidden", f"The cluster refuses: {error.message}", "Ask an admin for access."
        )
    return ServiceError("refused", f"The cluster refuses: {error.message}", "Try again.")
