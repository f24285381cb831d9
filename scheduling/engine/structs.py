"""Hands a NamedTuple of arrays to compiled kernels as one pointer.

Numba passes a NamedTuple by value: every array of it is copied into each call, which costs more than
the small kernels themselves. ``as_struct`` turns it, once per frame, into a struct in memory that Python
owns, over the same arrays; kernels read ``work.phase[w]`` either way.

Numba's own structref would count references at every field of every struct, which was half of a
cycle's time, and spell out all field types in every symbol, which was most of the compiler's. Here
nothing is counted: whoever holds the struct keeps its arrays and its memory alive.
"""

from __future__ import annotations

from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    box,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    lower_setattr_generic,
    overload,
    register_model,
    unbox,
)

FIELDS: dict[str, tuple[str, ...]] = {}
"""Field names by struct name; ``declare`` adds to it when a module is imported."""
WORDS = 1 << 13
"""Size of the memory for the structs of one frame, in words of eight bytes."""


class StructType(types.Type):
    """A pointer to fields of these names and types; its name is short, as it is in every symbol."""

    def __init__(self, label: str, fields: tuple[tuple[str, Any], ...]) -> None:
        self.label, self.fields = label, fields
        self.types = dict(fields)
        digest = sha256(repr(fields).encode()).hexdigest()[:12]
        super().__init__(name=f"{label}_{digest}")

    def payload(self) -> Any:
        return types.StructRefPayload(typename=self.name, fields=self.fields)


class Struct:
    """What Python holds of a struct: its address, and what it lives in."""

    __slots__ = ("_numba_type_", "address", "memory")

    def __init__(self, kind: StructType, address: int) -> None:
        self._numba_type_, self.address = kind, address
        self.memory: Any = None


register_model(StructType)(models.OpaqueModel)


@infer_getattr
class _Fields(AttributeTemplate):
    key = StructType

    def generic_resolve(self, typ: StructType, attr: str) -> Any:
        return typ.types.get(attr)


def _data(context: Any, builder: Any, typ: StructType, pointer: Any) -> Any:
    payload = typ.payload()
    layout = context.data_model_manager[payload].get_data_type()
    typed = builder.bitcast(pointer, layout.as_pointer())
    return context.make_data_helper(builder, payload, ref=typed)


@lower_getattr_generic(StructType)
def _get(context: Any, builder: Any, typ: StructType, pointer: Any, attr: str) -> Any:
    value = getattr(_data(context, builder, typ, pointer), attr)
    return _uncounted(context, builder, typ.types[attr], value)


@lower_setattr_generic(StructType)
def _set(context: Any, builder: Any, sig: Any, args: Any, attr: str) -> None:
    typ, kind = sig.args
    value = context.cast(builder, args[1], kind, typ.types[attr])
    setattr(_data(context, builder, typ, args[0]), attr, value)


def _uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """An array that nobody counts references to: then the compiler drops the counting."""
    if not isinstance(kind, types.Array):
        return value
    array = context.make_array(kind)(context, builder, value)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()


@intrinsic
def _place(typing: Any, kind: Any, values: Any, memory: Any, at: Any) -> Any:
    """The struct of ``values`` at word ``at`` of ``memory``, and its size in words."""
    struct = kind.instance_type

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = context.make_array(memory)(context, builder, args[2]).data
        pointer = builder.bitcast(builder.gep(words, [args[3]]), cgutils.voidptr_t)
        data = _data(context, builder, struct, pointer)
        for i, (field, stored) in enumerate(struct.fields):
            value = builder.extract_value(args[1], i)
            value = context.cast(builder, value, values.types[i], stored)
            setattr(data, field, _uncounted(context, builder, stored, value))
        layout = context.data_model_manager[struct.payload()].get_data_type()
        size = context.get_constant(types.int64, -(-context.get_abi_sizeof(layout) // 8))
        return context.make_tuple(builder, sig.return_type, (pointer, size))

    return types.Tuple((struct, types.int64))(kind, values, memory, at), generate


@box(StructType)
def _box(typ: StructType, pointer: Any, c: Any) -> Any:
    address = c.builder.ptrtoint(pointer, cgutils.intp_t)
    make = c.pyapi.unserialize(c.pyapi.serialize_object(Struct))
    kind = c.pyapi.unserialize(c.pyapi.serialize_object(typ))
    number = c.pyapi.long_from_ssize_t(address)
    made = c.pyapi.call_function_objargs(make, (kind, number))
    for used in (make, kind, number):
        c.pyapi.decref(used)
    return made


@unbox(StructType)
def _unbox(typ: StructType, obj: Any, c: Any) -> Any:
    number = c.pyapi.object_getattr_string(obj, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(address)


def declare(kind: Any) -> Any:
    """Class decorator: ``as_struct`` knows the NamedTuple by its name."""
    FIELDS[kind.__name__] = kind._fields
    return kind


def memory_for_structs() -> Any:
    """Words for the structs of one frame; the first says how many are used."""
    words = np.zeros(WORDS, np.int64)
    words[0] = 1
    return words


def as_struct(name: str, values: tuple[Any, ...], memory: Any) -> Any:
    """Struct of the values of the NamedTuple called ``name``, in ``memory``; in compiled code, or with
    compiling off. Who keeps it keeps the memory and all arrays.

    It takes a plain tuple because Numba's cache on disk does not recognise NamedTuple types again.
    Raises MemoryError when the memory is too small.
    """
    if not config.DISABLE_JIT:
        raise NotImplementedError("as_struct runs in compiled code only")
    return SimpleNamespace(**dict(zip(FIELDS[name], values, strict=True)))


@overload(as_struct, strict=False, prefer_literal=True)
def _as_struct(name: Any, values: Any, memory: Any) -> Any:
    most = 24 * len(values.types)  # words of the largest fields: arrays of four dimensions
    kinds = tuple(types.unliteral(kind) for kind in values.types)
    fields = FIELDS[name.literal_value]
    struct_type = StructType(name.literal_value, tuple(zip(fields, kinds, strict=True)))

    def build(name: Any, values: Any, memory: Any) -> Any:
        if memory[0] + most > memory.size:
            raise MemoryError("the structs of a frame need more words")
        struct, size = _place(struct_type, values, memory, memory[0])
        memory[0] += size
        return struct

    return build
