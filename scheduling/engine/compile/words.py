"""Structs as kernels read them: a table of machine words, each a number, a pointer or a length."""

from __future__ import annotations

import operator
from hashlib import sha256
from struct import Struct as Packed
from typing import Any

import numpy as np
from numba import typeof, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.extending import (
    NativeValue,
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    register_model,
    typeof_impl,
    unbox,
)
from numba.core.typing.templates import AttributeTemplate
from numba.np.arrayobj import getitem_array_tuple, getitem_arraynd_intp, setitem_array
from numba.np.numpy_support import from_dtype

WORD = cgutils.intp_t
_FLOAT, _WORD = Packed("d"), Packed("q")


class ArrayType(types.Array):
    """Type of an array inside a struct."""


class StructType(types.Type):
    """Type of every struct made here; its fields are those of the NamedTuple."""

    def __init__(self, struct: str, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.first, self.words = {}, 0
        for name, kind in fields.items():
            self.first[name] = self.words
            self.words += _words(kind)
        layout = sha256(repr([(name, str(kind)) for name, kind in fields.items()]).encode())
        super().__init__(name=f"{struct}_{layout.hexdigest()[:12]}")


def _words(kind: Any) -> int:
    """Words of a field: a number, a pointer, or a pointer and the shape."""
    return 1 + kind.ndim if isinstance(kind, types.Array) else 1


class Struct:
    """What Python holds of a struct: its memory, and all that it points to."""

    __slots__ = ("address", "kind", "parts", "table")

    def __init__(self, name: str, parts: dict[str, Any]) -> None:
        """Raises TypeError for an array that is not contiguous."""
        self.parts = parts
        self.kind = _struct_of(name, parts)
        words = [word for part in parts.values() for word in _written(part)]
        self.table = np.array(words or [0], np.int64)
        self.address = _address(self.table)


_kinds: dict[tuple[Any, ...], StructType] = {}
"""Types by name and fields: structs are made by the thousand, and types of Numba are slow to compare."""


def _struct_of(name: str, parts: dict[str, Any]) -> StructType:
    form = (name, *parts, *map(_form, parts.values()))
    if form not in _kinds:
        _kinds[form] = StructType(name, {field: _kind_of(part) for field, part in parts.items()})
    return _kinds[form]


def _form(part: Any) -> Any:
    """What ``_kind_of`` goes by."""
    if isinstance(part, Struct):
        return part.kind.name
    if not isinstance(part, np.ndarray):
        return type(part)
    if not part.flags.c_contiguous:
        raise TypeError(f"a struct takes contiguous arrays, not strides of {part.strides}")
    return part.dtype.char, part.ndim


def _kind_of(part: Any) -> Any:
    if isinstance(part, Struct):
        return part.kind
    if not isinstance(part, np.ndarray):
        return types.unliteral(typeof(part))
    return ArrayType(from_dtype(part.dtype), part.ndim, "C")


def _written(part: Any) -> tuple[int, ...]:
    if isinstance(part, Struct):
        return (part.address,)
    if isinstance(part, np.ndarray):
        return (_address(part), *part.shape)
    return _WORD.unpack(_FLOAT.pack(part)) if isinstance(part, float) else (int(part),)


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


class TableModel(models.ArrayModel):
    """An array whose memory Python keeps: nobody counts references to it."""

    def traverse(self, builder: Any) -> list[Any]:
        return []

    def inner_models(self) -> list[Any]:
        return []


register_model(StructType)(models.OpaqueModel)
register_model(ArrayType)(TableModel)


@typeof_impl.register(Struct)
def _typeof(value: Struct, context: Any) -> StructType:
    return value.kind


@unbox(StructType)
def _unbox(kind: StructType, value: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(value, "address")
    word = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(c.builder.inttoptr(word, cgutils.voidptr_t))


@infer_getattr
class _Fields(AttributeTemplate):
    key = StructType

    def generic_resolve(self, kind: StructType, name: str) -> Any:
        return kind.fields.get(name)


def _place(builder: Any, struct: Any, word: int, kind: Any) -> Any:
    """Pointer to a word of the struct, as one to LLVM type ``kind``."""
    table = builder.bitcast(struct, WORD.as_pointer())
    place = builder.gep(table, [WORD(word)])
    return builder.bitcast(place, kind.as_pointer())


@lower_getattr_generic(StructType)
def _get(context: Any, builder: Any, struct: Any, value: Any, name: str) -> Any:
    kind, first = struct.fields[name], struct.first[name]
    if isinstance(kind, types.Array):
        return _array(context, builder, kind, value, first)
    if isinstance(kind, StructType):
        return _fixed(builder, value, first, context.get_value_type(kind))
    if isinstance(kind, types.Boolean):
        word = builder.load(_place(builder, value, first, WORD))
        return builder.icmp_unsigned("!=", word, word.type(0))
    return builder.load(_place(builder, value, first, context.get_value_type(kind)))


def _fixed(builder: Any, struct: Any, word: int, kind: Any) -> Any:
    """Read a word that no kernel changes, so that it is read once, whatever is written in between."""
    read = builder.load(_place(builder, struct, word, kind))
    read.set_metadata("invariant.load", builder.module.add_metadata([]))
    return read


def _array(context: Any, builder: Any, kind: Any, value: Any, first: int) -> Any:
    """An array over memory that nobody counts references to."""
    data = context.get_data_type(kind.dtype).as_pointer()
    shape = [_fixed(builder, value, first + 1 + i, WORD) for i in range(kind.ndim)]
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides = [WORD(size)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(length, strides[0]))
    items = shape[0]
    for length in shape[1:]:
        items = builder.mul(items, length)
    parts = {
        "data": _fixed(builder, value, first, data),
        "nitems": items,
        "itemsize": WORD(size),
        "shape": cgutils.pack_array(builder, shape),
        "strides": cgutils.pack_array(builder, strides),
    }
    model = context.data_model_manager[kind]
    array = cgutils.get_null_value(model.get_value_type())
    for name, part in parts.items():
        array = model.set(builder, array, part, name)
    return array


@lower_setattr_generic(StructType)
def _set(context: Any, builder: Any, signature: Any, args: Any, name: str) -> None:
    struct, value = args
    first = signature.args[0].first[name]
    if isinstance(signature.args[1], types.Boolean):
        value = builder.zext(value, WORD)
    builder.store(value, _place(builder, struct, first, value.type))


@lower_builtin(operator.getitem, ArrayType, types.Integer)
def _item(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind, index = signature.args
    if kind.ndim > 1:
        return getitem_arraynd_intp(context, builder, *_unsigned(context, builder, signature, args))
    place = _place_of(context, builder, kind, args[0], [(index, args[1])])
    return context.unpack_value(builder, kind.dtype, place)


@lower_builtin(operator.getitem, ArrayType, types.BaseTuple)
def _item_in_rows(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind, index = signature.args
    if not _one_place(kind, index):
        return getitem_array_tuple(context, builder, *_unsigned(context, builder, signature, args))
    at = cgutils.unpack_tuple(builder, args[1])
    place = _place_of(context, builder, kind, args[0], list(zip(index, at, strict=True)))
    return context.unpack_value(builder, kind.dtype, place)


@lower_builtin(operator.setitem, ArrayType, types.Any, types.Any)
def _put(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind, index, value = signature.args
    if not isinstance(value, types.Number | types.Boolean) or not _one_place(kind, index):
        return setitem_array(context, builder, *_unsigned(context, builder, signature, args))
    at = cgutils.unpack_tuple(builder, args[1]) if kind.ndim > 1 else [args[1]]
    kinds = index if kind.ndim > 1 else [index]
    place = _place_of(context, builder, kind, args[0], list(zip(kinds, at, strict=True)))
    context.pack_value(
        builder, kind.dtype, context.cast(builder, args[2], value, kind.dtype), place
    )
    return None


def _one_place(kind: ArrayType, index: Any) -> bool:
    if isinstance(index, types.BaseTuple):
        return len(index) == kind.ndim and all(isinstance(k, types.Integer) for k in index)
    return kind.ndim == 1 and isinstance(index, types.Integer)


def _place_of(context: Any, builder: Any, kind: ArrayType, table: Any, index: list[Any]) -> Any:
    """Pointer to one entry, from the fields of a table in the order of ``ArrayModel``."""
    fields = context.data_model_manager[kind]
    shape = fields.get(builder, table, "shape")
    at = None
    for axis, (of, value) in enumerate(index):
        place = context.cast(builder, value, of, types.intp)
        if at is not None:
            place = builder.add(builder.mul(at, builder.extract_value(shape, axis)), place)
        at = place
    return builder.gep(fields.get(builder, table, "data"), [at])


def _unsigned(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, Any]:
    """The same with an index without sign, which Numba takes as it is."""
    kind, index = signature.args[1], args[1]
    if isinstance(kind, types.Integer):
        kind, index = types.uintp, context.cast(builder, index, kind, types.uintp)
    elif isinstance(kind, types.BaseTuple) and all(isinstance(k, types.Integer) for k in kind):
        plain = types.UniTuple(types.uintp, len(kind))
        kind, index = plain, context.cast(builder, index, kind, plain)
    signature = signature.replace(args=(signature.args[0], kind, *signature.args[2:]))
    return signature, (args[0], index, *args[2:])
