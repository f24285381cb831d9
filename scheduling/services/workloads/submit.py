"""What people do to workloads: each verb goes to the cluster's API in the person's own name.

Nothing is written to the database here: the cluster is the truth for workloads, and the next cycle
projects what it shows.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from scheduling.cluster.adapters import ADAPTERS, Adapter, ClassSpec, Sighting, merging
from scheduling.cluster.adapters.podgroup import gather
from scheduling.cluster.connection.client import (
    ApiError,
    Client,
    ConflictError,
    NotFoundError,
    Person,
)
from scheduling.cluster.vocabulary import devices, labels, people, runtimes
from scheduling.cluster.vocabulary.devices import Claims
from scheduling.cluster.vocabulary.runtimes import Runtimes
from scheduling.models import MILLI, Cluster, PriorityClass, Queue, State, Workload
from scheduling.models.queues import RESERVED
from scheduling.models.workloads import WAITING
from scheduling.services.clusters.connection import acting_on, talking_to
from scheduling.services.errors import ServiceError, name_refused
from scheduling.services.events import announce
from scheduling.services.queues.judge import Rules, judge, priority_fault
from scheduling.services.workloads import edits, shapes
from scheduling.services.workloads.author import as_written, unmark

Json = dict[str, Any]

NOT_YET = {"uid": "", "creationTimestamp": "1970-01-01T00:00:00Z"}
"""What an API server gives an object when it makes it."""


def submit(cluster: Cluster, *, manifest: Mapping[str, Any], user: str) -> Json:
    """Create the object that ``manifest`` describes as ``user`` (a user name), to wait.

    Suspends it and sets the annotation ``weir.dev/user``, whatever the manifest says, and the
    queue's namespace where it names none. Returns the object as the API server made it
    (``metadata.uid`` is the Workload's ``uid``). Raises ServiceError with the field at fault when the
    manifest is of no kind that is queued or of no leaf queue here, and with the server's own words
    when it refuses.
    """
    adapter = _adapter_of(manifest)
    shapes.check(manifest)
    body = copy.deepcopy(dict(manifest))
    meta = body["metadata"]
    queue = _leaf(cluster, labels.queue_of(meta.get("labels")))
    meta.setdefault("namespace", queue.namespace or "default")
    meta["annotations"] = {**(meta.get("annotations") or {}), labels.USER: user}
    unmark(meta["annotations"])
    body["spec"] = body.get("spec") or {}
    with _readable(adapter):
        body = adapter.queued(body)
    where = adapter.path(meta["namespace"], "")
    person = person_of(user)
    with acting_on(cluster) as client:
        try:
            return client.create(where, body, as_person=person)
        except ConflictError as error:
            taken = adapter.path(meta["namespace"], str(meta.get("name", "")))
            if _is_another_queues(client, taken, queue, person):
                raise name_refused() from error
            raise


def _is_another_queues(client: Client, path: str, queue: Queue, person: Person) -> bool:
    """Whether what has the name waits in another queue or cannot be read by the person, who need not know
    of it then."""
    try:
        taken = client.request("GET", path, as_person=person)
    except ApiError:
        return True
    return labels.queue_of(taken["metadata"].get("labels")) != queue.name


def read(cluster: Cluster, manifest: Mapping[str, Any], *, in_reach: bool = True) -> Sighting:
    """What ``manifest`` would be as a workload of ``cluster``, whatever its kind, before it is created.

    Asks the cluster for claim templates where its pods name one, unless its namespace is not ``in_reach`` of
    whoever sends it: they learn nothing of what is there. Raises ServiceError for a kind that
    Weir does not queue, and for a manifest it cannot read.
    """
    adapter = _adapter_of(manifest)
    shapes.check(manifest)
    classes, body = _class_specs(cluster), copy.deepcopy(dict(manifest))
    unset = {"name": "", "namespace": ""}
    with _readable(adapter):
        body["metadata"] = {**unset, **body["metadata"], **NOT_YET}
        unmark(body["metadata"].get("annotations") or {})
        claims = _claims(cluster, body) if in_reach else {}
        kinds = _runtimes(cluster, body)
        return adapter.observe(adapter.queued(body), (), classes, claims, kinds)


@contextmanager
def _readable(adapter: Adapter) -> Iterator[None]:
    """A person's text of the wrong shape can fail at any step of reading."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"This {adapter.kind} cannot be read: {error}."
        raise ServiceError("invalid", what, "Correct the manifest.", field="spec") from error


def _class_specs(cluster: Cluster) -> list[ClassSpec]:
    known = cluster.gpu_classes.all()
    return [ClassSpec(c.name, c.resource_name, dict(c.node_labels)) for c in known]


def destination(manifest: Mapping[str, Any]) -> tuple[str, str]:
    """(queue, namespace) that ``manifest`` names, empty where it names none that can be read."""
    meta = manifest.get("metadata")
    if not isinstance(meta, dict):
        return "", ""
    said = meta.get("labels")
    named = labels.queue_of(said) if isinstance(said, dict) else ""
    return str(named), str(meta.get("namespace") or "")


def _claims(cluster: Cluster, manifest: Json) -> Claims:
    """What the claim templates of its namespace ask for; nothing is asked where it names none."""
    if '"resourceClaimTemplateName"' not in json.dumps(manifest, default=str):
        return {}
    namespace = manifest["metadata"]["namespace"] or _namespace(cluster, manifest)
    with talking_to(cluster) as client, suppress(NotFoundError):
        classes = client.get(devices.list_path("deviceclasses"))["items"]
        templates = client.get(devices.list_path("resourceclaimtemplates", namespace))["items"]
        return devices.count(classes, (), templates).claims(namespace)
    return {}


def _runtimes(cluster: Cluster, manifest: Json) -> Runtimes:
    """What runtime classes add to its pods; nothing is asked where it names none."""
    if '"runtimeClassName"' not in json.dumps(manifest, default=str):
        return {}
    with talking_to(cluster) as client, suppress(NotFoundError):
        return runtimes.read(client.get(runtimes.LIST_PATH)["items"])
    return {}


def _namespace(cluster: Cluster, manifest: Json) -> str:
    name = labels.queue_of(manifest["metadata"].get("labels"))
    queue = Queue.objects.filter(cluster=cluster, name=name).first()
    return (queue.namespace if queue else "") or "default"


def cancel(workload: Workload, *, user: str) -> None:
    """Delete the object; its pods get their grace. One that is gone already is no error.

    Raises ServiceError when the workload has finished or the server refuses.
    """
    _delete(workload, user)
    tell("work.cancelled", workload, user)


def cull(workload: Workload, idle_for: timedelta) -> None:
    """``cancel`` by the policy, of work whose GPUs idle: in the name of its owner, as Weir's own account may
    delete nobody's work."""
    _delete(workload, workload.user)
    facts = {"idle_s": idle_for.total_seconds(), "gpus": workload.gpus * workload.members / MILLI}
    tell("work.culled", workload, "", after=facts)


def _delete(workload: Workload, user: str) -> None:
    _refuse_finished(workload)
    person = person_of(user)
    with acting_on(workload.cluster) as client:
        for path, uid in _objects(client, workload, person):
            body: Json = {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Background",
                # Another object of the same name, made since, is none of this person's.
                "preconditions": {"uid": uid},
            }
            with suppress(NotFoundError, ConflictError):
                client.delete(path, body, as_person=person)


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
    tell("work.held", workload, user)


def release(workload: Workload, *, user: str) -> None:
    """Undo ``hold``, and a suspension by hand. Raises ServiceError when it has finished."""
    _refuse_finished(workload)
    _annotate(workload, {labels.HOLD: None}, user)
    tell("work.released", workload, user)


def set_priority_class(workload: Workload, *, name: str, user: str) -> None:
    """Give a workload that waits or runs another priority class.

    Raises ServiceError(field='priority_class') when there is none of that name, and when it is not one that
    both the workload's own user and ``user`` may have there.
    """
    _refuse_finished(workload)
    if not PriorityClass.objects.filter(name=name).exists():
        raise ServiceError(
            "unknown_priority_class",
            f"There is no priority class {name!r}.",
            "Choose one of the list.",
            field="priority_class",
        )
    for fault in _faults_as(workload, name, user):
        if fault.field == "priority_class":
            raise fault
    _patch(workload, {"labels": {labels.PRIORITY_CLASS: name}}, user)
    before = workload.priority_class.name if workload.priority_class else None
    tell("work.priority_set", workload, user, before={"class": before}, after={"class": name})


def tell(kind: str, workload: Workload, user: str, **changed: Any) -> None:
    """The cluster holds what was done, so it is told once that has answered."""
    edits.note(kind, workload, user)
    announce(
        kind,
        actor=user,
        cluster=workload.cluster,
        queue=workload.queue.path if workload.queue else "",
        subject=f"{workload.namespace}/{workload.name}",
        **changed,
    )


def _faults_as(workload: Workload, name: str, user: str) -> tuple[ServiceError, ...]:
    """What would forbid ``user`` to have it run with the priority class ``name``; nothing does outside the
    queues."""
    cluster, queue = workload.cluster, workload.queue
    if queue is None:
        return ()
    rules = Rules.of(cluster)
    own = judge(replace(observed(workload), priority_class=name), queue.path, rules).faults
    actors = priority_fault(user, queue.path, name, rules)
    return own if actors is None else (*own, actors)


def observed(workload: Workload) -> Sighting:
    """``workload`` as it stands in the cluster, read as if it waited. Raises ServiceError when it is gone."""
    adapter = next(a for a in ADAPTERS if a.kind == workload.kind)
    with talking_to(workload.cluster) as client:
        if adapter.resource == adapter.kind:
            return read(
                workload.cluster, client.get(adapter.path(workload.namespace, workload.name))
            )
        pods = client.get(adapter.path(workload.namespace, ""))["items"]
    for group, found in gather(pods):
        if group["metadata"]["uid"] == workload.uid:
            return adapter.observe(group, found, _class_specs(workload.cluster))
    raise ServiceError("gone", "The cluster has no such object any more.", "Reload the page.")


def manifest_of(workload: Workload) -> Json:
    """The object of ``workload`` as a person would submit it again: without what Weir or the cluster wrote.

    Raises ServiceError when it is gone, and for a group of plain pods, which is no one object.
    """
    adapter = next(a for a in ADAPTERS if a.kind == workload.kind)
    if adapter.resource != adapter.kind:
        raise ServiceError("many_objects", "A group of pods is no one object.")
    with talking_to(workload.cluster) as client:
        obj = client.get(adapter.path(workload.namespace, workload.name))
    resources = [c.resource_name for c in workload.cluster.gpu_classes.all()]
    with _readable(adapter):
        return as_written(merging.merged(obj, adapter.restoration(obj, resources, {})), adapter)


def _adapter_of(manifest: Mapping[str, Any]) -> Adapter:
    kind, version = manifest.get("kind"), manifest.get("apiVersion")
    for adapter in ADAPTERS:
        if (kind, version) == (adapter.kind, adapter.api_version) and adapter.resource == kind:
            return adapter
    raise ServiceError(
        "unknown_kind",
        f"The manifest is a {version or 'nameless'} {kind or 'object'}, which cannot be submitted here.",
        f"Submit one of: {', '.join(sorted(a.kind for a in ADAPTERS if a.resource == a.kind))}.",
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


def person_of(user: str) -> Person:
    """``user`` as the portal acts for them, which has let them act already.

    Raises ServiceError for a name that the cluster keeps for its own parts: they may do more than people.
    """
    if user.startswith(RESERVED) or not user.isprintable():
        raise ServiceError(
            "reserved_user",
            f"Nobody acts on a cluster by a name that begins with {RESERVED} or cannot be printed.",
            "Ask an admin for a user name of another form.",
        )
    return Person(people.PREFIX + user, (people.GROUP,))


def _refuse_finished(workload: Workload) -> None:
    if workload.state == State.FINISHED:
        raise ServiceError("finished", f"{workload.name} has finished already.")


def _objects(client: Client, workload: Workload, person: Person) -> list[tuple[str, str]]:
    """(path, uid) of the object, or of each pod of a group of plain pods."""
    adapter = next(a for a in ADAPTERS if a.kind == workload.kind)
    if adapter.resource == adapter.kind:
        return [(adapter.path(workload.namespace, workload.name), workload.uid)]
    pods = client.request("GET", adapter.path(workload.namespace, ""), as_person=person)["items"]
    return [
        (adapter.path(workload.namespace, pod["metadata"]["name"]), pod["metadata"]["uid"])
        for group, found in gather(pods)
        if group["metadata"]["uid"] == workload.uid
        for pod in found
    ]


def _annotate(workload: Workload, notes: Json, user: str) -> None:
    _patch(workload, {"annotations": notes}, user)


def _patch(workload: Workload, meta: Json, user: str) -> None:
    """A patch that only the very object accepts (its uid is the precondition)."""
    person = person_of(user)
    with acting_on(workload.cluster) as client:
        for path, uid in _objects(client, workload, person):
            client.patch(path, {"metadata": {**meta, "uid": uid}}, as_person=person)
