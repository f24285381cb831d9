"""Numba's own steps, with less work: what they find, or write, is the same."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import NoneType
from typing import Any
from weakref import WeakKeyDictionary

from llvmlite.binding import ffi
from numba import types
from numba.core import errors, ir, utils
from numba.core.base import BaseContext
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.runtime.context import NRTContext
from numba.core.targetconfig import TargetConfig
from numba.core.typed_passes import NativeLowering

STEADY = ("_operator", "builtins")
"""Modules of functions whose types Numba may find once: nobody declares them anew."""


def _remember_calls() -> None:
    """Numba looks through some forty templates at each ``+``; what it found, it finds again."""
    look, found = types.BaseFunction.get_call_type, WeakKeyDictionary[Any, dict[Any, Any]]()

    def get_call_type(function: Any, context: Any, args: Any, names: Any) -> Any:
        if names or getattr(function.typing_key, "__module__", "") not in STEADY:
            return look(function, context, args, names)
        known = found.setdefault(function, {})
        key = (context, args)
        if key not in known:
            known[key] = look(function, context, args, names)
        return known[key]

    types.BaseFunction.get_call_type = get_call_type


def _remember_sizes() -> None:
    """Numba has LLVM read a module of its own for each time that it asks for the size of a type."""
    look, found = BaseContext.get_abi_sizeof, dict[str, int]()

    def get_abi_sizeof(context: Any, kind: Any) -> int:
        name = str(kind)
        if name not in found:
            found[name] = look(context, kind)
        return found[name]

    BaseContext.get_abi_sizeof = get_abi_sizeof


def _remember_parameters() -> None:
    """Numba reads those of the same function with each call of it."""
    utils.pysignature = cache(utils.pysignature)


def _time_no_locks() -> None:
    """Each call into LLVM was told to a timer of each function that was being compiled, callers and all."""
    for callbacks in list(ffi.lib._lock._cblist):
        ffi.unregister_lock_callback(*callbacks)


def _list_variables_at_once() -> None:
    """Numba asks each value of each statement, some dozen times, whether it is one of five kinds."""

    def _rec_list_vars(_: Any, value: Any) -> list[Any]:
        found: list[Any] = []
        _add_variables(value, found)
        return found

    ir.Inst._rec_list_vars = _rec_list_vars


def _add_variables(value: Any, found: list[Any]) -> None:
    kind = type(value)
    if kind is ir.Var:
        found.append(value)
    elif kind is dict or kind is list or kind is tuple:
        for part in value.values() if kind is dict else value:
            inside = type(part)
            if inside is ir.Var:
                found.append(part)
            elif inside not in EMPTY:
                _add_variables(part, found)
    elif isinstance(value, ir.Inst):
        found += value.list_vars()


EMPTY = frozenset((str, int, bool, float, NoneType, ir.Loc))
"""Kinds of values of a statement that have no variable in them."""


def _compare_what_is_set() -> None:
    """Numba compares ways of compiling with each call that it looks up, option by option."""

    def is_equal(one: Any, other: Any) -> Any:
        if type(one) is not type(other):
            return NotImplemented
        mine, its = one._values, other._values
        return mine == its or all(
            getattr(one, name) == getattr(other, name) for name in mine.keys() | its.keys()
        )

    TargetConfig.__eq__ = is_equal
    TargetConfig.__hash__ = lambda one: hash(type(one))


def _catch_no_warnings() -> None:
    """Numba gathers warnings with each statement and gives them out later; here they come at once."""

    def catch_warnings(*_: Any, **__: Any) -> AbstractContextManager[None]:
        return NOTHING

    warnings: Any = errors  # numba's stubs leave ``WarningsFixer`` out
    warnings.WarningsFixer.catch_warnings = catch_warnings


NOTHING = nullcontext()


def _count_where_there_is_something() -> None:
    """Numba takes values apart to count references in them, also where there can be none."""
    count = NRTContext._call_incref_decref

    def _call_incref_decref(runtime: Any, builder: Any, kind: Any, value: Any, name: str) -> None:
        if is_counted(runtime._context, kind):
            count(runtime, builder, kind, value, name)

    NRTContext._call_incref_decref = _call_incref_decref


@cache
def is_counted(context: Any, kind: Any) -> bool:
    """Whether somebody counts references to a part of such a value."""
    return bool(context.data_model_manager[kind].contains_nrt_meminfo())


class Written(Lower):
    """Intermediate code that reads no old value for nothing, nor writes over it."""

    def delvar(self, name: str) -> None:
        """Where references to it are counted, that of ``name`` is given back."""
        if is_counted(self.context, self.typeof(name)):
            super().delvar(name)
        elif name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)
            self._alloca_var(name, self.typeof(name))

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        is_needed = name in self._singly_assigned_vars or argidx is not None
        if is_needed or is_counted(self.context, self.typeof(name)):
            super().storevar(value, name, argidx)
            return
        self._alloca_var(name, self.typeof(name))
        self.builder.store(value, self.getvar(name))


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(NativeLowering):
    """Numba's step from typed statements to intermediate code, written so."""

    _name = "lowering"
    lowering_class = Written


_remember_calls()
_remember_sizes()
_remember_parameters()
_time_no_locks()
_list_variables_at_once()
_compare_what_is_set()
_catch_no_warnings()
_count_where_there_is_something()
