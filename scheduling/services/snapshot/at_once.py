"""Work of people who hold as many GPUs as they may at once: it waits until enough of theirs has ended.

What a person waits with passes in the order of the line, and what passes counts as held: were each of it
compared with what is held now alone, one plan could start it all. A person who would rather have another one
go first holds what is before it. What may grow counts as large as it may become.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from scheduling.cluster.adapters import Sighting
from scheduling.engine import model as m
from scheduling.engine.reasons.wording import amount, are, gpus_in_words
from scheduling.services.queues.judge import open_to
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.queues.service_classes import ServiceClass
from scheduling.services.snapshot.obstacles import Obstacle
from scheduling.services.snapshot.situations import Situation, WorkloadFacts

Found = list[tuple[Sighting, Obstacle]]


@dataclass(slots=True)
class _Counts:
    """Milli-GPU of one user under one class of service."""

    holds: int = 0
    passed: int = 0
    """Of work that waits and may start: it is before the rest in line."""

    @property
    def taken(self) -> int:
        return self.holds + self.passed


@dataclass(slots=True)
class _Person:
    """One user whose class of service bounds what they hold at once."""

    counts: dict[ServiceClass, _Counts]
    waits: list[tuple[Sighting, str]] = field(default_factory=list)
    """With the path of its queue."""

    def within(self, path: str) -> list[_Counts]:
        return [counts for service, counts in self.counts.items() if service.reaches(path)]


def at_limit(
    workloads: Iterable[Sighting], known: Mapping[str, WorkloadFacts], rows: PolicyRows
) -> Found:
    """Those of ``workloads`` that wait, could start otherwise, and have no room left, with the cause."""
    people = _bounded(rows)
    if not people:
        return []
    paths = {queue.name: queue.path for queue in rows.queues if not queue.is_root}
    for observed in workloads:
        person = people.get(observed.user) if observed.gpus else None
        path, what = paths.get(observed.queue_label), known.get(observed.uid)
        if person is not None and path is not None and what is not None:
            _count(person, observed, path, what)
    return [found for person in people.values() for found in _judge(person, rows)]


def hindered(
    known: dict[str, WorkloadFacts], found: Found, before: Mapping[str, WorkloadFacts]
) -> dict[str, WorkloadFacts]:
    """Have ``found`` said in ``known``; returns what of it to hand in as ``before`` the next time.

    What is said as before stays the very same: the snapshot makes anew whatever is not.
    """
    hindrances: dict[str, WorkloadFacts] = {}
    for observed, why in found:
        now = replace(known[observed.uid], blocked=why)
        said = before.get(observed.uid)
        known[observed.uid] = hindrances[observed.uid] = said if said == now else now
    return hindrances


def _bounded(rows: PolicyRows) -> dict[str, _Person]:
    found: dict[str, _Person] = {}
    for service in rows.service_classes.classes:
        if service.max_gpus_at_once is not None:
            found.setdefault(service.user, _Person({})).counts[service] = _Counts()
    return found


def _count(person: _Person, observed: Sighting, path: str, known: WorkloadFacts) -> None:
    if known.situation is Situation.WAITING:
        if known.blocked is None and not (observed.is_held or observed.deleting):
            person.waits.append((observed, path))
        return
    stays = known.situation in (Situation.HOLDING, Situation.MOVING)
    members = observed.max_members if stays else sum(observed.placement.values())
    for counts in person.within(path):
        counts.holds += observed.gpus * members


def _judge(person: _Person, rows: PolicyRows) -> Found:
    values = {p.name: p.value for p in rows.priority_classes}

    def turn(waiting: tuple[Sighting, str]) -> tuple[int, datetime, str]:
        observed, _ = waiting
        priority = rows.priority_of(observed.priority_class)
        return -values[priority.name] if priority else 0, observed.created, observed.key

    found: Found = []
    for observed, path in sorted(person.waits, key=turn):
        need = observed.gpus * observed.max_members
        if why := _lack(person, observed, path, rows, need):
            found.append((observed, why))
            continue
        for counts in person.within(path):
            counts.passed += need
    return found


def _lack(
    person: _Person, observed: Sighting, path: str, rows: PolicyRows, need: int
) -> Obstacle | None:
    """Why it has to wait; None where one of the classes of service that let it run has room."""
    widest: tuple[int, ServiceClass] | None = None
    for service in open_to(observed, path, rows.rules):
        most = service.max_gpus_at_once
        if most is None or person.counts[service].taken + need <= most:
            return None
        if widest is None or most > widest[0]:
            widest = most, service
    if widest is None:
        return None
    most, service = widest
    return Obstacle(m.Reason.USER_AT_LIMIT, _sentence(service, most, person.counts[service], need))


def _sentence(service: ServiceClass, most: int, counts: _Counts, need: int) -> str:
    line = (
        f", their work before it in line asks for {amount(counts.passed)}" if counts.passed else ""
    )
    lacks = counts.taken + need - most
    return (
        f"Persona {service.persona} of team {service.team} lets its user hold {gpus_in_words(most)} at once."
        f" They hold {amount(counts.holds)} now{line}, and this asks for {amount(need)}: it starts when"
        f" {amount(lacks)} of theirs {are(lacks)} given back."
    )
