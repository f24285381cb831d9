"""Machine code for whole kernels only.

Numba turns every function into machine code, with all that it calls, and does so again for each caller
of it: half of the time that compiling took. Here an ``inner`` function ends as LLVM's intermediate code,
unlinked. The kernel gathers what it calls, directly or not, and optimises it once, as a whole.
"""

from __future__ import annotations

import gc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from llvmlite import binding as llvm
from llvmlite.binding import ffi
from numba import types
from numba.core.base import BaseContext
from numba.core.codegen import Codegen, CodeLibrary, JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager
from numba.core.runtime.nrt import rtsys
from numba.core.typed_passes import (
    AnnotateTypes,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)


class UnlinkedLibrary(JITCodeLibrary):
    """Intermediate code of an inner function; it has no address."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.environments: dict[str, Any] = {}
        self.source: tuple[Any, ...] = ()
        """The function, kinds of its arguments, what compiling it gave."""
        self.made: Any = None
        """What was kept on disk, where that is where it comes from."""

    @property
    def codegen(self) -> Any:
        """For ``get_executable``, which hands over the function's environment."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """The kernel's code asks for it; here is no code yet that could."""
        self.environments[name] = environment

    def finalize(self) -> None:
        self._finalized = True
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"

    def bitcode(self) -> bytes:
        """With Numba's own functions that it calls: these have other names in another process."""
        brought = [one for one in _linked_already([self]) if one is not rtsys.library]
        if not brought:
            return bytes(self._final_module.as_bitcode())
        module = self._final_module.clone()
        own = {function.name for function in module.functions if not function.is_declaration}
        for library in brought:
            module.link_in(library._get_module_for_linking(), preserve=True)
        for function in module.functions:
            if function.name not in own and _is_enclosable(function):
                function.linkage = "internal"
        return bytes(module.as_bitcode())

    def read(self, module: Any, needed: list[UnlinkedLibrary]) -> None:
        """Takes what ``bitcode`` gave, and the libraries of inner functions that it calls."""
        self._final_module, self._finalized = module, True
        self._linking_libraries = [*needed, rtsys.library]

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class Whole(JITCodeLibrary):
    """Machine code of a kernel and of all that it calls."""

    inners: tuple[UnlinkedLibrary, ...] = ()
    """What it was made of, callers first."""

    def finalize(self) -> None:
        inners = self.inners = tuple(_callers_first(self))
        for inner in inners:
            self._reload_init.update(inner._reload_init)
            self._final_module.link_in(inner._final_module, preserve=True)
        self._enclose(inners)
        self._linking_libraries = _linked_already([self, *inners])
        super().finalize()
        for inner in inners:
            for name, environment in inner.environments.items():
                if self._codegen._engine.is_symbol_defined(name):
                    self._codegen.set_env(name, environment)

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        self._ensure_finalized()
        module = self._get_module_for_linking()
        named = [*module.functions, *module.global_variables]
        defined = [one.name for one in named if not one.is_declaration]
        bitcode = zlib.compress(bytes(module.as_bitcode()))
        return self.name, WHOLE, (self._get_compiled_object(), defined, bitcode)

    def _enclose(self, inners: tuple[UnlinkedLibrary, ...]) -> None:
        """Nobody else calls them: LLVM may do away with one once it stands in its one caller.

        A function of Numba's that code from disk brings along may stand here under another name, and be only
        declared under its own: that is left alone.
        """
        linked = {
            function.name: function
            for function in self._final_module.functions
            if _is_enclosable(function)
        }
        for inner in inners:
            for function in inner._final_module.functions:
                if function.name in linked and _is_enclosable(function):
                    linked[function.name].linkage = "internal"


WHOLE = "whole"
"""What ``Whole`` gives to be kept on disk, beside Numba's own kinds of it."""


class Read(JITCodeLibrary):
    """Machine code of a kernel from disk. Its intermediate code, which takes twelve times the memory, is read
    when a function is compiled that calls the kernel; Numba would always read it."""

    _shared_module: Any

    def __init__(self, codegen: Any, state: tuple[str, str, Any]) -> None:
        name, _, (code, defined, self._bitcode) = state
        super().__init__(codegen, name)
        self.enable_object_caching()
        self._set_compiled_object(code)
        self._finalize_final_module()
        codegen._engine._defined_symbols.update(defined)

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = llvm.parse_bitcode(zlib.decompress(self._bitcode))
        return self._shared_module


