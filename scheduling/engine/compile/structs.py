"""Hands a NamedTuple of arrays to compiled kernels as one pointer.

Numba passes a NamedTuple by value and counts references to every array that is read from one, with an
atomic instruction each time. ``as_struct`` turns it, once per frame, into a table of machine words over
the same memory: kernels read ``work.phase[w]`` either way, and count nothing. Python keeps the memory.

How large the tables of a struct are is said beside each field, and read when they are laid out.

An index below zero is a mistake in a kernel, not a place from the end: to look for the sign of each index
took a fifth of a plan. Where compiling is off such an index raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from scheduling.engine.compile import mode

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
T = TypeVar("T")

DECLARED: set[type] = set()
"""The NamedTuples that are structs; ``declare`` adds to it when a module is imported."""


def declare(kind: type[T]) -> type[T]:
    """Class decorator: ``as_struct`` takes it, and wherever it stands inside another. A NamedTuple, or a
    dataclass where kernels set numbers in it.
    """
    DECLARED.add(kind)
    return kind


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


class PlainTable(np.ndarray):
    """An array inside a struct where compiling is off."""

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(_from_zero(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(_from_zero(index), value)


def _from_zero(index: Any) -> Any:
    """Raises IndexError for a number below zero."""
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, int | np.integer) and part < 0:
            raise IndexError(f"a kernel asks for place {index} of a table")
    return index


def parts_of(values: Any) -> dict[str, Any]:
    """Fields of a declared class, by name."""
    if is_dataclass(values):
        return {field.name: getattr(values, field.name) for field in fields(values)}
    return dict(values._asdict())


def as_struct(values: Any) -> Any:
    """The struct of a declared class, and of those inside it. Scalars are copied, arrays shared.

    With compiling off a namespace that Python code reads in the same way.
    """
    parts = {
        name: as_struct(value) if type(value) in DECLARED else value
        for name, value in parts_of(values).items()
    }
    if not mode.PLAIN:
        return words.Struct(type(values).__name__, parts)
    plain = {k: v.view(PlainTable) if isinstance(v, np.ndarray) else v for k, v in parts.items()}
    return SimpleNamespace(**plain)


if not mode.PLAIN:
    # In this order: the second loads all of Numba.
    from scheduling.engine.compile import (
        blas,  # noqa: F401
        words,
    )
