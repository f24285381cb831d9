"""The Job controller: pods for Jobs, counts for their status, an end for finished ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workshop.testbed.server.kinds.clock import parse_stamp, stamp
from workshop.testbed.server.kinds.errors import ApiError
from workshop.testbed.server.kinds.resources import JOBS, PODS, Json
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Event, Key, Record

from ..admission.limit_ranges import apply_limit_ranges
from ..admission.pod_security import check_pod_security
from ..admission.quotas import check_quotas
from ..admission.runtime_classes import apply_runtime_class
from ..verbs.delete import DeleteOptions, mark_deleted
from ..verbs.update import write
from .failure_policy import action_on
from .job_pods import new_pod, release, stop_pods, wanted_indexes
from .recorder import emit
from .runtime import After, owner_of
from .tally import Tally, condition, format_indexes, index_of, is_ready, parse_indexes, tally

SOURCE = "job-controller"
_FIRST_BACKOFF_S = 10.0
_LAST_BACKOFF_S = 600.0
_FIRST_REFUSAL_S = 1.0
_LAST_REFUSAL_S = 60.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a Job ends: the condition that says so, why, and the word for people."""

    kind: str
    """`Complete` or `Failed`."""
    reason: str
    message: str


class JobController:
    """Looks at one Job at a time; reads its pods through the index of owners."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._retry: dict[str, tuple[int, float]] = {}
        """By uid: failures in a row, and the epoch second of the latest."""
        self._refused: dict[str, tuple[int, float]] = {}
        """By uid: refusals of its pods in a row, and the epoch second of the latest."""
        self._gone: dict[Key, str] = {}
        """The uid of Jobs that were removed and whose pods have not been looked after yet."""

    def keys(self, event: Event) -> Iterable[Key]:
        """Return the Job that changed, or whose pod did."""
        record = event.record
        if record.resource is JOBS:
            if event.type == "DELETED":
                self._gone[record.key] = record.uid
            return (record.key,)
        if record.resource is not PODS or (found := owner_of(record, JOBS)) is None:
            return ()
        key, uid = found
        if self._world.store.by_uid(uid) is None:
            self._gone[key] = uid
        return (key,)

    def reconcile(self, key: Key, after: After) -> None:
        """One look at a Job.

        1. count what ended since, 2. judge whether the Job is over, 3. stop or create pods,
        4. write the status once, 5. release counted pods, 6. remember the next moment.
        """
        job = self._world.store.find(key)
        if job is None or "deletionTimestamp" in job.body["metadata"]:
            self._let_go(key, job)
            return
        pods = [p for p in self._world.store.owned_by(job.uid) if p.resource is PODS]
        status = dict(job.body.get("status") or {})
        if condition(status, "Complete") or condition(status, "Failed"):
            self._after_the_end(job, status, pods, after)
            return
        counted = tally(pods, patient="podFailurePolicy" in job.body["spec"])
        self._count(job, status, counted)
        verdict = self._judge(job, status, counted)
        self._start_or_suspend(job, status)
        self._manage(job, status, counted, verdict, after)
        if verdict is not None:
            self._conclude(job, status, counted, verdict)
        written = write(self._world, job, status=status)
        self._release([*counted.succeeded, *counted.failed])
        self._deadlines(written, status, after)

    def _let_go(self, key: Key, job: Record | None) -> None:
        """A Job on its way out counts nothing any more: its pods need not wait for that."""
        uid = job.uid if job is not None else self._gone.pop(key, "")
        self._refused.pop(uid, None)
        self._release(p for p in self._world.store.owned_by(uid) if p.resource is PODS)

    def _release(self, pods: Iterable[Record]) -> None:
        for pod in pods:
            release(self._world, pod)

    def _count(self, job: Record, status: Json, counted: Tally) -> None:
        spec = job.body["spec"]
        done = parse_indexes(status.get("completedIndexes", ""))
        for pod in counted.succeeded:
            index = index_of(pod)
            if index is not None:
                done.add(index)
        if spec.get("completionMode") == "Indexed":
            done = {index for index in done if index < spec["completions"]}
            status["completedIndexes"] = format_indexes(done)
            _set_count(status, "succeeded", len(done))
            if not done:
                status.pop("completedIndexes")
        else:
            _set_count(status, "succeeded", status.get("succeeded", 0) + len(counted.succeeded))
        self._count_failures(job, status, counted)

    def _count_failures(self, job: Record, status: Json, counted: Tally) -> None:
        """Indexes that shrinking took away do not count any more, nor what the Job's policy ignores."""
        spec = job.body["spec"]
        failures = [
            pod
            for pod in counted.failed
            if ((index := index_of(pod)) is None or index < spec["completions"])
            and action_on(spec, pod) != "Ignore"
        ]
        _set_count(status, "failed", status.get("failed", 0) + len(failures))
        if counted.succeeded:
            self._retry.pop(job.uid, None)
        elif failures:
            in_a_row = self._retry.get(job.uid, (0, 0.0))[0] + len(failures)
            self._retry[job.uid] = (in_a_row, self._world.clock.seconds())

    def _judge(self, job: Record, status: Json, counted: Tally) -> Verdict | None:
        spec = job.body["spec"]
        if condition(status, "FailureTarget"):
            target = next(c for c in status["conditions"] if c["type"] == "FailureTarget")
            return Verdict("Failed", target["reason"], target["message"])
        if any(action_on(spec, pod) == "FailJob" for pod in counted.failed):
            return Verdict("Failed", "PodFailurePolicy", "A pod failed as its policy forbids")
        restarts = _restarts(counted) if _on_failure(spec) else 0
        if status.get("failed", 0) + restarts > spec["backoffLimit"]:
            message = "Job has reached the specified backoff limit"
            return Verdict("Failed", "BackoffLimitExceeded", message)
        if self._overdue(spec, status):
            message = "Job was active longer than specified deadline"
            return Verdict("Failed", "DeadlineExceeded", message)
        return _completion(spec, status, counted)

    def _overdue(self, spec: Json, status: Json) -> bool:
        deadline, started = spec.get("activeDeadlineSeconds"), status.get("startTime")
        if deadline is None or not started or spec.get("suspend"):
            return False
        return self._world.clock.seconds() >= parse_stamp(started) + deadline

    def _start_or_suspend(self, job: Record, status: Json) -> None:
        suspended = bool(job.body["spec"].get("suspend"))
        was = condition(status, "Suspended")
        if suspended and not was:
            status.pop("startTime", None)
            self._set(status, "Suspended", "True", "JobSuspended", "Job suspended")
            emit(self._world, job, "Suspended", "Job suspended", source=SOURCE)
        elif not suspended and was:
            self._set(status, "Suspended", "False", "JobResumed", "Job resumed")
            emit(self._world, job, "Resumed", "Job resumed", source=SOURCE)
        if not suspended and not status.get("startTime"):
            status["startTime"] = self._world.clock.stamp()

    def _manage(
        self, job: Record, status: Json, counted: Tally, verdict: Verdict | None, after: After
    ) -> None:
        """Create what is missing, stop what is too much; write the counts of what is left."""
        spec = job.body["spec"]
        active = counted.active
        if verdict is not None or spec.get("suspend"):
            self._refused.pop(job.uid, None)
            over = verdict is not None
            counted.terminating += stop_pods(self._world, active, counted=over)
            active = []
        else:
            active = self._adjust(job, status, counted, after)
        if counted.active and not active:
            text = f"Deleted pods: {len(counted.active)}"
            emit(self._world, job, "SuccessfulDelete", text, source=SOURCE)
        gone = {pod.uid for pod in counted.terminating if not self._world.store.find(pod.key)}
        _set_count(status, "active", len(active))
        status["ready"] = sum(is_ready(pod) for pod in active)
        status["terminating"] = sum(pod.uid not in gone for pod in counted.terminating)
        status["uncountedTerminatedPods"] = {}

    def _adjust(self, job: Record, status: Json, counted: Tally, after: After) -> list[Record]:
        spec = job.body["spec"]
        active = counted.active
        wanted = spec["parallelism"]
        if spec.get("completions") is not None:
            wanted = min(wanted, spec["completions"] - status.get("succeeded", 0))
        elif status.get("succeeded"):
            wanted = min(wanted, len(active))
        if spec.get("podReplacementPolicy") == "Failed":
            wanted -= len(counted.terminating)
        surplus, missing = max(0, len(active) - wanted), max(0, wanted - len(active))
        done = parse_indexes(status.get("completedIndexes", ""))
        indexed = spec.get("completionMode") == "Indexed"
        if surplus or indexed:
            stopped = _choose_to_stop(active, surplus, spec, done)
            counted.terminating += stop_pods(self._world, stopped, counted=False)
            active = [pod for pod in active if pod not in stopped]
            missing = max(0, wanted - len(active))
        if missing and (resume := self._resume_at(job)) > self._world.clock.seconds():
            after(job.key, resume)
            return active
        return active + self._create(job, missing, active, done, after)

    def _resume_at(self, job: Record) -> float:
        """Return when pods may be made again: 10 s, 20 s, 40 s … up to 10 min after failures in a row,
        1 s, 2 s, 4 s … up to 1 min after refusals."""
        failed = _pause(self._retry.get(job.uid), _FIRST_BACKOFF_S, _LAST_BACKOFF_S)
        return max(failed, _pause(self._refused.get(job.uid), _FIRST_REFUSAL_S, _LAST_REFUSAL_S))

    def _create(
        self, job: Record, missing: int, active: list[Record], done: set[int], after: After
    ) -> list[Record]:
        indexes: list[int | None] = [None] * missing
        if job.body["spec"].get("completionMode") == "Indexed":
            taken = done | {i for pod in active if (i := index_of(pod)) is not None}
            indexes = list(wanted_indexes(job.body["spec"]["completions"], taken, missing))
        created: list[Record] = []
        try:
            for index in indexes:
                created.append(self._create_one(job, index))
        except ApiError as refusal:
            self._note_refusal(job, refusal, after)
        else:
            self._refused.pop(job.uid, None)
        if created:
            names = created[0].name if len(created) == 1 else f"{len(created)} pods"
            emit(self._world, job, "SuccessfulCreate", f"Created pod: {names}", source=SOURCE)
        return created

    def _create_one(self, job: Record, index: int | None) -> Record:
        """Raises ApiError (403) where a quota leaves no room, its runtime class none of its nodes, or its
        namespace's pod security forbids it."""
        body = new_pod(self._world, job, index)
        apply_runtime_class(self._world, body)
        apply_limit_ranges(self._world, body)
        check_pod_security(self._world, body)
        check_quotas(self._world, PODS, body)
        return self._world.store.insert(PODS, body)

    def _note_refusal(self, job: Record, refusal: ApiError, after: After) -> None:
        """Say why, and try again later: room is made by others."""
        times, _ = self._refused.get(job.uid, (0, 0.0))
        self._refused[job.uid] = (times + 1, self._world.clock.seconds())
        message = f"Error creating: {refusal.message}"
        emit(self._world, job, "FailedCreate", message, source=SOURCE, warning=True)
        after(job.key, self._resume_at(job))

    def _conclude(self, job: Record, status: Json, counted: Tally, verdict: Verdict) -> None:
        """Say how it ends at once, and that it has ended when the last pod is gone."""
        target = "SuccessCriteriaMet" if verdict.kind == "Complete" else "FailureTarget"
        self._set(status, target, "True", verdict.reason, verdict.message)
        if status["terminating"]:
            return
        self._set(status, verdict.kind, "True", verdict.reason, verdict.message)
        if verdict.kind == "Complete":
            status["completionTime"] = self._world.clock.stamp()
            emit(self._world, job, "Completed", "Job completed", source=SOURCE)
        else:
            emit(self._world, job, verdict.reason, verdict.message, source=SOURCE, warning=True)
        self._retry.pop(job.uid, None)

    def _deadlines(self, job: Record, status: Json, after: After) -> None:
        deadline = job.body["spec"].get("activeDeadlineSeconds")
        if deadline is not None and status.get("startTime"):
            when = parse_stamp(status["startTime"]) + deadline
            if when > self._world.clock.seconds():  # a past moment would ring for ever
                after(job.key, when)
        self._expire(job, status, after)

    def _after_the_end(self, job: Record, status: Json, pods: list[Record], after: After) -> None:
        counted = tally(pods)
        stop_pods(self._world, counted.active, counted=True)
        self._release([*counted.succeeded, *counted.failed])
        left = sum(self._world.store.find(pod.key) is not None for pod in counted.terminating)
        write(self._world, job, status={**status, "terminating": left})
        self._expire(job, status, after)

    def _expire(self, job: Record, status: Json, after: After) -> None:
        """Delete a Job whose time to live after its end is over."""
        ttl = job.body["spec"].get("ttlSecondsAfterFinished")
        if ttl is None or not (condition(status, "Complete") or condition(status, "Failed")):
            return
        ended = next(c for c in status["conditions"] if c["type"] in ("Complete", "Failed"))[
            "lastTransitionTime"
        ]
        when = parse_stamp(ended) + ttl
        current = self._world.store.find(job.key)
        if self._world.clock.seconds() < when:
            after(job.key, when)
        elif current is not None:
            mark_deleted(self._world, current, DeleteOptions(policy="Foreground"))

    def _set(self, status: Json, kind: str, value: str, reason: str, message: str) -> None:
        now = stamp(self._world.clock.seconds())
        old = status.get("conditions") or []
        same = next((c for c in old if c["type"] == kind and c["status"] == value), None)
        if same is not None:
            return
        new = {
            "type": kind, "status": value, "reason": reason, "message": message,
            "lastProbeTime": now, "lastTransitionTime": now,
        }  # fmt: skip
        status["conditions"] = [*(c for c in old if c["type"] != kind), new]


