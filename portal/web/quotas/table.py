"""The grid as its template draws it: rows of cells by class, sum rows under the children they add up."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Sum

from portal.web.quotas.edit_form import PostedEdit, cell_name, figure_text, parse_figure
from scheduling.models import Cluster, GpuClass, Node, Queue
from scheduling.services.queues.faults import WORDS, figure, stored
from scheduling.services.queues.save import EditFault, Field, Grid, GridRow, Values

HEADS = {"Nominal": Field.NOMINAL, "Borrow": Field.BORROWING_LIMIT,
         "Lend": Field.LENDING_LIMIT, "Weight": Field.WEIGHT, "Hours": Field.BUDGET}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClassColumn:
    """A GPU class over its figures."""

    gpu_class: GpuClass
    shown: bool
    toggle: str
    """Query string of the page with just this class shown or hidden."""


@dataclass(frozen=True, slots=True)
class Cell:
    name: str
    field: Field
    text: str
    """What stands there: typed, or in force."""
    was: str
    label: str
    fault: EditFault | None = None

    @property
    def edited(self) -> bool:
        return self.text.strip() != self.was


@dataclass(frozen=True, slots=True)
class CellGroup:
    """The cells of one queue and class, or, in a sum row, the sum."""

    column: ClassColumn
    cells: Sequence[Cell] = ()
    sum: Total | None = None


@dataclass(frozen=True, slots=True)
class Total:
    """What the children of a queue hold of what it was given, milli-GPU."""

    sum: int
    given: int
    strict: bool
    """False at the root, where nodes give: more is allowed, and flagged."""

    @property
    def left(self) -> int:
        return self.given - self.sum

    @property
    def is_error(self) -> bool:
        return self.strict and self.left < 0

    @property
    def of(self) -> str:
        return f"{figure(self.sum)} of {figure(self.given)}"

    @property
    def rest(self) -> str:
        if self.left >= 0:
            return f"{figure(self.left)} left"
        return f"{figure(-self.left)} {'too many' if self.strict else 'over'}"


@dataclass(frozen=True, slots=True)
class QuotaRow:
    queue: Queue
    depth: int
    groups: Sequence[CellGroup]
    editable: bool = False
    children: int = 0
    """Above zero: the sum row of so many children."""


@dataclass(slots=True)
class Table:
    """All that the grid's template needs; ``faults`` are those of cells, in the grid's order."""

    grid: Grid
    columns: Sequence[ClassColumn]
    rows: list[QuotaRow]
    heads: Mapping[str, Field] = field(default_factory=lambda: HEADS)

    @property
    def faults(self) -> list[EditFault]:
        return [c.fault for r in self.rows for g in r.groups for c in g.cells if c.fault]

    @property
    def edits(self) -> int:
        return sum(c.edited for r in self.rows for g in r.groups for c in g.cells)

    @property
    def given(self) -> list[tuple[GpuClass, int]]:
        """What the top was given of each class, milli-GPU."""
        top = self.rows[0].groups
        return [(g.column.gpu_class, _milli(g.cells[0].was)) for g in top]


@dataclass(slots=True)
class _Maker:
    grid: Grid
    columns: Sequence[ClassColumn]
    typed: PostedEdit
    faults: Mapping[tuple[str | None, str | None, str], EditFault]
    editable: bool
    seen: Collection[int]
    installed: Mapping[int, int]
    """Milli-GPU of the nodes by class, where the root is divided."""

    def rows(self, row: GridRow) -> Iterator[QuotaRow]:
        """The row of a queue, then its children, then their sum, unless some of them are hidden."""
        top = row is self.grid.rows[0]
        groups = [CellGroup(column, self._cells(row, column)) for column in self.columns]
        yield QuotaRow(row.queue, row.depth, groups, editable=self.editable and not top)
        children = self.grid.children(row.queue)
        shown = [child for child in children if child.queue.pk in self.seen]
        for child in shown:
            yield from self.rows(child)
        if shown and len(shown) == len(children):
            sums = [CellGroup(c, sum=self._sum(row, children, c.gpu_class)) for c in self.columns]
            yield QuotaRow(row.queue, row.depth + 1, sums, children=len(children))

    def _cells(self, row: GridRow, column: ClassColumn) -> list[Cell]:
        return [self._cell(row, column.gpu_class, each) for each in Field]

    def _cell(self, row: GridRow, gpu_class: GpuClass, each: Field) -> Cell:
        name = cell_name(row.queue, gpu_class, each)
        was = self._was(row, gpu_class, each)
        return Cell(
            name=name,
            field=each,
            text=self.typed.texts.get(name, was),
            was=was,
            label=f"{row.queue.name}, {gpu_class.name}, {WORDS[each]}",
            fault=self.faults.get((row.queue.name, gpu_class.name, each.value)),
        )

    def _was(self, row: GridRow, gpu_class: GpuClass, each: Field) -> str:
        if not row.queue.is_root:
            return figure_text(row.values[gpu_class.name], each)
        return figure(self.installed.get(gpu_class.pk, 0)) if each is Field.NOMINAL else "–"

    def _sum(self, row: GridRow, children: Sequence[GridRow], gpu_class: GpuClass) -> Total:
        total = sum(self._nominal(child, gpu_class) for child in children)
        given = (
            self.installed.get(gpu_class.pk, 0)
            if row.queue.is_root
            else self._nominal(row, gpu_class)
        )
        return Total(total, given, strict=not row.queue.is_root)

    def _nominal(self, row: GridRow, gpu_class: GpuClass) -> int:
        """As typed where that is a figure, else as in force."""
        text = self.typed.texts.get(cell_name(row.queue, gpu_class, Field.NOMINAL))
        value = parse_figure(text, Field.NOMINAL) if text is not None else None
        if value is None or isinstance(value, EditFault):
            return row.values.get(gpu_class.name, Values()).nominal
        return int(stored(Field.NOMINAL, value) or 0)


def make_table(
    grid: Grid,
    *,
    chosen: Sequence[str],
    typed: PostedEdit | None = None,
    faults: Sequence[EditFault] = (),
    editable: bool,
    seen: Collection[int],
) -> Table:
    """The table of ``grid`` without the queues that are not in ``seen`` (primary keys).

    ``chosen``: names of the classes to show (none: the first two); one with a fault always shows.
    """
    columns = _columns(grid.gpu_classes, chosen, {f.gpu_class for f in faults})
    maker = _Maker(
        grid,
        columns,
        typed or PostedEdit(),
        {(f.queue, f.gpu_class, f.field): f for f in faults},
        editable,
        seen,
        _installed(grid.queue.cluster) if grid.queue.is_root else {},
    )
    return Table(grid, columns, list(maker.rows(grid.rows[0])))


def _columns(
    classes: Sequence[GpuClass], chosen: Sequence[str], faulty: set[str | None]
) -> list[ClassColumn]:
    names = [c.name for c in classes]
    shown = {name for name in names if name in chosen} or set(names[:2])
    shown |= {name for name in names if name in faulty}
    columns = []
    for gpu_class in classes:
        others = shown ^ {gpu_class.name} or {gpu_class.name}
        toggle = "&".join(f"class={name}" for name in names if name in others)
        columns.append(ClassColumn(gpu_class, gpu_class.name in shown, f"?{toggle}"))
    return columns


def _installed(cluster: Cluster) -> dict[int, int]:
    rows: Any = Node.objects.filter(cluster=cluster).values("gpu_class").annotate(sum=Sum("gpus"))
    return {row["gpu_class"]: row["sum"] for row in rows.order_by()}


def _milli(text: str) -> int:
    value = parse_figure(text, Field.NOMINAL)
    return 0 if value is None or isinstance(value, EditFault) else int(value * 1000)
