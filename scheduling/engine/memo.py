"""The table behind ``refusals``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduling.engine.arrays import Ints
from scheduling.engine.structs import declare

ROWS, PARTS, WISHES = 4096, 13, 4
UNSETTLED = -1


@declare
class Memo(NamedTuple):
    """A direct-mapped table: the parts of a kind, when it was refused, and a slot it happened to."""

    parts: Ints  # [row, part]
    epoch: Ints  # [row]
    like: Ints  # [row]; UNSETTLED where a later pass decides
    now: Ints  # [0] the epoch, [1] the row last looked at or -1


def empty_memo() -> Memo:
    tables = np.zeros((ROWS, PARTS), np.int64), np.zeros(ROWS, np.int64), np.zeros(ROWS, np.int64)
    return Memo(*tables, np.array([1, -1]))
