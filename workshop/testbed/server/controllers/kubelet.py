"""The kubelet stand-in: pods on a node start, run for their annotated time, and end.

Annotations of a pod: `weir.dev/run-seconds` (default: for ever; counted per start),
`weir.dev/exit-code` (default 0), `weir.dev/checkpoint-seconds`: while it runs, the pod's
annotation `weir.dev/checkpointed-at` is written at that interval, and a Job that is suspended
and started again goes on from there (see `progress`). A node's annotation
`weir.dev/simulated-speed` is the factor by which work is done sooner there.
"""

from __future__ import annotations

from collections.abc import Iterable

from workshop.testbed.server.kinds.clock import parse_stamp, stamp
from workshop.testbed.server.kinds.resources import NODES, PODS, Json
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Event, Key, Record

from ..verbs.pods import disrupted, set_condition
from . import progress
from .runtime import After
from .scribe import Scribe, StoreScribe

RUN_SECONDS = "weir.dev/run-seconds"
EXIT_CODE = "weir.dev/exit-code"
CHECKPOINT_SECONDS = "weir.dev/checkpoint-seconds"
CHECKPOINTED_AT = "weir.dev/checkpointed-at"
NODE_SPEED = "weir.dev/simulated-speed"
"""Annotation of a node: how much faster than annotated its GPUs get work done; 1 where it says nothing."""
_KILLED = 143  # 128 + SIGTERM


