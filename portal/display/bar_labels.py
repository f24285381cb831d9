"""Labels above and below the large entitlement bar, placed so that they never meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from portal.display.entitlement import Axis, Figures
from portal.display.format import gpus

CHARACTER_PX = 6.3
"""Width of a character at 12 px, on the wide side."""
GAP_PX = 12.0
WIDTHS_PX = {"wide": 640.0, "narrow": 330.0}


@dataclass(frozen=True, slots=True)
class BarLabel:
    """``x`` in percent is the middle of the text."""

    x: str
    word: str
    amount: str


@dataclass(frozen=True, slots=True)
class Labels:
    """One set for each width that the bar may have; the style sheet shows the fitting one."""

    above: Sequence[BarLabel]
    below: Sequence[BarLabel]


def labels(figures: Figures, on: Axis, *, width: str = "wide", framed_gpus: float = 0) -> Labels:
    """Fair share, potential above; allocated, nominal, demand, limit below, the important first.

    Where ``framed_gpus`` of the hatch are one workload's, its end is named instead of the demand's.
    A label that finds no place is left out: its number stands beside the bar anyway.
    """
    above = [("fair share now", figures.fair_share)]
    if figures.potential is not None and figures.potential > figures.fair_share:
        above.append(("potential", figures.potential))
    below = [("nominal", figures.granted), ("allocated", figures.allocated)]
    if figures.limit is not None:
        (above if framed_gpus else below).append(("limit", figures.limit))
    if framed_gpus:
        below.insert(1, ("with this gang", figures.allocated + framed_gpus))
    elif figures.demand > figures.allocated:
        below.append(("demand", figures.demand))
    room = WIDTHS_PX[width]
    return Labels(_place(above, on, room), _place(below, on, room))


def _place(wanted: Sequence[tuple[str, float]], on: Axis, room: float) -> list[BarLabel]:
    taken: list[tuple[float, float]] = []
    placed: list[tuple[float, BarLabel]] = []
    for word, amount in wanted:
        text = gpus(amount)
        half = (len(word) + len(text) + 1) * CHARACTER_PX / 2
        middle = _free(on.at(amount) / 100 * room, half, room, taken)
        if middle is None:
            continue
        taken.append((middle - half, middle + half))
        placed.append((middle, BarLabel(f"{100 * middle / room:.2f}%", word, text)))
    return [label for _, label in sorted(placed, key=lambda pair: pair[0])]


def _free(
    middle: float, half: float, room: float, taken: Sequence[tuple[float, float]]
) -> float | None:
    """The nearest place to ``middle`` where the text meets nothing, at most its own width away."""
    inside = min(max(middle, half), room - half)
    places = [inside]
    for left, right in taken:
        places += [left - GAP_PX - half, right + GAP_PX + half]
    fitting = [
        place
        for place in places
        if half - 1e-6 <= place <= room - half + 1e-6
        and abs(place - middle) <= 2 * half
        and all(
            place + half + GAP_PX <= left + 1e-6 or place - half - GAP_PX >= right - 1e-6
            for left, right in taken
        )
    ]
    return min(fitting, key=lambda place: (abs(place - inside), place), default=None)
