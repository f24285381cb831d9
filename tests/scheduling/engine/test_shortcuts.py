"""Numba's own steps with less work find the same."""

from __future__ import annotations

import pytest

from scheduling.engine.compile import mode

if mode.PLAIN:
    pytest.skip("nothing is compiled here", allow_module_level=True)

from numba import types
from numba.core import ir
from numba.core.compiler import Flags
from numba.core.registry import cpu_target

from scheduling.engine.compile.shortcuts import is_counted

LINE = ir.Loc("kernel.py", 1)
INTS = types.Array(types.int64, 1, "C")


def variables(*names: str) -> list[ir.Var]:
    scope = ir.Scope(None, LINE)
    return [scope.define(name, LINE) for name in names]


def test_variables_of_a_call_are_listed_in_order_with_those_of_its_names() -> None:
    function, one, two, three = variables("function", "one", "two", "three")

    call = ir.Expr.call(function, [one, two], [("size", three)], LINE)

    assert [found.name for found in call.list_vars()] == ["function", "one", "two", "three"]


def test_variables_of_what_a_statement_is_given_are_listed_before_its_own() -> None:
    target, value, index = variables("target", "value", "index")

    statement = ir.Assign(ir.Expr.getitem(value, index, LINE), target, LINE)

    assert [found.name for found in statement.list_vars()] == ["value", "index", "target"]


def test_ways_of_compiling_are_equal_where_an_option_is_set_to_what_it_is_anyway() -> None:
    one, other = Flags(), Flags()
    one.nrt = one.nrt

    assert one == other
    assert hash(one) == hash(other)

    one.nrt = not one.nrt

    assert one != other


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (types.int64, False),
        (types.UniTuple(types.int64, 2), False),
        (INTS, True),
        (types.Tuple((types.int64, INTS)), True),
    ],
)
def test_references_are_counted_where_a_part_has_memory_of_its_own(
    kind: types.Type, expected: bool
) -> None:
    assert is_counted(cpu_target.target_context, kind) is expected
