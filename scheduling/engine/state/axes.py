"""How large the tables of a struct are: said beside each field, read when they are laid out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from scheduling.engine.compile.structs import DECLARED


@dataclass(frozen=True, slots=True)
class Axes:
    """Names of what is counted along each axis, and the value that every place begins with."""

    names: tuple[str, ...]
    fill: float


def per(*names: str, fill: float = 0) -> Axes:
    """``per("class", "queue")`` has a place for each class and queue, ``"queue+1"`` one more."""
    return Axes(names, fill)


class Table(NamedTuple):
    """A field that is a table: what is counted along each axis and how many more there are, nothing where the
    number is told; the value that every place begins with.
    """

    axes: tuple[tuple[str, int], ...]
    fill: float
    dtype: Any


def laid_out(kind: Any, sizes: Mapping[str, int], **given: Any) -> Any:
    """A struct of ``kind`` and those inside it, of these sizes; what is ``given`` is taken as it is."""
    names = _hints_of(kind)
    return kind(**{n: given[n] if n in given else _made(_field(kind, n), sizes) for n in names})


@cache
def _hints_of(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


@cache
def _field(kind: Any, name: str) -> Any:
    """Read once, for frames are made by the thousand: the class of a struct inside it, the number that it
    begins with, or a table.
    """
    hint = _hints_of(kind)[name]
    if hint in DECLARED:
        return hint
    if hint is int or hint is float:
        return hint()
    (table, *notes) = get_args(hint)
    axes = next((note for note in notes if isinstance(note, Axes)), None)
    if axes is None:
        raise TypeError(f"{hint} says not how large it is")
    return Table(tuple(map(_counted, axes.names)), axes.fill, np.dtype(_dtype(table)))


def _counted(name: str) -> tuple[str, int]:
    base, _, more = name.partition("+")
    return ("", int(base)) if base.isdigit() else (base, int(more or 0))


def _made(field: Any, sizes: Mapping[str, int]) -> Any:
    if not isinstance(field, Table):
        return laid_out(field, sizes) if isinstance(field, type) else field
    shape = [sizes[base] + more if base else more for base, more in field.axes]
    # A table of zeros takes no memory where nobody writes.
    return np.full(shape, field.fill, field.dtype) if field.fill else np.zeros(shape, field.dtype)


def _dtype(table: Any) -> Any:
    """Of ``NDArray[dtype]``, which is ``ndarray[Any, dtype[dtype]]``, from NumPy 2.5 on an alias for it.

    Raises TypeError for what is no array.
    """
    alias = get_origin(table)
    if hasattr(alias, "__value__"):
        return _dtype(alias.__value__[get_args(table)])
    if alias is not np.ndarray:
        raise TypeError(f"{table} is no array: tables of a struct are NDArray[dtype]")
    return get_args(get_args(table)[1])[0]
