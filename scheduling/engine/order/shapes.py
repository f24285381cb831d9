"""Kinds of work: gangs that differ only by name, user, age and how long they are predicted to run.

What joins the line gets its kind once. ``refusals`` keeps by kind what was refused.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine.compile.kernel import inner
from scheduling.engine.state.input import Work
from scheduling.engine.state.order import DUES, OWN, PARTS, WISHES, Shapes
from scheduling.engine.state.units import CPUS, GPUS, MEMORY


@inner
def forget_shapes(shapes: Shapes) -> None:
    for row in range(shapes.table.size):
        shapes.table[row] = -1
    shapes.number = 0
    shapes.refusals.epoch += 1


@inner
def find_shape(shapes: Shapes, work: Work, w: int) -> None:
    """Find the kind of ``w`` or give it a number; OWN with an unusual list of classes, or in a full table."""
    many = work.wish.shape[0]
    shapes.of[w] = OWN
    if many > WISHES and work.wish[WISHES, w] >= 0:
        return
    parts = (
        work.queue[w], work.priority[w], work.need[GPUS, w], work.need[CPUS, w],
        work.need[MEMORY, w], work.beside[w], work.least[w], work.most[w], work.required[w],
        int(work.ends_within[w] < np.inf), work.preferred[w], work.where[w], work.wish[0, w],
        work.wish[1, w] if many > 1 else -1, work.wish[2, w] if many > 2 else -1,
        work.wish[3, w] if many > 3 else -1, work.segment[w],
    )  # fmt: skip
    last = shapes.table.size - 1
    row = 0
    for part in parts:
        row = (row * 1000003 + part) & last
    while shapes.table[row] >= 0:
        same = True
        for i in range(PARTS):
            same = same and shapes.parts[shapes.table[row], i] == parts[i]
        if same:
            shapes.of[w] = shapes.table[row]
            return
        row = (row + 1) & last
    shape = shapes.number
    if shape == shapes.parts.shape[0]:
        return
    for i in range(PARTS):
        shapes.parts[shape, i] = parts[i]
    for is_due in range(DUES):
        shapes.refusals.refused_at[shape * DUES + is_due] = 0
    shapes.number += 1
    shapes.table[row] = shapes.of[w] = shape
