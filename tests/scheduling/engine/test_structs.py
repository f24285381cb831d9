"""Tables of a struct are read from zero: compiled code would read beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduling.engine.compile.structs import PlainTable


@pytest.mark.parametrize("index", [-1, np.int64(-1), (0, -1), (slice(None), -2)])
def test_index_below_zero_raises_where_compiling_is_off(index: Any) -> None:
    table = np.zeros((2, 3)).view(PlainTable)

    with pytest.raises(IndexError):
        table[index]
    with pytest.raises(IndexError):
        table[index] = 1.0


def test_index_from_zero_reads_and_writes_the_shared_memory_where_compiling_is_off() -> None:
    memory = np.zeros((2, 3))
    table = memory.view(PlainTable)

    table[1, 2] = 5.0

    assert memory[1, 2] == table[1][2] == 5.0
