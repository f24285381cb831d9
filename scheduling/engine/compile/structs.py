"""Hands a NamedTuple of arrays to compiled kernels as one pointer.

Numba passes a NamedTuple by value and counts references to every array that is read from one, with an
atomic instruction each time. ``as_struct`` turns it, once per frame, into a table of machine words over
the same memory: kernels read ``work.phase[w]`` either way, and count nothing. Python keeps the memory.

An index below zero is a mistake in a kernel, not a place from the end: to look for the sign of each index
took a fifth of a plan. Where compiling is off such an index raises.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

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
