"""What the cluster benches put on a cluster: queues, and Jobs at a pace.

``kueue-*`` are Kueue's own generator settings (test/performance/scheduler/configs of kubernetes-sigs/kueue).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class JobClass:
    """``count`` Jobs of ``units`` each for every queue, or for those in ``queues`` alone. They run
    ``runtime_s`` once they are admitted; one comes every ``every_s`` after ``from_s``."""

    name: str
    units: int
    runtime_s: float
    priority: int
    every_s: float
    count: int
    from_s: float = 0.0
    queues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Arrival:
    """One Job: when it is to be created, in seconds after the start."""

    at_s: float
    name: str
    queue: str
    kind: JobClass


@dataclass(frozen=True, slots=True)
class Load:
    """Queues in cohorts, each queue with ``nominal`` units and up to ``borrowing`` more, and their Jobs.

    It is over when all Jobs of the class ``awaited`` have ended, or all Jobs where that is empty.
    """

    cohorts: int
    queues: int
    classes: tuple[JobClass, ...]
    nominal: int = 20
    borrowing: int = 100
    awaited: str = ""

    @property
    def cohort_names(self) -> list[str]:
        return [f"cohort-{c}" for c in range(self.cohorts)]

    def queues_of(self, cohort: str) -> list[str]:
        return [f"{cohort}-queue-{q}" for q in range(self.queues)]

    @property
    def queue_names(self) -> list[str]:
        return [queue for cohort in self.cohort_names for queue in self.queues_of(cohort)]

    @property
    def units(self) -> int:
        """Nominal units of all queues."""
        return self.cohorts * self.queues * self.nominal

    @property
    def jobs(self) -> int:
        return sum(kind.count * len(self._queues(kind)) for kind in self.classes)

    @property
    def bound_s(self) -> float:
        """No schedule ends sooner: unit-seconds of all work over nominal units of all queues."""
        work = sum(
            kind.count * len(self._queues(kind)) * kind.units * kind.runtime_s
            for kind in self.classes
        )
        return work / self.units

    def part(self, share: float) -> Load:
        """The same with that share of the Jobs of every class, at least one each."""
        classes = (replace(k, count=max(1, round(k.count * share))) for k in self.classes)
        return replace(self, classes=tuple(classes))

    def arrivals(self) -> list[Arrival]:
        """All Jobs by time; equal times by class and number, so that queues take turns."""
        return sorted(self._arrivals(), key=lambda a: a.at_s)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Load:
        written = json.loads(path.read_text())
        classes = (
            JobClass(**kind | {"queues": tuple(kind["queues"])}) for kind in written["classes"]
        )
        return cls(**written | {"classes": tuple(classes)})

    def _queues(self, kind: JobClass) -> Sequence[str]:
        return kind.queues or self.queue_names

    def _arrivals(self) -> Iterator[Arrival]:
        for kind in self.classes:
            for number in range(kind.count):
                for queue in self._queues(kind):
                    name = f"{queue}-{kind.name}-{number}"
                    yield Arrival(kind.from_s + (number + 1) * kind.every_s, name, queue, kind)


BASELINE = Load(
    cohorts=5,
    queues=6,
    classes=(
        JobClass("small", units=1, runtime_s=0.2, priority=50, every_s=0.1, count=350),
        JobClass("medium", units=5, runtime_s=0.5, priority=100, every_s=0.5, count=100),
        JobClass("large", units=20, runtime_s=1.0, priority=200, every_s=1.2, count=50),
    ),
)
LARGE = Load(
    cohorts=10,
    queues=100,
    classes=(
        JobClass("small", units=1, runtime_s=0.15, priority=50, every_s=0.06, count=35),
        JobClass("medium", units=5, runtime_s=0.35, priority=100, every_s=0.3, count=11),
        JobClass("large", units=20, runtime_s=0.7, priority=200, every_s=0.7, count=4),
    ),
)

_CROWDED = tuple(f"cohort-0-queue-{q}" for q in range(20))
LIVE = Load(
    cohorts=2,
    queues=len(_CROWDED),
    classes=(
        JobClass(
            "standing", units=20, runtime_s=60, priority=50, every_s=0, count=510, queues=_CROWDED
        ),
        JobClass(
            "probe", units=1, runtime_s=0.2, priority=50, every_s=0.2, count=300, from_s=60,
            queues=("cohort-1-queue-0",),
        ),
    ),
    awaited="probe",
)  # fmt: skip
"""10,200 Jobs that fill their queues and wait behind each other, and a few for a queue with room."""
