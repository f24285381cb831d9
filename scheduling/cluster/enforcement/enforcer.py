"""From a committed plan to writes: each an act that is decided on the object as it is at that moment.

An act is idempotent. It looks at the object, says which patch would make it so (None: it is so already,
or no longer applies), and the write carries the resourceVersion it was decided on. On a conflict the
object is read again and the act decides anew; on 404 it is dropped; whatever else fails is left to the
next cycle, which sees the cluster as it is then.

Acts are waited for, but for starts that the next plan may count on before they are written (``starts``).

An object that is mirrored whole is sent back whole with the patch in it. For a patch an API server first
writes what it has as JSON, which makes it half as much work again as a PUT.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from scheduling.cluster.adapters import Adapter, Sighting
from scheduling.cluster.adapters.base import DELETE
from scheduling.cluster.adapters.merging import merged
from scheduling.cluster.connection.client import (
    CONNECTIONS,
    ApiError,
    Client,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from scheduling.cluster.connection.lease import Lease, LeaseLostError
from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.connection.reflector import key_of
from scheduling.cluster.enforcement.events import Event, Voice, post
from scheduling.cluster.enforcement.starts import Answer, Sent, Starts

Json = dict[str, Any]
Decide = Callable[[Json], Json | None]
Outcome = str | ApiError
"""The method that an act was sent with, empty where nothing had to be; or why it was not taken."""

log = logging.getLogger(__name__)

CONFLICTS = 5
"""Times an act is decided anew before the next cycle has to."""
BATCH = 256
"""Acts handed out together: the last of them are waited for before the next begin."""
TELLING = 64
"""Acts whose time tells the pace of writing."""
WORDS = 10
"""Words, and Events, between two looks whether there is something better to do."""


@dataclass(frozen=True, slots=True)
class Act:
    """One write on the object of ``target``: ``decide`` returns a merge patch or nothing.

    ``before`` Events are posted first (a fault then repeats a harmless Event), ``after`` only when
    the patch was written, at a bounded rate and behind all acts.
    """

    adapter: Adapter
    target: Sighting
    decide: Decide
    before: tuple[Event, ...] = ()
    after: tuple[Event, ...] = ()
    workload_uid: str = ""
    """Whose act it is, where ``target`` is only a part of the workload."""
    is_foreseen: bool = False
    """The plan counts on it: once it is written there is nothing to plan anew."""
    purpose: str = ""
    """What it does to the workload, in a word or two; empty for words, which do nothing."""
    becomes: Sighting | None = None
    """What the workload is once it is written, where plans may count on that while it is on its way."""
    cycle: int = 0
    """Number of the cycle that decided it."""


@dataclass(frozen=True, slots=True)
class Write:
    """What came of one act that has a purpose. ``method`` is empty where nothing had to be sent."""

    kind: str
    name: str
    workload_uid: str
    purpose: str
    method: str
    code: int
    """The API server's status where it did not take it; 0 where it did."""
    message: str
    took_ms: float
    cycle: int = 0


@dataclass(slots=True)
class Report:
    """What came of the acts: counts, and what failed (key -> the API server's message).

    ``said`` are those of the written that were words.
    ``refused`` are those that would fail again as they stand: uid -> generation and message.
    ``writes`` tells of each act, but not of words.
    """

    written: int = 0
    dropped: int = 0
    said: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)


