"""All simulated nodes of one cluster: follows the server, lets kubelets decide, sends their writes."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from scheduling.cluster.connection.client import Client
from workshop.testbed.server.controllers.kubelet import Kubelet
from workshop.testbed.server.controllers.runtime import After, Runtime
from workshop.testbed.server.kinds.clock import Clock
from workshop.testbed.server.kinds.resources import JOBS, NODES, PODS
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Event, Key, Record

from .heart import Heart
from .shadow import Feed, Shadow
from .wire import Post, WireScribe

_SLICE_S = 0.01
_RETRY_S = 0.5
_PATHS = {NODES: "/api/v1/nodes", PODS: "/api/v1/pods", JOBS: "/apis/batch/v1/jobs"}
"""Jobs are read for the progress that checkpoints leave on them."""


class Fleet:
    """Kubelets of every node that is labelled as simulated, from ``start`` to ``stop``."""

    def __init__(self, client: Client, startup_s: float = 1.0, pace: float = 1.0) -> None:
        clock = Clock()
        shadow = Shadow()
        world = World(shadow, clock)
        self._clock = clock
        self._feeds = {r: Feed(client, path, r, shadow) for r, path in _PATHS.items()}
        self._post = Post(client, self._feeds)
        self._heart = Heart(client, shadow, clock)
        self._runtime = Runtime(world, [_Dispatcher(world, self._post, startup_s, pace)])
        self._awake = threading.Event()
        self._runtime.wake = self._awake.set
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelets", daemon=True)

    def start(self) -> None:
        """Follow the server; returns at once and keeps trying while it cannot be reached."""
        self._runtime.start()
        for feed in self._feeds.values():
            feed.start()
        self._post.start()
        self._heart.start()
        self._thread.start()

    def stop(self) -> None:
        """Act no more; nodes and pods stay as they are, as when their machines lose power."""
        self._stop.set()
        self._awake.set()
        self._heart.stop()
        for feed in self._feeds.values():
            feed.stop()
        self._post.stop()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._awake.clear()
            if self._runtime.run_for(_SLICE_S):
                continue
            at = self._runtime.next_due()
            self._awake.wait(None if at is None else self._clock.real_delay(at))


class _Kubelet(Kubelet):
    def lost(self, pod: Record) -> None:
        """The cluster's own controllers collect the pods of a node that is gone."""


class _Dispatcher:
    """The kubelet as a controller whose writes take a while: a pod rests until they are answered."""

    def __init__(self, world: World, post: Post, startup_s: float, pace: float) -> None:
        self._world = world
        self._scribe = WireScribe()
        self._kubelet = _Kubelet(world, startup_s, self._scribe, pace)
        self._post = post
        self._resting: set[Key] = set()

    def keys(self, event: Event) -> Iterable[Key]:
        return self._kubelet.keys(event)

    def reconcile(self, key: Key, after: After) -> None:
        if key in self._resting:
            return  # looked at again when the answer is here
        self._kubelet.reconcile(key, after)
        requests = self._scribe.take()
        if not requests:
            return
        self._resting.add(key)

        def answered(written: bool) -> None:
            with self._world.store.lock:
                self._resting.discard(key)
                now = self._world.clock.seconds()
                after(key, now if written else now + _RETRY_S)

        self._post.send(key, requests, answered)
