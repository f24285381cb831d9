"""A queue tree as a file: read with line and path for each fault, and applied as one.

queues:
  - name: research
    nominal: {h100: 24}
    queues:
      - {name: vision, namespace: vision, nominal: {h100: 16}, weight: {h100: 2}}
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from scheduling.files import BrokenFileError, Fault, lines_of, read
from scheduling.models import Cluster, Queue
from scheduling.services.errors import ServiceError
from scheduling.services.queues.faults import QuotaCell, as_typed
from scheduling.services.queues.save import GridRow, Values, grid, save_quotas
from scheduling.services.queues.tree import change_queue, create_queue, offering
from scheduling.services.queues.values import Field

FIGURES = {
    "nominal": Field.NOMINAL,
    "borrowing_limit": Field.BORROWING_LIMIT,
    "lending_limit": Field.LENDING_LIMIT,
    "weight": Field.WEIGHT,
}
SHAPE = ("namespace", "access_group", "priority")
KEYS = ("name", *SHAPE, "queues", *FIGURES)
MOST_QUEUES = 2000


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A queue with what hangs below it. Figures are GPUs by class, of the weight a number; None: no limit."""

    name: str
    namespace: str = ""
    access_group: str = ""
    priority: int = 0
    nominal: Mapping[str, Decimal] = field(default_factory=dict)
    borrowing_limit: Mapping[str, Decimal | None] = field(default_factory=dict)
    lending_limit: Mapping[str, Decimal | None] = field(default_factory=dict)
    weight: Mapping[str, Decimal] = field(default_factory=dict)
    queues: Sequence[QueueSpec] = ()
    why: str = ""
    """Whence a proposal has it."""

    def walk(self, depth: int = 0) -> Iterator[tuple[QueueSpec, int]]:
        yield self, depth
        for queue in self.queues:
            yield from queue.walk(depth + 1)


