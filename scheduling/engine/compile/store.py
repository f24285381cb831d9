"""Intermediate code of inner functions, kept on disk from one compilation of their kernel to the next.

After an edit a kernel is linked and optimised anew, as a whole; what it calls is read from here, but for
what the edit changes: the function itself, and callers to which it now returns another type.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numba
from llvmlite import binding as llvm
from numba import types
from numba.core.compiler import compile_result
from numba.core.serialize import dumps

from scheduling.engine.compile.library import UnlinkedLibrary, is_steady
from scheduling.engine.compile.stamp import called_by, own_text, parameters, way_of_compiling, where

Function = Callable[..., Any]
Kinds = tuple[Any, ...]


class Call(NamedTuple):
    """What a caller's code takes for granted of an inner function that it calls."""

    where: str
    parameters: str
    kinds: Kinds
    returns: Any


class CompiledFunction(NamedTuple):
    """An inner function as it was compiled."""

    where: str
    kinds: Kinds
    stamp: str
    calls: tuple[Call, ...]
    described: Any
    signature: Any
    environment: bytes
    bitcode: bytes


_made: dict[tuple[str, Kinds], CompiledFunction] = {}
"""What the kernel that is compiled now may take, instead of compiling it."""


UNREADABLE = (
    OSError,
    EOFError,
    pickle.UnpicklingError,
    ImportError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""What a file of compiled code raises that is missing or damaged, or names what an edit took away."""


def take_from(path: Path, target: Any) -> None:
    """Reads what was kept for a kernel; nothing where that was compiled in another way."""
    try:
        with path.open("rb") as file:
            if pickle.load(file) != _way(target):  # noqa: S301 - written below, beside the machine code
                return
            if all(_fields_of(name) == fields for name, fields in pickle.load(file)):  # noqa: S301
                _made.update({(one.where, one.kinds): one for one in pickle.load(file)})  # noqa: S301
    except UNREADABLE:
        """Nothing kept, or it names what an edit took away: all is compiled."""


def keep_in(file: BinaryIO, kernel: Any) -> None:
    """Writes what ``kernel`` calls, directly or not, for the next time that it is compiled."""
    made = [_made_of(library) for library in _lasting(kernel.library)]
    tuples = {
        of
        for one in made
        for kind in (*one.kinds, one.signature.return_type)
        for of in _tuples(kind)
    }
    file.write(dumps(_way(kernel.target_context)))
    file.write(dumps(sorted((where(of), of._fields) for of in tuples)))
    file.write(dumps(made))


def forget() -> None:
    """What was read for a kernel that is compiled now."""
    _made.clear()


def _tuples(kind: Any) -> Iterator[Any]:
    """Classes of named tuples in a kind. Code reads their fields by place, and Numba takes two of one name
    for the same.
    """
    if isinstance(kind, types.BaseNamedTuple):
        yield kind.instance_class
    if isinstance(kind, types.BaseTuple):
        for part in kind:
            yield from _tuples(part)


def _fields_of(name: str) -> Any:
    """Of the named tuple of that name, in this process. Raises AttributeError, KeyError."""
    module = next(part for part in _beginnings(name) if part in sys.modules)
    return attrgetter(name.removeprefix(f"{module}."))(sys.modules[module])._fields


def _beginnings(name: str) -> Iterator[str]:
    """Longest first."""
    while name:
        name = name.rpartition(".")[0]
        yield name


class InnerCache:
    """For Numba's dispatcher: what was kept of an inner function, or what will be."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def load_overload(self, kinds: Kinds, target: Any) -> Any:
        made = _made.pop((where(self._function), kinds), None)
        if made is None or made.stamp != stamp_alone(self._function):
            return None
        needed = _libraries(made.calls, self._function)
        return None if needed is None else _rebuilt(self._function, made, needed, target)

    def save_overload(self, kinds: Kinds, compiled: Any) -> None:
        compiled.library.source = (self._function, kinds, compiled)


@cache
def stamp_alone(function: Function) -> str:
    """Of ``function`` without what it calls."""
    return sha256(repr(own_text(function)).encode()).hexdigest()


def _way(target: Any) -> str:
    return repr((numba.__version__, target.codegen().magic_tuple(), way_of_compiling()))


def _lasting(kernel: Any) -> Iterable[UnlinkedLibrary]:
    """Libraries under names that another process gives as well, with all that they call."""
    steady: set[Any] = set()
    for library in reversed(kernel.inners):
        function, kinds, _ = library.source
        takes_functions = any(isinstance(kind, types.Dispatcher) for kind in kinds)
        if is_steady(function) and not takes_functions and steady.issuperset(_inners(library)):
            steady.add(library)
            yield library


def _inners(library: Any) -> list[UnlinkedLibrary]:
    return [one for one in library._linking_libraries if isinstance(one, UnlinkedLibrary)]


def _made_of(library: UnlinkedLibrary) -> CompiledFunction:
    if library.made is not None:
        return library.made
    function, kinds, compiled = library.source
    described = compiled.fndesc
    described.typemap = described.calltypes = None
    calls = tuple(_call(*one.source) for one in dict.fromkeys(_inners(library)))
    return CompiledFunction(
        where=where(function),
        kinds=kinds,
        stamp=stamp_alone(function),
        calls=calls,
        described=described,
        signature=compiled.signature,
        environment=dumps(compiled.environment),
        bitcode=library.bitcode(),
    )


def _call(function: Function, kinds: Kinds, compiled: Any) -> Call:
    return Call(where(function), parameters(function), kinds, compiled.signature.return_type)


def _libraries(calls: tuple[Call, ...], function: Function) -> list[UnlinkedLibrary] | None:
    """Of what ``function`` calls; none where one of them is no longer what its code takes it for."""
    known = {where(one.py_func): one for one in called_by(function)}
    found = []
    for call in calls:
        called = known.get(call.where)
        if called is None or parameters(called.py_func) != call.parameters:
            return None
        called.compile(call.kinds)
        compiled = called.overloads[call.kinds]
        if compiled.signature.return_type != call.returns:
            return None
        found.append(compiled.library)
    return found


def _rebuilt(
    function: Function, made: CompiledFunction, needed: list[UnlinkedLibrary], target: Any
) -> Any:
    library = UnlinkedLibrary(target.codegen(), made.described.qualname)
    library.read(llvm.parse_bitcode(made.bitcode), needed)
    environment = pickle.loads(made.environment)  # noqa: S301 - of the same file
    compiled = compile_result(
        typing_context=target.typing_context,
        target_context=target,
        entry_point=target.get_executable(library, made.described, environment),
        fndesc=made.described,
        library=library,
        signature=made.signature,
        environment=environment,
        objectmode=False,
        lifted=(),
        reload_init=[],
        referenced_envs=(),
    )
    library.made, library.source = made, (function, made.kinds, compiled)
    return compiled