class UnreadableError(ApiError):
    """The object holds what the act cannot make sense of: it would fail again as it stands."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(0, "Unreadable", f"Weir cannot read it: {type(fault).__name__}: {fault}")


class Enforcer:
    """Carries out acts on one cluster over a bounded number of connections."""

    def __init__(
        self, client: Client, mirror: Mirror, lease: Lease, call: Callable[[], None] = lambda: None
    ) -> None:
        self._client = client
        self._mirror = mirror
        self._lease = lease
        self._voice = Voice()
        self._pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="enforce")
        self.starts = Starts(self._timed, call)
        self._unheard: list[Future[object]] = []
        """Words of the last cycle that nobody waited for."""
        self._pace = 0.0
        """Acts a second, of the last plan that had many."""

    def close(self) -> None:
        """Begin nothing more, and wait for what is on its way: nobody else may write before."""
        self.starts.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def writable(self, seconds: float) -> int:
        """Acts that take so long at the pace of late; 0 while nothing is known of that."""
        return int(seconds * self._pace)

    def carry_out(
        self,
        phases: Iterable[Sequence[Act]],
        words: Sequence[Act] = (),
        *,
        is_called: Callable[[], bool] = lambda: False,
        patience_s: float = 0.0,
    ) -> Report:
        """Carry out the acts of each phase, all of one before the next.

        Starts that plans may count on are waited for ``patience_s`` and then until ``is_called`` says that a
        cycle is waiting; ``heard`` reports those that were left. ``words`` and Events come last and only
        until then; what is not said is left to that cycle. Raises LeaseLostError, with the rest not done,
        when another worker may be writing.
        """
        report, began, number = Report(), time.monotonic(), 0
        sent: Sent = {}
        for acts in phases:
            sent = {**sent, **self.starts.begin(act for act in acts if act.becomes)}
            others = [act for act in acts if not act.becomes]
            number += len(others)
            for start in range(0, len(others), BATCH):
                self._run(others[start : start + BATCH], report)
        for act, answer in self.starts.wait(sent, is_called=is_called, patience_s=patience_s):
            _note(act, answer.result(), report)
            number += 1
        if number >= TELLING:
            self._pace = number / (time.monotonic() - began)
        wait(self._unheard)
        self._unheard = []
        acted = report.written
        self._tell(words, report, is_called)
        report.said = report.written - acted
        self._speak(is_called)
        return report

    def heard(self) -> Report:
        """What came of the starts that no pass waited for and that have ended since this was asked last."""
        report = Report()
        for act, answer in self.starts.heard():
            try:
                _note(act, answer.result(), report)
            except LeaseLostError as lost:
                log.warning("%s %s is not started: %s", act.target.kind, act.target.key, lost)
        return report

    def _tell(self, words: Sequence[Act], report: Report, is_called: Callable[[], bool]) -> None:
        for start in range(0, len(words), WORDS):
            batch, waiting = words[start : start + WORDS], is_called()
            if start and waiting:
                return
            if waiting and len(batch) == WORDS:
                self._leave(self._attempt, batch)
            else:
                self._run(batch, report)

    def _speak(self, is_called: Callable[[], bool]) -> None:
        while events := self._voice.take(WORDS, hurried=is_called()):
            if is_called() and len(events) == WORDS:
                self._leave(self._post, events)
                return
            for error in self._pool.map(self._post, events):
                _log_unsaid(error)
            if is_called():
                return

    def _leave(self, do: Callable[[Any], object], tasks: Sequence[Any]) -> None:
        """Have it done while the next cycle plans, which is not kept waiting for words of a long line."""
        for task in tasks:
            saying = self._pool.submit(do, task)
            saying.add_done_callback(_log_unheard)
            self._unheard.append(saying)

    def _post(self, event: Event) -> ApiError | None:
        try:
            post(self._client, event)
        except ApiError as error:
            return error
        return None

    def _run(self, acts: Sequence[Act], report: Report) -> None:
        run = self._pool.map if len(acts) > 1 else map
        for act, answer in zip(acts, run(self._timed, acts), strict=True):
            _note(act, answer, report)

    def _timed(self, act: Act) -> Answer:
        began = time.monotonic()
        return self._attempt(act), (time.monotonic() - began) * 1000

    def _attempt(self, act: Act) -> Outcome:
        """How the act was sent, empty where nothing had to be. What the API server refuses, and an object
        that the act cannot make sense of, are returned, so that one stops no other act.

        Raises LeaseLostError before anything is written.
        """
        self._lease.check()
        try:
            for event in act.before:
                post(self._client, event)
            written = self._write(act)
        except ApiError as error:
            return error
        except LeaseLostError:
            raise
        except Exception as fault:
            # Whatever an object holds that its adapter does not expect: the others are not to pay for it.
            log.exception("%s %s cannot be read", act.target.kind, act.target.key)
            return UnreadableError(fault)
        if written:
            self._voice.add(act.after)
        return written

    def _write(self, act: Act) -> str:
        """The method that it was sent with; empty where the object is gone, or is so already."""
        target, mirror = act.target, self._mirror[act.adapter.resource]
        path = act.adapter.path(target.namespace, target.name)
        obj = mirror.get(target.namespace, target.name)
        for _ in range(CONFLICTS):
            if obj is None or obj["metadata"]["uid"] != target.uid:
                return ""
            patch = act.decide(obj)
            if not patch:
                return ""
            try:
                if DELETE in patch:
                    self._delete(path, target.uid, obj["metadata"]["resourceVersion"])
                    return "DELETE"
                send = partial(self._put, act.adapter, path, obj, patch)
                mirror.write(key_of(obj), send, is_foreseen=act.is_foreseen)
            except NotFoundError:
                mirror.bury(target.namespace, target.name, target.uid)
                return ""
            except ConflictError:
                obj = self._read_again(act, path)
                continue
            return _method(act)
        raise ConflictError(409, "Conflict", f"written by others {CONFLICTS} times in a row")

    def _put(self, adapter: Adapter, path: str, obj: Json, patch: Json) -> Json:
        """Write ``patch`` unless somebody wrote the object after ``obj``; the server's answer."""
        if adapter.is_mirrored_whole:
            # Items of a list do not say what they are.
            named = {**obj, "apiVersion": adapter.api_version, "kind": adapter.kind}
            return self._client.replace(path, merged(named, patch))
        version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        return self._client.patch(path, merged(patch, {"metadata": version}))

    def _delete(self, path: str, uid: str, version: str) -> None:
        preconditions = {"uid": uid, "resourceVersion": version}
        kind = {"apiVersion": "v1", "kind": "DeleteOptions"}
        self._client.delete(path, {**kind, "preconditions": preconditions})

    def _read_again(self, act: Act, path: str) -> Json | None:
        target, mirror = act.target, self._mirror[act.adapter.resource]
        try:
            obj = act.adapter.trim(self._client.get(path))
        except NotFoundError:
            mirror.bury(target.namespace, target.name, target.uid)
            return None
        mirror.absorb(obj)
        return obj


