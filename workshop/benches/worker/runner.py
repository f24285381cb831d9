"""`python -m workshop.benches.worker.runner KUBECONFIG LOAD RECORD`: the users and the pods of a bench.

Creates the suspended Jobs of a load at its pace, watches them, and reports each complete its run time
after it was seen admitted. What is suspended before that starts over at its next admission. There are
no pods and no Job controller: its part is the one write of the status.
"""

from __future__ import annotations

import heapq
import json
import resource
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scheduling.cluster.connection.client import Client, ConflictError
from scheduling.cluster.connection.kubeconfig import configuration_from
from scheduling.cluster.connection.reflector import Reflector
from scheduling.cluster.vocabulary import labels

from .work import Arrival, Load

Json = dict[str, Any]

NAMESPACE = "bench"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
RESOURCE = "nvidia.com/gpu"
THREADS = 8
"""Connections for creating, and as many for completing."""
SAID_EVERY = 500
"""Ends between two lines about how far it is."""
READ_ON_S = 0.2
"""Patience with the watch when a completion met a newer object."""


@dataclass(slots=True)
class Course:
    """What became of one Job: seconds since the start of the load, 0 for what never was."""

    name: str
    kind: str
    units: int
    runtime_s: float
    created_s: float = 0.0
    """When its creation was sent."""
    admitted_s: float = 0.0
    """When it was first seen admitted."""
    held_s: float = 0.0
    """Between admissions and what ended them, as seen here."""
    finished_s: float = 0.0
    evictions: int = 0
    since_s: float = 0.0
    """Since when it runs; 0 while it does not."""


class Runner(Reflector):
    """Watches the Jobs it creates and completes."""

    def __init__(self, client: Client, arrivals: list[Arrival], awaited: str) -> None:
        super().__init__(client, JOBS, on_change=lambda: None)
        self._api = client
        self._arrivals = arrivals
        self.courses = {
            a.name: Course(a.name, a.kind.name, a.kind.units, a.kind.runtime_s) for a in arrivals
        }
        self._left = sum(not awaited or a.kind.name == awaited for a in arrivals)
        self._awaited = awaited
        self._ends = 0
        self._finishes: list[tuple[float, str, float]] = []
        """(when, name, since when it ran then)"""
        self._moved = threading.Condition()
        self._began = 0.0

    def now_s(self) -> float:
        return time.monotonic() - self._began

    def run(self) -> None:
        """Returns when all awaited Jobs have ended."""
        self._began = time.monotonic()
        self.start()
        self.synced.wait()
        self._began = time.monotonic()
        threading.Thread(target=self._create_all, daemon=True).start()
        with ThreadPoolExecutor(THREADS) as pool:
            for name, since_s in self._ended():
                pool.submit(self._complete, name, since_s)
        self.stop()

    def notify(self, kind: str, obj: Json) -> None:
        """Note admissions and suspensions as the watch tells of them, in order."""
        course = self.courses[obj["metadata"]["name"]]
        runs = not obj["spec"]["suspend"]
        if course.finished_s or runs == bool(course.since_s):
            return
        with self._moved:
            now_s = self.now_s()
            if runs:
                course.since_s = now_s
                course.admitted_s = course.admitted_s or now_s
                heapq.heappush(self._finishes, (now_s + course.runtime_s, course.name, now_s))
            else:
                course.held_s += now_s - course.since_s
                course.since_s = 0.0
                course.evictions += 1
            self._moved.notify()

    def _create_all(self) -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            for arrival in self._arrivals:
                time.sleep(max(0.0, arrival.at_s - self.now_s()))
                pool.submit(self._create, arrival)

    def _create(self, arrival: Arrival) -> None:
        self.courses[arrival.name].created_s = self.now_s()
        self._api.create(JOBS, manifest(arrival))

    def _ended(self) -> Iterator[tuple[str, float]]:
        """Jobs whose run time is over, each as it comes due, until nothing is awaited any more."""
        while True:
            with self._moved:
                if not self._left:
                    return
                wait_s = self._finishes[0][0] - self.now_s() if self._finishes else 1.0
                if wait_s > 0:
                    self._moved.wait(wait_s)
                    continue
                _, name, since_s = heapq.heappop(self._finishes)
            yield name, since_s

    def _complete(self, name: str, since_s: float) -> None:
        course = self.courses[name]
        while course.since_s == since_s:
            seen = self.get(NAMESPACE, name)
            if seen is None:
                return
            try:
                self.absorb(self._api.replace(f"{JOBS}/{name}/status", completed(seen)))
            except ConflictError:
                time.sleep(READ_ON_S)
                continue
            self._note_end(course)
            return

    def _note_end(self, course: Course) -> None:
        with self._moved:
            course.finished_s = self.now_s()
            course.held_s += course.finished_s - course.since_s
            course.since_s = 0.0
            self._left -= not self._awaited or course.kind == self._awaited
            self._ends += 1
            if self._ends % SAID_EVERY == 0:
                sys.stdout.write(f"{self._ends} of {len(self.courses)} Jobs have ended\n")
                sys.stdout.flush()
            self._moved.notify()


def manifest(arrival: Arrival) -> Json:
    """A suspended Job of one pod that asks for all units."""
    amount = {RESOURCE: str(arrival.kind.units)}
    container = {"name": "main", "image": "work", "resources": {"limits": amount}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": arrival.name,
            "labels": {labels.QUEUE: arrival.queue, labels.PRIORITY_CLASS: arrival.kind.name},
        },
        "spec": {
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def completed(job: Json) -> Json:
    """``job`` with the status that a Job controller puts when it saw the pod succeed."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        {"type": kind, "status": "True", "reason": "Bench", "lastTransitionTime": now}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    return {
        **job,
        "status": {
            "startTime": now, "completionTime": now, "succeeded": 1, "conditions": conditions,
        },
    }  # fmt: skip


def main(kubeconfig: str, load: Path, record: Path) -> None:
    wanted = Load.read(load)
    client = Client(configuration_from(kubeconfig))
    runner = Runner(client, wanted.arrivals(), wanted.awaited)
    runner.run()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    outcome = {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "courses": [asdict(course) for course in runner.courses.values()],
    }
    unfinished = record.with_suffix(".part")
    unfinished.write_text(json.dumps(outcome))
    unfinished.rename(record)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
