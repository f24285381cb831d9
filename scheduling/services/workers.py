"""What a worker process keeps of a cluster between cycles: connection, mirror, lease, rows."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from scheduling.cluster import picture
from scheduling.cluster.client import Client
from scheduling.cluster.enforcement import Enforcer
from scheduling.cluster.lease import Lease
from scheduling.cluster.memo import Memo
from scheduling.cluster.mirror import Mirror
from scheduling.engine import Planner
from scheduling.models import Cluster
from scheduling.services.backstops import Machines
from scheduling.services.blocked import Refusals
from scheduling.services.causes import Causes
from scheduling.services.ledger import Ledger
from scheduling.services.own_quotas import OwnQuotas
from scheduling.services.projection import Projection
from scheduling.services.standings import Standings
from scheduling.services.unchanged import Unchanged
from scheduling.services.waiting import Waiting
from scheduling.services.words import Spoken

DEBOUNCE_S = 0.02
"""Events that follow each other within this share one cycle."""
COLLECTED = (50_000, 20, 20)
"""Allocations between two looks for garbage cycles, by generation. A mirror is millions of objects that
stay: Python's own thresholds look through all of them several times in a cycle of the engine."""

Address = tuple[str, str, str, str, str]


class Turn:
    """Lets one cycle run at a time, and others know when none does."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_taken = False

    def take(self) -> bool:
        """Whether the turn is the caller's now, who gives it back."""
        with self._changed:
            taken, self._is_taken = self._is_taken, True
        return not taken

    def give_back(self) -> None:
        with self._changed:
            self._is_taken = False
            self._changed.notify_all()

    def wait_free(self) -> None:
        """Wait until nobody has it, without taking it: who wants it then is not kept from it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_taken)


class Debounce:
    """Calls ``act`` once, ``delay_s`` after the first of a burst of calls, and not while a cycle has its
    ``turn``: what comes during a cycle waits for its end."""

    def __init__(self, act: Callable[[], None], turn: Turn, delay_s: float = DEBOUNCE_S) -> None:
        self._act = act
        self._turn = turn
        self._delay_s = delay_s
        self._due = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="debounce", daemon=True)
        self._thread.start()

    def __call__(self) -> None:
        self._due.set()

    def is_due(self) -> bool:
        """Whether ``act`` is about to be called."""
        return self._due.is_set()

    def close(self) -> None:
        self._closed = True
        self._due.set()

    def _run(self) -> None:
        while not self._closed:
            self._due.wait()
            time.sleep(self._delay_s)
            self._turn.wait_free()
            self._due.clear()
            if not self._closed:
                self._act()


@dataclass(slots=True)
class ClusterWorker:
    """The memory of one cluster in this process. ``turn`` is taken for the length of a cycle."""

    address: Address
    client: Client
    mirror: Mirror
    lease: Lease
    enforcer: Enforcer
    ledger: Ledger
    trigger: Debounce
    turn: Turn
    spoken: Spoken = field(default_factory=Spoken)
    memo: Memo = field(default_factory=Memo)
    waiting: Waiting = field(default_factory=Waiting)
    unchanged: Unchanged = field(default_factory=Unchanged)
    planner: Planner = field(default_factory=Planner)
    refusals: Refusals = field(default_factory=Refusals)
    machines: Machines = field(default_factory=Machines)
    causes: Causes = field(default_factory=Causes)
    projection: Projection | None = None
    own: OwnQuotas | None = None
    standings: Standings | None = None

    def forget(self) -> None:
        """All that may be ahead of what was committed: it is read again."""
        self.projection, self.own, self.standings = None, None, None
        self.memo, self.causes = Memo(), Causes()

    def close(self) -> None:
        """Stop the mirror and let the lease go, so that another worker takes over at once."""
        self.trigger.close()
        self.mirror.stop()
        self.enforcer.close()
        self.lease.release()
        self.client.close()


_workers: dict[int, ClusterWorker] = {}
_lock = threading.Lock()


def worker_of(cluster: Cluster, *, on_change: Callable[[], None]) -> ClusterWorker:
    """The worker for ``cluster``, made and its mirror started when there is none.

    ``on_change`` is called, debounced, from a thread of the mirror after the cluster changed. A
    cluster that is reached otherwise than before gets a new one.
    """
    with _lock:
        worker = _workers.get(cluster.pk)
        if worker is not None and worker.address != address_of(cluster):
            del _workers[cluster.pk]
            worker.close()
            worker = None
        if worker is None:
            worker = _workers[cluster.pk] = _start(cluster, on_change)
        return worker


def close_all() -> None:
    """Close every worker of this process."""
    with _lock:
        workers = list(_workers.values())
        _workers.clear()
    for worker in workers:
        worker.close()


def close_others(pks: Collection[int]) -> None:
    """Close the workers of clusters that are not among ``pks``: their rows are gone."""
    with _lock:
        gone = [_workers.pop(pk) for pk in list(_workers) if pk not in pks]
    for worker in gone:
        worker.close()


def address_of(cluster: Cluster) -> Address:
    return (
        cluster.api_url,
        cluster.token_file,
        cluster.ca_file,
        cluster.kubeconfig,
        cluster.context,
    )


def _do_without_blas() -> None:
    """Numba loads SciPy's linear algebra, 12 MB, in case a kernel multiplies matrices; none of the engine's
    does. It takes one that is not there for a reason to do without."""
    if "scipy.linalg" in sys.modules:
        return
    sys.modules["scipy.linalg"] = None  # type: ignore[assignment] # how Python notes what cannot be imported
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        del sys.modules["scipy.linalg"]


def _start(cluster: Cluster, on_change: Callable[[], None]) -> ClusterWorker:
    gc.set_threshold(*COLLECTED)
    _do_without_blas()
    client = Client.connect(cluster)
    turn = Turn()
    trigger = Debounce(on_change, turn)
    mirror = Mirror(client, picture.resources(), on_change=trigger, optional=picture.OPTIONAL)
    lease = Lease(client)
    mirror.start()
    return ClusterWorker(
        address=address_of(cluster),
        client=client,
        mirror=mirror,
        lease=lease,
        enforcer=Enforcer(client, mirror, lease),
        ledger=Ledger(cluster),
        trigger=trigger,
        turn=turn,
    )
