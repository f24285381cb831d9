"""How kernels are compiled: ``inner`` functions into the ``kernel`` that calls them, on disk once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit, typeof
from numba.core import cgutils, types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import intrinsic

from scheduling.engine.compile.library import InnerCompiler, KernelCompiler
from scheduling.engine.compile.stamp import stamp_of
from scheduling.engine.compile.store import UNREADABLE, InnerCache, forget, keep_in, take_from

# Loops of scalars gain nothing from vectors and the last level of optimisation, and compile in a third
# of the time without.
config.OPT = type(config.OPT)(2)
config.LOOP_VECTORIZE = config.SLP_VECTORIZE = 0
NOT_KEPT = (
    "Compiled code could not be written to {}: {}. The next start compiles again; make room there, or"
    " name a folder that can be written in NUMBA_CACHE_DIR."
)


_inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=InnerCompiler)
_kernel = njit(nogil=True, pipeline_class=KernelCompiler)


def inner(function: Callable[..., Any]) -> Any:
    """Compiles a function that only kernels call, once for all values of its arguments.

    Numba would compile it again for every constant that a caller passes.
    """
    compiled = _inner(function)
    template = compiled.get_call_template

    def of_types(args: Any, kws: Any) -> Any:
        plain: Any = types  # numba's stubs leave ``unliteral`` out
        return template(tuple(plain.unliteral(arg) for arg in args), kws)

    compiled.get_call_template = of_types
    compiled._cache = InnerCache(function)
    return compiled


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles a function that Python calls, with its machine code cached beside the source.

    Other threads of the process go on meanwhile: a world belongs to the thread that plans it.
    """
    compiled = _kernel(function)
    compiled._cache = KernelCache(function)
    return compiled


class Files(IndexDataCacheFile):
    """Numba's index and machine code; the name of the code says of which state it is.

    Numba writes the index first: a reader in between, or after a process was killed there, took the
    machine code of the state before for that of now.
    """

    def __init__(self, folder: str, base: str, stamp: str) -> None:
        super().__init__(folder, base, stamp)
        self._all, self._own = f"{base}.*.nbc", f"{base}.{stamp[:16]}."
        self._data_name_pattern = f"{self._own}{{number:d}}.nbc"

    def remove_others(self) -> None:
        """Machine code of other states."""
        for path in Path(self._cache_path).glob(self._all):
            if not path.name.startswith(self._own):
                path.unlink(missing_ok=True)


class KernelCache(FunctionCache):
    """Keeps machine code until something changes that it depends on.

    Numba keeps it until the kernel's own file changes, also when a function it calls has changed in another.
    """

    def load_overload(self, kinds: Any, target: Any) -> Any:
        # Not sooner: while its module is read, a kernel names functions that follow below it.
        self._cache_file = Files(self._cache_path, self._base(), stamp_of(self._py_func))
        compiled = self._load(kinds, target)
        if compiled is None:
            take_from(self._parts(), target)
        return compiled

    def _base(self) -> str:
        """Numba's name of its files, without the line where the kernel begins."""
        name, _, more = self._impl.filename_base.rpartition("-")
        return f"{name}.{more.partition('.')[2]}"

    def _load(self, kinds: Any, target: Any) -> Any:
        try:
            return super().load_overload(kinds, target)
        except UNREADABLE:
            Path(self._cache_file._index_path).unlink(missing_ok=True)
            return None

    def save_overload(self, kinds: Any, compiled: Any) -> None:
        try:
            super().save_overload(kinds, compiled)
            with self._cache_file._open_for_write(str(self._parts())) as file:
                keep_in(file, compiled)
            self._cache_file.remove_others()
        except OSError as error:
            warnings.warn(NOT_KEPT.format(self._cache_path, error.strerror), stacklevel=2)
        finally:
            forget()

    def _parts(self) -> Path:
        """Where the intermediate code of what the kernel calls is kept, beside its machine code."""
        return Path(self._cache_file._index_path).with_suffix(".parts")


def address_of(compiled: Any, session: Any) -> Any:
    """Where its machine code lies."""
    kind = typeof(session)
    made = next(made for kinds, made in compiled.overloads.items() if kinds[0] == kind)
    return made.library.get_pointer_to_function(made.fndesc.llvm_func_name)


def _call(typing: Any, address: Any, session: Any, now: Any, acts: Any) -> Any:
    """``f(session, now, acts)`` by the address of ``f``, in the way that Numba calls what it has compiled."""
    kinds = (session, now, acts)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(types.none, kinds)
        result = cgutils.alloca_once(builder, kind.args[0].pointee)
        builder.store(cgutils.get_null_value(kind.args[0].pointee), result)
        error = cgutils.alloca_once(builder, kind.args[1].pointee)
        packed = list(context.get_arg_packer(kinds).as_arguments(builder, args[1:]))
        place = builder.inttoptr(args[0], kind.as_pointer())
        code = builder.call(place, [result, error, *packed])
        status = convention._get_return_status(builder, code, builder.load(error))
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.none(types.intp, *kinds), generate


plan_at: Any = intrinsic(_call)
