"""One writer a cluster: a coordination.k8s.io/v1 Lease that two workers cannot both hold.

All times here are wall-clock: a lease is about processes, not about the cluster's own time. Whether a
rival is dead is judged by how long its record has not changed before our eyes, which no difference
between two machines' clocks can spoil. The holder counts from before it asked, a rival from after it looked:
two clocks would have to run apart by a whole request within one lease.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from scheduling.cluster.connection.client import ApiError, Client, ConflictError, NotFoundError
from scheduling.models.queues import SYSTEM_NAMESPACE

Json = dict[str, Any]

DURATION_S = 8
"""After so long without a sign of life another worker takes over. What of its start comes before its first
look is on top, and a plan is to come 15 s after a kill. The usual 15 s of leader election are for programs
that end when they lose their lease: here nothing is lost but a request, since a lease that ran out and that
nobody took is renewed."""
RENEWED_AFTER = 1 / 3
"""The part of the time after which the next cycle or write renews: at the usual 5 s every cycle does, and one
that is late by half its interval still holds it."""
CYCLES = 1.5
"""So many intervals between two cycles a lease lasts at least, for clusters that are planned seldom: of two
workers each would take it from the other in turn."""
LONG_DEAD_S = 60
"""No machine's clock is wrong by that much: who renewed longer ago died before we came."""


class LeaseLostError(Exception):
    """Somebody else may be writing: stop at once."""


def identity() -> str:
    """A name no other worker has, readable in ``kubectl get lease``."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"


class Lease:
    """The lease of one cluster as one worker sees it."""

    def __init__(
        self,
        client: Client,
        *,
        name: str = "weir-engine",
        namespace: str = SYSTEM_NAMESPACE,
        holder: str | None = None,
        interval_s: float = 0.0,
    ) -> None:
        self.holder = holder or identity()
        self._client = client
        self._name, self._namespace = name, namespace
        self._base = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        # In whole seconds, as the record has it: whoever reads it counts no less than its holder.
        self._duration_s = max(DURATION_S, math.ceil(CYCLES * interval_s))
        self._held_until = 0.0
        # Two threads that renew at once would each take the other for a rival.
        self._renewing = threading.Lock()
        self._rival: tuple[str, float] = ("", 0.0)
        """Version of the rival's record, and when (monotonic) it is over if it stands unchanged."""

    def hold(self) -> bool:
        """Acquire or renew; whether this worker holds the lease now.

        Asks the server only when ``RENEWED_AFTER`` of the time has gone since it last did. Raises ApiError
        when the server does not answer and the time is up.
        """
        with self._renewing:
            return self._hold()

    def _hold(self) -> bool:
        if self._held_until - time.monotonic() > self._duration_s * (1 - RENEWED_AFTER):
            return True
        try:
            return self._acquire()
        except ConflictError:
            self._held_until = 0.0
            return False
        except ApiError:
            if self._held_until > time.monotonic():
                return True
            raise

    def look(self) -> None:
        """See whose it is, and ask for nothing: how long a rival's record stands still is counted from here.

        Raises ApiError.
        """
        with self._renewing, suppress(NotFoundError):
            self._is_free(self._client.request("GET", f"{self._base}/{self._name}", tries=1))

    def check(self) -> None:
        """Raise LeaseLostError unless this worker holds the lease and will for a while longer."""
        if not self.hold():
            raise LeaseLostError(f"{self._namespace}/{self._name} is held by another worker")

    def left_s(self) -> float:
        """Seconds that it is still held by this worker, without a question to the server; 0: it is not."""
        return max(0.0, self._held_until - time.monotonic())

    def free_in_s(self) -> float:
        """Seconds until a rival's record will have stood still for long enough, if it renews no more."""
        return max(0.0, self._rival[1] - time.monotonic())

    def release(self) -> None:
        """Let another worker take over at once."""
        if self._held_until <= time.monotonic():
            return
        self._held_until = 0.0
        try:
            current = self._client.get(f"{self._base}/{self._name}")
            if current["spec"].get("holderIdentity") == self.holder:
                self._write(current, holder="", acquired=False)
        except ApiError:
            return  # it runs out by itself

    def _acquire(self) -> bool:
        asked_at = time.monotonic()
        try:
            current = self._client.get(f"{self._base}/{self._name}")
        except NotFoundError:
            self._create()
        else:
            ours = current["spec"].get("holderIdentity") == self.holder
            if not ours and not self._is_free(current):
                self._held_until = 0.0
                return False
            self._write(current, holder=self.holder, acquired=not ours)
        # Counted from before the request: the server may have stamped it as early as that.
        self._held_until = asked_at + self._duration_s
        return True

    def _is_free(self, current: Json) -> bool:
        spec, version = current["spec"], current["metadata"]["resourceVersion"]
        if not spec.get("holderIdentity"):
            return True
        duration_s = spec.get("leaseDurationSeconds") or self._duration_s
        if self._rival[0] != version:
            self._rival = (version, time.monotonic() + duration_s)
        if time.monotonic() >= self._rival[1]:
            return True
        renewed = datetime.fromisoformat(spec["renewTime"]) if spec.get("renewTime") else None
        silent_s = max(LONG_DEAD_S, 4 * duration_s)
        return renewed is None or (datetime.now(UTC) - renewed).total_seconds() > silent_s

    def _create(self) -> None:
        now = _micro_time()
        body: Json = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": self.holder,
                "leaseDurationSeconds": self._duration_s,
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        }
        try:
            self._client.create(self._base, body)
        except NotFoundError:
            self._create_namespace()
            self._client.create(self._base, body)

    def _create_namespace(self) -> None:
        body: Json = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": self._namespace},
        }
        try:
            self._client.create("/api/v1/namespaces", body)
        except ConflictError:
            return  # another worker was quicker

    def _write(self, current: Json, *, holder: str, acquired: bool) -> None:
        """Replace the record; its resourceVersion makes the server refuse if a rival was quicker."""
        now, spec = _micro_time(), current["spec"]
        spec["holderIdentity"] = holder
        spec["renewTime"] = now
        spec["leaseDurationSeconds"] = self._duration_s
        if acquired:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        self._client.replace(f"{self._base}/{self._name}", current)


def _micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
