"""`python -m workshop.benches.worker.reference KUBECONFIG LOAD`: a manager that only counts.

It starts the highest priority first, then what is of the queue that holds least, within the quotas of
the load. It evicts nobody, keeps no rows, gives no reasons and plans no nodes, so its decisions cost next
to nothing: its figures are what API server and runner leave to any manager on the same machine.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from scheduling.cluster.adapters.job import JobAdapter
from scheduling.cluster.connection.client import CONNECTIONS, Client, ConflictError
from scheduling.cluster.connection.kubeconfig import configuration_from
from scheduling.cluster.connection.reflector import Reflector
from scheduling.cluster.vocabulary import labels

from .runner import JOBS, NAMESPACE, READ_ON_S
from .work import JobClass, Load

Json = dict[str, Any]

GATHER_S = 0.02
"""Changes that come so close together are decided on together."""
JOB = JobAdapter()


class Cohort:
    """The Jobs of one cohort's queues: who waits, and the units that are held."""

    def __init__(self, load: Load, name: str) -> None:
        queues = load.queues_of(name)
        self._classes = sorted(load.classes, key=lambda kind: -kind.priority)
        self._most = load.nominal + load.borrowing
        self._free = load.nominal * load.queues
        self._usage = dict.fromkeys(queues, 0)
        self._waiting: dict[str, dict[str, deque[str]]] = {
            kind.name: {queue: deque() for queue in queues} for kind in self._classes
        }

    def submit(self, name: str, queue: str, kind: str) -> None:
        self._waiting[kind][queue].append(name)

    def release(self, queue: str, units: int) -> None:
        self._usage[queue] -= units
        self._free += units

    def starts(self) -> Iterator[str]:
        """Names of Jobs that start now, whose units are held from here on."""
        for kind in self._classes:
            while queue := self._next(kind):
                self._usage[queue] += kind.units
                self._free -= kind.units
                yield self._waiting[kind.name][queue].popleft()

    def _next(self, kind: JobClass) -> str | None:
        if self._free < kind.units:
            return None
        allowed = (
            queue
            for queue, waiting in self._waiting[kind.name].items()
            if waiting and self._usage[queue] + kind.units <= self._most
        )
        return min(allowed, key=self._usage.__getitem__, default=None)


class Reference(Reflector):
    """Starts the Jobs that it watches."""

    def __init__(self, client: Client, load: Load) -> None:
        super().__init__(client, JOBS, on_change=lambda: None)
        self._api = client
        self._units = {kind.name: kind.units for kind in load.classes}
        self._cohort_of = {
            queue: cohort
            for name in load.cohort_names
            for cohort in [Cohort(load, name)]
            for queue in load.queues_of(name)
        }
        self._is_over: dict[str, bool] = {}
        self._heard: deque[Json] = deque()
        self._news = threading.Event()

    def notify(self, kind: str, obj: Json) -> None:
        self._heard.append(obj)
        self._news.set()

    def run(self) -> None:
        """Until the process ends."""
        self.start()
        self.synced.wait()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            while self._news.wait():
                time.sleep(GATHER_S)
                self._news.clear()
                for cohort in self._take_news():
                    for name in cohort.starts():
                        pool.submit(self._start, name)

    def _take_news(self) -> list[Cohort]:
        """Count what was heard; the cohorts in which something may start for that."""
        moved: dict[Cohort, None] = {}
        while self._heard:
            obj = self._heard.popleft()
            name, said = obj["metadata"]["name"], obj["metadata"]["labels"]
            queue, kind = said[labels.QUEUE], said[labels.PRIORITY_CLASS]
            cohort = self._cohort_of[queue]
            was_over = self._is_over.get(name)
            self._is_over[name] = is_over = JOB.is_over(obj)
            if was_over is None:
                cohort.submit(name, queue, kind)
            elif is_over and not was_over:
                cohort.release(queue, self._units[kind])
            else:
                continue
            moved[cohort] = None
        return list(moved)

    def _start(self, name: str) -> None:
        while (seen := self.get(NAMESPACE, name)) is not None:
            job = {**seen, "apiVersion": JOB.api_version, "kind": JOB.kind}
            job["spec"] = {**seen["spec"], "suspend": False}
            try:
                self.absorb(self._api.replace(f"{JOBS}/{name}", job))
            except ConflictError:
                time.sleep(READ_ON_S)
                continue
            return


def main(kubeconfig: str, load: Path) -> None:
    Reference(Client(configuration_from(kubeconfig)), Load.read(load)).run()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
