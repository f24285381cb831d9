"""The heartbeat of simulated nodes: a lease each, renewed, and Ready said again when it was lost."""

from __future__ import annotations

import logging
import threading

from scheduling.cluster.connection.client import ApiError, Client, NotFoundError
from workshop.testbed.server.kinds.clock import Clock, micro_stamp
from workshop.testbed.server.kinds.resources import NODES, Json
from workshop.testbed.server.store.store import Record, Store

from .machines import ready_condition

log = logging.getLogger(__name__)

BEAT_S = 3.0
LEASE_S = 40
"""As a real kubelet writes it; the controller manager goes by its own grace."""
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Heart:
    """One thread that beats for every node in ``store``."""

    def __init__(self, client: Client, store: Store, clock: Clock) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(BEAT_S):
            self.beat()

    def beat(self) -> None:
        """Renew every lease once; a node that cannot be reached is tried again at the next beat."""
        with self._store.lock:
            nodes = self._store.listing(NODES)
        for node in nodes:
            try:
                self._renew(node)
                self._say_ready(node)
            except ApiError as error:
                log.warning("heartbeat of %s: %s", node.name, error)

    def _renew(self, node: Record) -> None:
        spec = {
            "holderIdentity": node.name,
            "leaseDurationSeconds": LEASE_S,
            "renewTime": micro_stamp(self._clock.seconds()),
        }
        try:
            self._client.request("PATCH", f"{LEASES}/{node.name}", body={"spec": spec}, tries=1)
        except NotFoundError:
            self._client.request("POST", LEASES, body=_lease(node, spec), tries=1)

    def _say_ready(self, node: Record) -> None:
        conditions = (node.body.get("status") or {}).get("conditions") or []
        ready: Json = next((c for c in conditions if c["type"] == "Ready"), {})
        if ready.get("status") == "True":
            return
        others = [c for c in conditions if c["type"] != "Ready"]
        change = [*others, ready_condition(ready=True, moment=self._clock.stamp())]
        body = {"status": {"conditions": change}}
        self._client.request("PATCH", f"/api/v1/nodes/{node.name}/status", body=body, tries=1)


def _lease(node: Record, spec: Json) -> Json:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node.name, "ownerReferences": [owner]},
        "spec": spec,
    }