class Kubelet:
    """All nodes' kubelets in one: a node has to exist, be Ready and hold the pod to act on it.

    It looks at the store of ``world`` and writes through ``scribe``. Work is done ``pace`` times
    as fast as its annotations say.
    """

    def __init__(
        self, world: World, startup_s: float = 1.0, scribe: Scribe | None = None, pace: float = 1.0
    ) -> None:
        self._world = world
        self._startup_s = startup_s
        self._pace = pace
        self._scribe = scribe or StoreScribe(world)

    def keys(self, event: Event) -> Iterable[Key]:
        """Return the pod that changed, or all pods of a node that became ready."""
        record = event.record
        if record.resource is PODS:
            return (record.key,) if record.body["spec"].get("nodeName") else ()
        gone = event.type == "DELETED"
        if record.resource is NODES and (gone or _ready(record) != _ready(event.previous)):
            return [
                pod.key
                for pod in self._world.store.listing(PODS)
                if pod.body["spec"].get("nodeName") == record.name
            ]
        return ()

    def reconcile(self, key: Key, after: After) -> None:
        """Start, watch over or end one pod, by the state it is in."""
        pod = self._world.store.find(key)
        if pod is None or not pod.body["spec"].get("nodeName"):
            return
        node = self._world.store.get(NODES, "", pod.body["spec"]["nodeName"])
        if node is None:
            self.lost(pod)
        elif "deletionTimestamp" in pod.body["metadata"]:
            self._terminate(pod, after)
        elif _ready(node):
            phase = pod.body.get("status", {}).get("phase", "Pending")
            if phase == "Pending":
                self._start(pod, node, after)
            elif phase == "Running" and not _ready(pod):
                self._affirm(pod)
            elif phase == "Running":
                self._run(pod, after)

    def lost(self, pod: Record) -> None:
        """A pod of a node that is gone has failed and is removed, as pod garbage collection does."""
        if not _ended(pod):
            why = "PodGC: node no longer exists"
            marked = disrupted(pod, "DeletionByPodGC", why, self._world.clock.stamp())
            pod = self._end(self._scribe.status(pod, marked), _KILLED, "NodeLost")
        self._scribe.remove(pod)

    def _terminate(self, pod: Record, after: After) -> None:
        """SIGTERM has been sent; at the end of the grace nothing is left."""
        self._save_progress(pod)
        end = parse_stamp(pod.body["metadata"]["deletionTimestamp"])
        if self._world.clock.seconds() < end:
            after(pod.key, end)
            return
        self._scribe.remove(pod if _ended(pod) else self._end(pod, _KILLED, "Error"))

    def _save_progress(self, pod: Record) -> None:
        pace = self._pace_of(pod)
        every = _checkpoint_s(pod.body["metadata"].get("annotations") or {}, pace)
        if every and not _ended(pod):
            started = _started(pod)[0]
            progress.save(self._world, self._scribe, pod, started=started, every=every, pace=pace)

    def _pace_of(self, pod: Record) -> float:
        """Seconds of work that a second on the pod's node gets done."""
        node = self._world.store.get(NODES, "", pod.body["spec"]["nodeName"])
        notes = (node.body["metadata"].get("annotations") or {}) if node else {}
        return self._pace * (_seconds(notes.get(NODE_SPEED)) or 1.0)

    def _start(self, pod: Record, node: Record, after: After) -> None:
        status = pod.body.get("status", {})
        bound = next(
            (c for c in status.get("conditions") or () if c["type"] == "PodScheduled"), None
        )
        since = parse_stamp((bound or {}).get("lastTransitionTime") or self._world.clock.stamp())
        if self._world.clock.seconds() < since + self._startup_s and bound is not None:
            after(pod.key, since + self._startup_s)
            return
        pod = progress.learn(self._world, self._scribe, pod)
        self._scribe.status(pod, self._running(pod, status))

    def _running(self, pod: Record, status: Json, restarts: int = 0) -> Json:
        now = self._world.clock.stamp()
        conditions = status.get("conditions") or []
        for kind in ("Initialized", "ContainersReady", "Ready", "PodScheduled"):
            conditions = set_condition(conditions, {"type": kind, "status": "True"}, now)
        address = f"10.{pod.version >> 16 & 255}.{pod.version >> 8 & 255}.{pod.version & 255}"
        states = [
            _container(c, {"running": {"startedAt": now}}, pod.uid, ready=True, restarts=restarts)
            for c in pod.body["spec"]["containers"]
        ]
        return {
            **status, "phase": "Running", "conditions": conditions, "hostIP": "127.0.0.1",
            "podIP": address, "podIPs": [{"ip": address}], "containerStatuses": states,
            "startTime": status.get("startTime", now),
        }  # fmt: skip

    def _affirm(self, pod: Record) -> None:
        """Its containers run, whatever others wrote of it while its node was not heard of."""
        status, now = pod.body["status"], self._world.clock.stamp()
        conditions = status.get("conditions") or []
        for kind in ("ContainersReady", "Ready"):
            conditions = set_condition(conditions, {"type": kind, "status": "True"}, now)
        self._scribe.status(pod, {**status, "conditions": conditions})

    def _run(self, pod: Record, after: After) -> None:
        annotations = pod.body["metadata"].get("annotations") or {}
        started, restarts = _started(pod)
        now, pace = self._world.clock.seconds(), self._pace_of(pod)
        run_s = _seconds(annotations.get(RUN_SECONDS))
        if run_s is not None:
            run_s = max(0.0, run_s - progress.resumed_s(pod)) / pace
            if now >= started + run_s:
                self._finish(pod, int(_seconds(annotations.get(EXIT_CODE)) or 0), restarts)
                return
            after(pod.key, started + run_s)
        self._checkpoint(pod, _checkpoint_s(annotations, pace), started, after)

    def _finish(self, pod: Record, code: int, restarts: int) -> None:
        policy = pod.body["spec"].get("restartPolicy")
        if policy == "Always" or (policy == "OnFailure" and code):
            status = pod.body["status"]
            self._scribe.status(pod, self._running(pod, status, restarts + 1))
        else:
            self._end(pod, code, "Error" if code else "Completed")

    def _end(self, pod: Record, code: int, reason: str) -> Record:
        now = self._world.clock.stamp()
        status = pod.body.get("status", {})
        conditions = status.get("conditions") or []
        for kind in ("Ready", "ContainersReady"):
            why = "PodFailed" if code else "PodCompleted"
            conditions = set_condition(
                conditions, {"type": kind, "status": "False", "reason": why}, now
            )
        started, restarts = _started(pod)
        ended = {
            "exitCode": code, "reason": reason, "finishedAt": now,
            "startedAt": stamp(started) if started else now,
        }  # fmt: skip
        states = [
            _container(c, {"terminated": ended}, pod.uid, ready=False, restarts=restarts)
            for c in pod.body["spec"]["containers"]
        ]
        phase = "Failed" if code else "Succeeded"
        parts = {"phase": phase, "conditions": conditions, "containerStatuses": states}
        return self._scribe.status(pod, {**status, **parts})

    def _checkpoint(self, pod: Record, every: float, started: float, after: After) -> None:
        if not every:
            return
        annotations = pod.body["metadata"].get("annotations") or {}
        done = int((self._world.clock.seconds() - started) // every)
        after(pod.key, started + (done + 1) * every)
        moment = stamp(started + done * every)
        if done > 0 and annotations.get(CHECKPOINTED_AT, "") < moment:
            self._scribe.annotate(self._world.store.find(pod.key) or pod, CHECKPOINTED_AT, moment)


def _checkpoint_s(annotations: Json, pace: float) -> float:
    return (_seconds(annotations.get(CHECKPOINT_SECONDS)) or 0.0) / pace


def _seconds(text: str | None) -> float | None:
    """Return the number in an annotation; what is no number counts as left out."""
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def _ready(record: Record | None) -> bool:
    """Whether a node or a pod is there and ready."""
    if record is None:
        return False
    conditions = record.body.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _ended(pod: Record) -> bool:
    return pod.body.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _started(pod: Record) -> tuple[float, int]:
    """Return the epoch second of the latest start (0: never) and how often it was restarted."""
    states = pod.body.get("status", {}).get("containerStatuses") or []
    if not states:
        return 0.0, 0
    moment = (states[0]["state"].get("running") or {}).get("startedAt")
    return (parse_stamp(moment) if moment else 0.0), int(states[0].get("restartCount", 0))


def _container(container: Json, state: Json, uid: str, *, ready: bool, restarts: int) -> Json:
    image = container.get("image", "")
    return {
        "name": container["name"], "state": state, "lastState": {}, "ready": ready,
        "started": ready, "restartCount": restarts, "image": image, "imageID": image,
        "containerID": f"weir://{uid}/{container['name']}",
    }  # fmt: skip
