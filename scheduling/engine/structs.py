"""Hands a NamedTuple of arrays to compiled kernels as one pointer.

Numba passes a NamedTuple by value: every array of it is copied into each call, which costs more than
the small kernels themselves. ``as_struct`` turns it, once per frame, into a heap struct with the same
fields over the same memory, so kernels read ``work.phase[w]`` either way.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from numba import config, types
from numba.core.extending import overload
from numba.experimental import structref

FIELDS: dict[str, tuple[str, ...]] = {}
"""Field names by struct name; ``declare`` adds to it when a module is imported."""


@structref.register
class StructType(types.StructRef):
    """Type of every struct made here; its fields are those of the NamedTuple."""

    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Struct(structref.StructRefProxy):
    """What Python holds of a struct: a handle that only kernels look into."""

    __slots__ = ()


structref.define_boxing(StructType, Struct)


def declare(kind: Any) -> Any:
    """Class decorator: ``as_struct`` knows the NamedTuple by its name."""
    FIELDS[kind.__name__] = kind._fields
    return kind


def as_struct(name: str, values: tuple[Any, ...]) -> Any:
    """Struct of the values of the NamedTuple called ``name``; in compiled code, or with compiling off.

    It takes a plain tuple because Numba's cache on disk does not recognise NamedTuple types again.
    """
    if not config.DISABLE_JIT:
        raise NotImplementedError("as_struct runs in compiled code only")
    return SimpleNamespace(**dict(zip(FIELDS[name], values, strict=True)))


@overload(as_struct, strict=False, prefer_literal=True)
def _as_struct(name: Any, values: Any) -> Any:
    fields = FIELDS[name.literal_value]
    kind = StructType(list(zip(fields, values.types, strict=True)))
    lines = ["def build(name, values):", "    struct = new(kind)"]
    lines += [f"    struct.{field} = values[{i}]" for i, field in enumerate(fields)]
    scope = {"new": structref.new, "kind": kind}
    exec("\n".join([*lines, "    return struct"]), scope)  # noqa: S102 - names are our own fields
    return scope["build"]