class TreeError(ServiceError):
    """Nothing of the file is used; ``faults`` each name line and path."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(
            "broken_file",
            "; ".join(map(str, faults[:3])) + ".",
            "Nothing was changed.",
            field="tree",
        )


def parse(text: str, cluster: Cluster, *, name: str = "tree.yaml") -> list[QueueSpec]:
    """The queues of ``text``. Raises TreeError with every fault."""
    try:
        document = read(text, name)
    except BrokenFileError as error:
        raise TreeError(error.faults) from error
    found = _Reader({c.name for c in cluster.gpu_classes.all()})
    rows = document.get("queues") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not rows:
        found.fault("queues", "no list", "a list of queues", "begin the file with queues:")
        rows = []
    queues = found.queues(rows, "queues")
    if found.faults:
        lines = lines_of(text, [path for path, *_ in found.faults]) if text.strip() else {}
        raise TreeError([Fault(name, lines.get(f[0], 0), *f) for f in found.faults])
    return queues


class _Reader:
    def __init__(self, classes: set[str]) -> None:
        self.classes, self.names = classes, set[str]()
        self.faults: list[tuple[str, str, str, str]] = []

    def fault(self, path: str, found: str, expected: str, remedy: str) -> None:
        self.faults.append((path, found[:80], expected, remedy))

    def queues(self, rows: list[Any], path: str) -> list[QueueSpec]:
        found = [self._queue(row, f"{path}[{i}]") for i, row in enumerate(rows)]
        return [queue for queue in found if queue is not None]

    def _queue(self, row: Any, path: str) -> QueueSpec | None:
        if not isinstance(row, dict):
            self.fault(path, repr(row), "keys with values", "give the queue a name")
            return None
        for key in row.keys() - set(KEYS):
            self.fault(f"{path}.{key}", repr(key), f"one of {', '.join(KEYS)}", "take it out")
        name = self._name(row.get("name"), f"{path}.name")
        priority = row.get("priority", 0)
        if not isinstance(priority, int) or isinstance(priority, bool):
            self.fault(f"{path}.priority", repr(priority), "a whole number", "write 0")
            priority = 0
        below = row.get("queues") or []
        if not isinstance(below, list):
            self.fault(f"{path}.queues", repr(below), "a list of queues", "correct it")
            below = []
        figures: dict[str, Any] = {
            key: self._figures(row.get(key), key, f"{path}.{key}") for key in FIGURES
        }
        return QueueSpec(
            name,
            namespace=self._text(row, "namespace", path),
            access_group=self._text(row, "access_group", path),
            priority=priority,
            queues=self.queues(below, f"{path}.queues"),
            **figures,
        )

    def _name(self, name: Any, path: str) -> str:
        if not isinstance(name, str) or not name:
            self.fault(path, repr(name), "a name", "name the queue")
            return ""
        if name in self.names:
            self.fault(path, repr(name), "a name of its own", "rename one of the two")
        self.names.add(name)
        if len(self.names) == MOST_QUEUES + 1:
            self.fault(path, "more queues", f"at most {MOST_QUEUES}", "part the file")
        return name

    def _text(self, row: Mapping[str, Any], key: str, path: str) -> str:
        text = row.get(key, "")
        if not isinstance(text, str):
            self.fault(f"{path}.{key}", repr(text), "a text", "put it in quotes")
            return ""
        return text

    def _figures(self, value: Any, key: str, path: str) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.fault(path, repr(value), "a number for each GPU class", "write {h100: 8}")
            return {}
        return {
            name: self._figure(value, name, key, f"{path}.{name}") for name, value in value.items()
        }

    def _figure(self, value: Any, name: str, key: str, path: str) -> Decimal | None:
        if name not in self.classes:
            known = ", ".join(sorted(self.classes)) or "none yet"
            self.fault(path, repr(name), f"a GPU class of the cluster ({known})", "correct it")
            return None
        if value == "all" and key.endswith("limit"):
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**6:
            limits = ", or all" if key.endswith("limit") else ""
            self.fault(path, repr(value), f"a number from 0 to 999,999{limits}", "correct it")
            return None
        return Decimal(str(value))


class StandingError(ServiceError):
    """Namespaces of the tree that stand on the cluster, with what the author has to be shown of each."""

    def __init__(self, shown: Mapping[str, ServiceError]) -> None:
        self.names = tuple(sorted(shown))
        super().__init__(
            "namespace_stands",
            " ".join(shown[name].sentence for name in self.names),
            f"Look at what runs there and offer them ({offering(*self.names)}); "
            f"then say so with taking: {', '.join(self.names)}.",
            field="taking",
        )


@transaction.atomic
def apply_tree(
    *,
    cluster: Cluster,
    queues: Sequence[QueueSpec],
    author: AbstractBaseUser | None,
    reason: str,
    taking: Collection[str] = (),
) -> list[Queue]:
    """Make what is not there yet, change what is, and give all of it its figures: all or nothing.

    Queues that the tree does not name stay as they are. Raises ServiceError; StandingError for namespaces of
    which ``taking`` does not say that the author was shown what becomes of them.
    """
    root = cluster.queues.get(parent=None)
    placing = _Placing(author, frozenset(taking))
    made = [found for spec in queues for found in placing.place(spec, root)]
    if placing.shown:
        raise StandingError(placing.shown)
    cells = _changed(root, list(_cells(queues)))
    if cells:
        save_quotas(queue=root, cells=cells, author=author, reason=reason)
    return made


@transaction.atomic
def apply_figures(
    *, top: Queue, queues: Sequence[QueueSpec], author: AbstractBaseUser | None, reason: str
) -> list[Queue]:
    """Give the queues below ``top`` that are named their figures, all or nothing; nothing else of a queue
    changes. Raises QuotaError, and as ``figure_edits`` does."""
    found, cells = figure_edits(top, queues)
    if cells:
        save_quotas(queue=top, cells=cells, author=author, reason=reason)
    return found


def figure_edits(top: Queue, queues: Sequence[QueueSpec]) -> tuple[list[Queue], list[QuotaCell]]:
    """The queues below ``top`` that are named, and what their figures would change. Raises ServiceError for a
    queue that is not below it, or stands elsewhere in it."""
    there = {row.queue.name: row.queue for row in grid(top, top.cluster.now()).rows[1:]}
    found = []
    for spec, above in _with_above(queues, top.name):
        queue = there.get(spec.name)
        if queue is None or queue.parent is None or queue.parent.name != above:
            raise ServiceError(
                "not_there",
                f"{above} has no queue {spec.name[:63]} right below it.",
                f"A file of {top.name} gives figures to queues that are there. Add or move queues on the "
                "page Quotas first.",
                field="queues",
            )
        if any(getattr(spec, key) not in ("", 0, getattr(queue, key)) for key in SHAPE):
            raise ServiceError(
                "not_figures",
                f"The file says more of {spec.name} than its figures.",
                "Take namespace, access group and priority out, or change them on the queue's page.",
                field="queues",
            )
        found.append(queue)
    return found, _changed(top, list(_cells(queues)))


def _with_above(queues: Sequence[QueueSpec], above: str) -> Iterator[tuple[QueueSpec, str]]:
    for spec in queues:
        yield spec, above
        yield from _with_above(spec.queues, spec.name)


def tree_of(cluster: Cluster, at: datetime, top: Queue | None = None) -> list[dict[str, Any]]:
    """What a file says of every queue below ``top``, by default the root, with the figures in force at
    ``at``, as ``parse`` reads it."""
    rows = grid(top or cluster.queues.get(parent=None), at).rows
    below: dict[int | None, list[dict[str, Any]]] = {}
    for row in reversed(rows):
        below.setdefault(row.queue.parent_id, []).insert(
            0, _as_json(row, below.get(row.queue.pk, []))
        )
    root = rows[0].queue.pk
    return below.get(root, [])


def _as_json(row: GridRow, queues: list[dict[str, Any]]) -> dict[str, Any]:
    """Without what is empty, and without figures that are the default."""
    queue, entry = row.queue, {"name": row.queue.name}
    said: dict[str, Any] = {key: getattr(queue, key) for key in SHAPE}
    for key, kind in FIGURES.items():
        figures = {name: values.get(kind) for name, values in row.values.items()}
        default = Values().get(kind)
        said[key] = {name: _number(kind, v) for name, v in figures.items() if v != default}
    return entry | {key: value for key, value in {**said, "queues": queues}.items() if value}


def _number(kind: Field, value: int | Decimal | None) -> float | None:
    """A whole one as people write it: 37, not 37.0."""
    number = as_typed(kind, value)
    if number is None:
        return None
    return int(number) if number == int(number) else float(number)


@dataclass(slots=True)
class _Placing:
    author: AbstractBaseUser | None
    taking: frozenset[str]
    shown: dict[str, ServiceError] = field(default_factory=dict)
    """Namespace -> what its taking was refused with; the others are looked at all the same."""

    def place(self, spec: QueueSpec, parent: Queue) -> Iterator[Queue]:
        try:
            with transaction.atomic():
                found = self._save(spec, parent, spec.namespace in self.taking)
        except ServiceError as refused:
            if refused.code != "namespace_stands":
                raise
            self.shown[spec.namespace] = refused
            found = self._save(spec, parent, True)
        yield found
        for below in spec.queues:
            yield from self.place(below, found)

    def _save(self, spec: QueueSpec, parent: Queue, is_shown: bool) -> Queue:
        fields: dict[str, Any] = {"priority": spec.priority, "namespace": spec.namespace}
        fields["access_group"] = spec.access_group
        fields |= {"author": self.author, "taking": spec.namespace if is_shown else ""}
        there = Queue.objects.filter(cluster=parent.cluster, name=spec.name).first()
        if there is None:
            return create_queue(parent=parent, name=spec.name, **fields)
        values = {name: value for name, value in fields.items() if value or name == "author"}
        return change_queue(queue=there, parent=parent, **values)


def _cells(queues: Sequence[QueueSpec]) -> Iterator[QuotaCell]:
    for top in queues:
        for spec, _ in top.walk():
            for key, kind in FIGURES.items():
                for name, value in getattr(spec, key).items():
                    yield QuotaCell(spec.name, name, kind, value)


def _changed(root: Queue, cells: Sequence[QuotaCell]) -> list[QuotaCell]:
    """Without those that say what is in force."""
    rows = grid(root, root.cluster.now()).rows
    before = {(row.queue.name, name): values for row in rows for name, values in row.values.items()}
    return [
        cell
        for cell in cells
        if as_typed(cell.field, before[cell.queue, cell.gpu_class].get(cell.field)) != cell.value
    ]