def _note(act: Act, answer: Answer, report: Report) -> None:
    outcome, took_ms = answer
    if act.purpose:
        report.writes.append(_write_of(act, outcome, took_ms))
    if isinstance(outcome, ApiError):
        report.failed[act.target.key] = outcome.message
        if isinstance(outcome, (InvalidError, ForbiddenError, UnreadableError)):
            uid = act.workload_uid or act.target.uid
            report.refused[uid] = (act.target.generation, outcome.message)
        log.warning("%s %s: %s", act.target.kind, act.target.key, outcome)
    elif outcome:
        report.written += 1
    else:
        report.dropped += 1


def _method(act: Act) -> str:
    return "PUT" if act.adapter.is_mirrored_whole else "PATCH"


def _write_of(act: Act, outcome: Outcome, took_ms: float) -> Write:
    if isinstance(outcome, ApiError):
        method, code, message = _method(act), outcome.status, outcome.message
    else:
        method, code, message = outcome, 0, ""
    uid = act.workload_uid or act.target.uid
    name = act.target.name
    return Write(act.target.kind, name, uid, act.purpose, method, code, message, took_ms, act.cycle)


def _log_unheard(said: Future[object]) -> None:
    if not said.cancelled():
        _log_unsaid(said.exception() or said.result())


def _log_unsaid(outcome: object) -> None:
    if isinstance(outcome, BaseException):
        log.warning("words or an Event were not written: %s", outcome)