def _is_enclosable(function: Any) -> bool:
    """LLVM's step that prunes counts of references knows the functions that count by their names."""
    return not function.is_declaration and not function.name.startswith("NRT_")


def _linked_already(ones: list[Any]) -> list[CodeLibrary]:
    """Libraries of Numba's own functions, which bring along what they call."""
    needed = (library for one in ones for library in one._linking_libraries)
    return list(dict.fromkeys(lib for lib in needed if not isinstance(lib, UnlinkedLibrary)))


def _callers_first(library: CodeLibrary) -> Iterator[UnlinkedLibrary]:
    """Each inner library that ``library`` needs, once: the linker leaves out what nobody calls yet."""
    seen: set[CodeLibrary] = set()
    ended: list[UnlinkedLibrary] = []

    def visit(one: Any) -> None:
        seen.add(one)
        for other in one._linking_libraries:
            if isinstance(other, UnlinkedLibrary) and other not in seen:
                visit(other)
        if one is not library:
            ended.append(one)

    visit(library)
    return reversed(ended)


def _remember_calls() -> None:
    """Numba looks through some forty templates at each ``+``; what it found, it finds again."""
    look, found = types.BaseFunction.get_call_type, WeakKeyDictionary[Any, dict[Any, Any]]()

    def get_call_type(function: Any, context: Any, args: Any, names: Any) -> Any:
        if names or getattr(function.typing_key, "__module__", "") != "_operator":
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


def _read_whole() -> None:
    """Numba knows its own kinds alone."""
    read = Codegen.unserialize_library

    def unserialize_library(codegen: Any, state: tuple[str, str, Any]) -> CodeLibrary:
        library: CodeLibrary = Read(codegen, state) if state[1] == WHOLE else read(codegen, state)
        return library

    Codegen.unserialize_library = unserialize_library


def _time_no_locks() -> None:
    """Each call into LLVM was told to a timer of each function that was being compiled, callers and all."""
    for callbacks in list(ffi.lib._lock._cblist):
        ffi.unregister_lock_callback(*callbacks)


_remember_calls()
_remember_sizes()
_read_whole()
_time_no_locks()


class Steps(PassManager):
    """Numba's steps from bytecode to intermediate code that a kernel needs: there is no closure in it, no
    branch on a type, no expression of whole arrays. Nothing is checked in between, nor told to listeners.
    """

    NEEDED = (
        TranslateByteCode,
        FixupArgs,
        IRProcessing,
        GenericRewrites,
        ReconstructSSA,
        NopythonTypeInference,
        PreLowerStripPhis,
        IRLegalization,
        AnnotateTypes,
        NativeLowering,
        NoPythonBackend,
    )

    def __init__(self) -> None:
        super().__init__("kernel")
        for step in self.NEEDED:
            self.add_pass(step, step.__name__)
        self.finalize()

    def _runPass(self, index: int, step: Any, state: Any) -> None:  # noqa: N802 - Numba's name
        step.analysis = self._analysis
        step.run_initialization(state)
        step.run_pass(state)
        step.run_finalizer(state)


class InnerCompiler(CompilerBase):
    """Leaves a function unlinked."""

    def define_pipelines(self) -> Any:
        one = self.state.func_id
        if is_steady(one.func):
            # Numba counts functions: in another process one would have another name.
            one.unique_id, one.unique_name = 0, f"{one.modname}.{one.func_qualname}"
        return _with_library(self, UnlinkedLibrary)


class KernelCompiler(CompilerBase):
    """Makes machine code."""

    def compile_extra(self, function: Any) -> Any:
        with _uncollected():
            return super().compile_extra(function)

    def define_pipelines(self) -> Any:
        return _with_library(self, Whole)


@contextmanager
def _uncollected() -> Iterator[None]:
    """All that is made until the kernel is done is needed: nothing is worth collecting."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def is_steady(function: Any) -> bool:
    """Whether its module has no other function of that name."""
    return "<locals>" not in function.__qualname__


def _with_library(compiler: Any, kind: type[JITCodeLibrary]) -> list[Steps]:
    """Steps with a library of ``kind`` where they would make one of their own."""
    state = compiler.state
    state.library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
    state.library.enable_object_caching()
    return [Steps()]
