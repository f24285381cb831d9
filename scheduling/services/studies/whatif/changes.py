"""The change document of a what-if: what would be otherwise, as typed values.

    [{"kind": "quota", "queue": "speech", "gpu_class": "h100-80gb", "nominal_gpus": 4},
     {"kind": "capacity", "gpu_class": "h100-80gb", "nodes": 2}]

GPUs are numbers of GPUs, ``null`` is no limit, durations are seconds. Every refusal names the field, as
``changes.0.queue``, and what to write instead. ``applied`` puts changes into a snapshot and plans nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from scheduling.engine import model as m
from scheduling.services.studies.whatif.kinds import (
    KINDS,
    UNCHANGED,
    ArrivalChange,
    CapacityChange,
    Change,
    ChangeError,
    PriorityChange,
    QueueChange,
    QuotaChange,
    one_of,
)

MOST_CHANGES = 20
MOST_NODES = 10_000
MOST_GPUS = 1_000_000
MOST_S = 366 * 86400


@dataclass(frozen=True, slots=True)
class QuestionChanges:
    """All of a question, in the order in which they are made."""

    each: tuple[Change, ...] = field(default=())

    def applied(self, snapshot: m.Snapshot) -> m.Snapshot:
        """The snapshot with all of them. Raises ChangeError at a name that is not there."""
        for number, change in enumerate(self.each):
            try:
                snapshot = change.applied(snapshot, number + 1)
            except ChangeError as error:
                name = f"changes.{number}.{error.field}"
                raise ChangeError(name, error.sentence, error.remedy) from error
        return snapshot

    @property
    def arrivals(self) -> list[tuple[int, ArrivalChange]]:
        """With the number that names each."""
        numbered = enumerate(self.each, 1)
        return [(number, one) for number, one in numbered if isinstance(one, ArrivalChange)]

    def alone(self) -> list[QuestionChanges]:
        return [QuestionChanges((one,)) for one in self.each]

    def document(self) -> list[dict[str, Any]]:
        return [_as_document(one) for one in self.each]


def _as_document(change: Change) -> dict[str, Any]:
    values = {f.name: getattr(change, f.name) for f in fields(change)}
    parts = {name: value for name, value in values.items() if value is not UNCHANGED}
    return {"kind": change.kind} | {
        k: list(v) if isinstance(v, tuple) else v for k, v in parts.items()
    }


def read(document: Any) -> QuestionChanges:
    """Raises ChangeError."""
    if not isinstance(document, Sequence) or isinstance(document, str) or not document:
        raise ChangeError("changes", "There is no change.", "Send a list with at least one change.")
    if len(document) > MOST_CHANGES:
        raise ChangeError(
            "changes", f"There are {len(document)} changes.", f"Ask for {MOST_CHANGES} at most."
        )
    return QuestionChanges(tuple(_read_one(one, f"changes.{i}") for i, one in enumerate(document)))


def _read_one(document: Any, at: str) -> Change:
    if not isinstance(document, Mapping) or document.get("kind") not in KINDS:
        raise ChangeError(f"{at}.kind", "That is no kind of change.", one_of(KINDS))
    kind = KINDS[document["kind"]]
    known = {f.name: f for f in fields(kind)}
    for name in document:
        if name != "kind" and name not in known:
            raise ChangeError(f"{at}.{name}", f"A {kind.kind} has no {name}.", one_of(known))
    required = (
        "queue",
        "gpu_class",
        "nodes",
        "exchange_rate",
        "priority_class",
        "setting",
        "value",
    )
    lacks = ["gpu_classes"] if kind is ArrivalChange else []
    lacks += [
        n for n in required if n in known and not (kind is ArrivalChange and n == "priority_class")
    ]
    for name in lacks:
        if name not in document:
            raise ChangeError(f"{at}.{name}", f"A {kind.kind} needs {name}.", "State it.")
    values = {
        name: _value(name, value, f"{at}.{name}")
        for name, value in document.items()
        if name != "kind"
    }
    change = kind(**values)
    _check(change, at)
    return change


def _check(change: Change, at: str) -> None:
    given = [f.name for f in fields(change) if getattr(change, f.name) is not UNCHANGED]
    if isinstance(change, QuotaChange | QueueChange | PriorityChange) and len(given) < (
        3 if isinstance(change, QuotaChange) else 2
    ):
        raise ChangeError(
            f"{at}.kind", f"This {change.kind} changes nothing.", "State what it sets."
        )
    if isinstance(change, CapacityChange) and change.nodes == 0:
        raise ChangeError(f"{at}.nodes", "No node more or fewer.", "Write a number but 0.")
    if isinstance(change, ArrivalChange):
        most = change.pods_min if change.pods_max is UNCHANGED else change.pods_max
        if most < change.pods_min:
            raise ChangeError(
                f"{at}.pods_max", "Less than pods_min.", f"Write {change.pods_min} or more."
            )


def _value(name: str, value: Any, at: str) -> Any:
    return READERS.get(name, _any)(value, at)


def _any(value: Any, _at: str) -> Any:
    return value


def _text(value: Any, at: str) -> str:
    if not isinstance(value, str) or len(value) > 253:
        raise ChangeError(at, "That is no name.", "Write a name.")
    return value


def _texts(value: Any, at: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ChangeError(at, "That is no list of names.", 'Write it as ["h100-80gb"].')
    found = tuple(_text(one, at) for one in value)
    if not found or len(found) > 100:
        raise ChangeError(at, "Between 1 and 100 names are read.", "Name the classes it may use.")
    return found


def _number(low: float, high: float, *, whole: bool = False, unlimited: bool = False) -> Any:
    def read_number(value: Any, at: str) -> Any:
        if value is None and unlimited:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high or (whole and value != int(value)):
            word = "a whole number" if whole else "a number"
            more = ", or null for no limit" if unlimited else ""
            raise ChangeError(
                at, "That cannot be.", f"Write {word} from {low:,} to {high:,}{more}."
            )
        return int(value) if whole else value

    return read_number


def _flag(value: Any, at: str) -> bool:
    if not isinstance(value, bool):
        raise ChangeError(at, "That is neither true nor false.", "Write true or false.")
    return value


def _stop(value: Any, at: str) -> str:
    if value not in list(m.Stop):
        raise ChangeError(at, "That is no stop policy.", one_of(m.Stop))
    return str(value)


def _sharing(value: Any, at: str) -> str:
    if value not in ("", *m.Sharing):
        raise ChangeError(at, "That is no way of sharing.", one_of(m.Sharing))
    return str(value)


READERS: Mapping[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(
        ("queue", "parent", "gpu_class", "priority_class", "workload", "setting", "user"), _text
    ),
    "gpu_classes": _texts,
    "nominal_gpus": _number(0, MOST_GPUS),
    "borrowing_limit_gpus": _number(0, MOST_GPUS, unlimited=True),
    "lending_limit_gpus": _number(0, MOST_GPUS, unlimited=True),
    "weight": _number(0, 999_999),
    "priority": _number(-1000, 1000, whole=True),
    "stop": _stop,
    "max_running": _number(0, MOST_GPUS, whole=True, unlimited=True),
    "max_running_per_user": _number(0, MOST_GPUS, whole=True, unlimited=True),
    "max_gpus_per_user": _number(0, MOST_GPUS, unlimited=True),
    "sharing": _sharing,
    "min_run_time_s": _number(0, MOST_S, whole=True, unlimited=True),
    "max_wait_s": _number(0, MOST_S, whole=True, unlimited=True),
    "nodes": _number(-MOST_NODES, MOST_NODES, whole=True),
    "gpus_per_node": _number(0.001, 1024),
    "exchange_rate": _number(0.001, 1000),
    "preemptible": _flag,
    "gpus_per_pod": _number(0.001, 1024),
    "pods_min": _number(1, 100_000, whole=True),
    "pods_max": _number(1, 100_000, whole=True),
    "run_s": _number(1, MOST_S, whole=True),
}