def _pause(row: tuple[int, float] | None, first_s: float, last_s: float) -> float:
    """Return the end of the pause after so many mishaps in a row, the latest at a moment."""
    if row is None:
        return 0.0
    times, latest = row
    return latest + min(first_s * 2.0 ** min(times - 1, 10), last_s)


def _set_count(status: Json, name: str, count: int) -> None:
    """Write a count the way a real server does: none at all instead of zero."""
    status.pop(name, None)
    if count:
        status[name] = count


def _on_failure(spec: Json) -> bool:
    return bool(spec["template"]["spec"].get("restartPolicy") == "OnFailure")


def _restarts(counted: Tally) -> int:
    return sum(
        container.get("restartCount", 0)
        for pod in counted.active
        for container in pod.body.get("status", {}).get("containerStatuses") or ()
    )


def _completion(spec: Json, status: Json, counted: Tally) -> Verdict | None:
    succeeded = status.get("succeeded", 0)
    if spec.get("completions") is None:
        over = succeeded > 0 and not counted.active
    else:
        over = succeeded >= spec["completions"]
    if over and not (spec.get("suspend") and spec.get("completions") is None):
        message = "Reached expected number of succeeded pods"
        return Verdict("Complete", "CompletionsReached", message)
    return None


def _choose_to_stop(active: list[Record], surplus: int, spec: Json, done: set[int]) -> list[Record]:
    """Return pods to stop: indexes out of range or done first, then those least far along."""
    if spec.get("completionMode") != "Indexed":
        ranked = sorted(active, key=lambda pod: (is_ready(pod), -pod.version))
        return ranked[:surplus]
    out = [p for p in active if (i := index_of(p)) is None or i >= spec["completions"] or i in done]
    rest = sorted(
        (p for p in active if p not in out), key=lambda pod: index_of(pod) or 0, reverse=True
    )
    return out + rest[: max(0, surplus - len(out))]
