"""Tables of a struct are laid out by their annotations, in each form that NumPy gives them."""

from __future__ import annotations

from dataclasses import make_dataclass
from typing import Annotated, Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from scheduling.engine.compile.structs import laid_out, per

Scalar = TypeVar("Scalar", bound=np.generic)
ALIAS: Any = TypeAliasType("NDArray", np.ndarray[Any, np.dtype[Scalar]], type_params=(Scalar,))
"""What ``numpy.typing.NDArray`` is from NumPy 2.5 on."""


@pytest.mark.parametrize(
    "array", [np.ndarray[Any, np.dtype[np.bool_]], ALIAS[np.bool_], NDArray[np.bool_]]
)
def test_annotation_of_an_array_in_any_form_gives_its_dtype(array: Any) -> None:
    kind = make_dataclass("Kind", [("open", Annotated[array, per("node", fill=1)])])

    table = laid_out(kind, {"node": 3}).open

    assert table.dtype == np.bool_
    assert table.tolist() == [True, True, True]


def test_annotation_that_is_no_array_raises_with_what_tables_are() -> None:
    kind = make_dataclass("Kind", [("names", Annotated[list[int], per("node")])])

    with pytest.raises(TypeError, match=r"list\[int\] is no array: tables of a struct are NDArray"):
        laid_out(kind, {"node": 3})
