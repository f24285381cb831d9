"""What the machine code of a kernel depends on, as one digest.

That is the bytecode of every function that it calls, directly or not, the constants they name, and how
functions are compiled. Comments, docstrings and whatever else stands in their files change nothing, and a
copy or a fresh checkout finds the same machine code valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from numba.core.dispatcher import Dispatcher

Function = Callable[..., Any]


def stamp_of(function: Function) -> str:
    """Of ``function`` and all that it calls, once every name in them is defined."""
    digest = sha256(way_of_compiling())
    for one in reached(function):
        digest.update(repr(own_text(one)).encode())
    return digest.hexdigest()


def own_text(function: Function) -> tuple[Any, ...]:
    """What ``function`` says: its bytecode, and what the names in it stand for."""
    code: CodeType = function.__code__
    stands_for = [(name, _spelled(value)) for name, value in _named(function)]
    return (
        where(function),
        _spelled(function.__defaults__),
        _code(code, function.__doc__),
        stands_for,
    )


def where(function: Function) -> str:
    """Module and name."""
    return f"{function.__module__}.{function.__qualname__}"


def parameters(function: Function) -> str:
    """Names and defaults, by which a caller fills them."""
    code: CodeType = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return repr((names, _spelled(function.__defaults__), _spelled(function.__kwdefaults__)))


def called_by(function: Function) -> Iterator[Any]:
    """What ``function`` names of compiled functions."""
    for _, value in _named(function):
        if isinstance(value, Dispatcher):
            yield value


def reached(function: Function) -> list[Function]:
    """``function`` and every compiled function that it calls, directly or not."""
    found, open_ones = {function: None}, [function]
    while open_ones:
        for other in called_by(open_ones.pop()):
            if other.py_func not in found:
                found[other.py_func] = None
                open_ones.append(other.py_func)
    return list(found)


def _named(function: Any) -> Iterator[tuple[str, Any]]:
    """Names of the module that ``function`` reads, and those that it reads of a module of constants."""
    names, known = function.__code__.co_names, function.__globals__
    for name in names:
        value = known.get(name)
        if isinstance(value, ModuleType):
            yield from ((f"{name}.{of}", vars(value)[of]) for of in names if of in vars(value))
        elif name in known:
            yield name, value


def _code(code: CodeType, doc: str | None = None) -> tuple[Any, ...]:
    constants = [_spelled(value) for value in code.co_consts if doc is None or value != doc]
    return code.co_code, code.co_varnames, code.co_freevars, code.co_names, constants


def _spelled(value: Any) -> Any:
    """Equal for equal constants in every process."""
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, tuple | list):
        return [_spelled(part) for part in value]
    if isinstance(value, frozenset | set):
        return sorted(map(repr, value))
    if isinstance(value, FunctionType):
        # Its compiled form stands beside it, as an overload that nobody names.
        return _file(value.__code__.co_filename)
    if isinstance(value, bool | int | float | str | bytes | None):
        return repr(value)
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value))}"
    return name, getattr(value, "_fields", ()), repr(getattr(value, "_field_defaults", {}))


@cache
def _file(path: str) -> str:
    return sha256(Path(path).read_bytes()).hexdigest()


@cache
def way_of_compiling() -> bytes:
    return "".join(_file(str(path)) for path in sorted(Path(__file__).parent.glob("*.py"))).encode()
