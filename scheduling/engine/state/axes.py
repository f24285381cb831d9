"""How large the tables of a struct are: said beside each field, read when they are laid out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

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


def laid_out(kind: Any, sizes: Mapping[str, int], **given: Any) -> Any:
    """A struct of ``kind`` and those inside it, of these sizes; what is ``given`` is taken as it is."""
    fields = _fields_of(kind).items()
    return kind(**{n: given[n] if n in given else _field(h, sizes) for n, h in fields})


@cache
def _fields_of(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _field(hint: Any, sizes: Mapping[str, int]) -> Any:
    if hint in DECLARED:
        return laid_out(hint, sizes)
    if hint is int or hint is float:
        return hint()
    (table, *notes) = get_args(hint)
    axes = next((note for note in notes if isinstance(note, Axes)), None)
    if axes is None:
        raise TypeError(f"{hint} says not how large it is")
    shape = tuple(_size(name, sizes) for name in axes.names)
    # A table of zeros takes no memory where nobody writes.
    kind = _dtype(table)
    return np.full(shape, axes.fill, kind) if axes.fill else np.zeros(shape, kind)


def _size(name: str, sizes: Mapping[str, int]) -> int:
    base, _, more = name.partition("+")
    return (int(base) if base.isdigit() else sizes[base]) + int(more or 0)


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
