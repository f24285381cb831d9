"""The server as a whole: a thread with an event loop, the store, the controllers, the file."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from workshop.testbed.server.kinds.clock import Clock
from workshop.testbed.server.kinds.faults import Faults
from workshop.testbed.server.kinds.resources import NAMESPACES, Json
from workshop.testbed.server.store.context import Caller, World
from workshop.testbed.server.store.persistence import Journal
from workshop.testbed.server.store.store import Store

from .controllers.binder import Binder
from .controllers.disruption import DisruptionController
from .controllers.garbage import EventExpiry, GarbageCollector
from .controllers.jobs import JobController
from .controllers.kubelet import Kubelet
from .controllers.namespaces import NamespaceController
from .controllers.quotas import QuotaController
from .controllers.runtime import Runtime
from .http.handlers import Application
from .http.identity import User
from .http.protocol import Connection
from .kubeconfig import kubeconfig
from .verbs.create import create

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_SLICE_S = 0.005
"""Controllers yield to requests after this long."""


class EmbeddedServer:
    """A small Kubernetes API on loopback, with controllers, as a thread of this process.

    `port` 0 takes a free one. With a `path` the objects outlive the process. `tokens` maps
    bearer tokens to users; None lets everybody on this machine in. `seed` makes names and uids
    repeatable. Usable as a context manager; `url` is valid after `start`.
    """

    def __init__(
        self,
        port: int = 0,
        clock: Clock | None = None,
        path: Path | None = None,
        *,
        host: str = "127.0.0.1",
        tokens: Mapping[str, User] | None = None,
        history: int = 8192,
        startup_s: float = 1.0,
        bookmark_every_s: float = 60.0,
        controllers: bool = True,
        seed: int | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.store = Store(history)
        self.faults = Faults()
        self.world = World(self.store, self.clock, random.Random(seed))  # noqa: S311 (names, no secrets)
        self._address = (host, port)
        self._tokens = tokens
        self._journal = Journal(path, self.store, self.clock) if path else None
        self._application = Application(self.world, self.faults, tokens, bookmark_every_s)
        self._runtime = Runtime(self.world, self._controllers(startup_s) if controllers else ())
        self._connections: set[Connection] = set()
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name="weir-api-server", daemon=True)
        self._pending = False
        self._timer: asyncio.TimerHandle | None = None

    def _controllers(
        self, startup_s: float
    ) -> tuple[
        JobController, Binder, Kubelet, GarbageCollector, NamespaceController,
        DisruptionController, QuotaController, EventExpiry,
    ]:  # fmt: skip
        """The Job controller comes first: it releases a Job's pods before they are orphaned."""
        world = self.world
        return (
            JobController(world), Binder(world), Kubelet(world, startup_s),
            GarbageCollector(world), NamespaceController(world), DisruptionController(world),
            QuotaController(world), EventExpiry(world),
        )  # fmt: skip

    @property
    def port(self) -> int:
        """Return the port that is listened on."""
        return self._address[1]

    @property
    def url(self) -> str:
        """Return the address of the server."""
        return f"http://{self._address[0]}:{self.port}"

    def kubeconfig(self, namespace: str = "default") -> Json:
        """Return a kubeconfig for this server."""
        token = next(iter(self._tokens), None) if self._tokens else None
        return kubeconfig(self.url, token, namespace)

    def start(self) -> Self:
        """Restore what is on disk, start the controllers and listen; returns when ready.

        Raises OSError if the port is taken.
        """
        if self._journal is not None:
            self._journal.restore()
            self._journal.start()
        self.world.charges.start()
        self._seed_namespaces()
        self._runtime.start()
        self.clock.attach(self._runtime)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """Close all connections, stop the thread, write the rest to disk."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()
        self.clock.detach(self._runtime)
        if self._journal is not None:
            self._journal.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def settle(self) -> None:
        """Let the controllers do all that is due now, in the calling thread."""
        self._runtime.run_due()

    def drop_connections(self) -> None:
        """Cut every connection, watches included, as a restart of a server does."""

        def cut() -> None:
            for connection in list(self._connections):
                connection.abort()

        self._loop.call_soon_threadsafe(cut)

    def compact(self) -> None:
        """Forget the history of events: resuming from an older version is then 410."""
        with self.store.lock:
            self.store.forget_history()

    def _seed_namespaces(self) -> None:
        with self.store.lock:
            for name in _NAMESPACES:
                if self.store.get(NAMESPACES, "", name) is None:
                    body: Json = {"metadata": {"name": name}}
                    create(self.world, Caller("system:apiserver"), NAMESPACES, "", body)

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # handed over to the thread that waits in start()
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        server = await self._loop.create_server(
            lambda: Connection(self._application, self._connections), *self._address, backlog=512
        )
        host, port = server.sockets[0].getsockname()[:2]
        self._address = (host, port)
        self._runtime.wake = self._wake
        self._wake()
        self._started.set()
        await self._end.wait()
        self._runtime.wake = lambda: None
        server.close()
        for connection in list(self._connections):
            connection.abort()

    def _wake(self) -> None:
        """Have the loop run the controllers soon; may be called from any thread."""
        if not self._pending:
            self._pending = True
            self._loop.call_soon_threadsafe(self._drive)

    def _drive(self) -> None:
        """Run the controllers for a slice, then again at once or at their next moment."""
        self._pending = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._runtime.run_for(_SLICE_S):
            self._wake()
            return
        at = self._runtime.next_due()
        delay = self.clock.real_delay(at) if at is not None and at > 0 else None
        if delay is not None:
            self._timer = self._loop.call_later(delay, self._drive)
