"""Which starts of a plan are written in one cycle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduling.engine import Action, Decision, Outline, Reason, Waits
from scheduling.services.cycle.backstops import NEXT, portion

NOBODY = Waits(names=[], reasons=[], positions=[], spell=lambda _: [])


def plan(*acts: tuple[str, Action]) -> Outline:
    decisions = tuple(Decision(name, action, Reason.FITS_NOMINAL) for name, action in acts)
    return Outline({}, decisions, NOBODY)


def priority_of(name: str) -> int:
    """w3p100 has 100."""
    return int(name.partition("p")[2])


def starts(names: str) -> Outline:
    return plan(*((name, Action.ADMIT) for name in names.split()))


@pytest.mark.parametrize(
    ("planned", "most", "written"),
    [
        ("a1p0 a2p0 a3p0", 3, "a1p0 a2p0 a3p0"),
        ("a1p0 a2p0 a3p0 a4p0 a5p0", 2, "a1p0 a2p0"),
        ("a1p0 a2p0 a3p0 a4p0 a5p9", 2, "a1p0 a5p9"),
        ("a1p0 a2p0 a3p0 a4p5 a5p9 a6p5", 4, "a1p0 a2p0 a4p5 a5p9"),
        ("a1p0 a2p9", 1, "a1p0"),
    ],
    ids=[
        "few enough, all are written",
        "equal priority, in the plan's order",
        "half in the plan's order, half by priority",
        "equal priority past the half, in the plan's order",
        "one, the plan's first",
    ],
)
def test_starts_past_the_measure_half_are_in_order_half_by_priority(
    planned: str, most: int, written: str
) -> None:
    kept, whole = portion(starts(planned), most, priority_of)
    assert [d.workload for d in kept.acts] == written.split()
    assert whole == (planned == written)


def test_starts_that_are_put_off_wait_ahead_of_the_line_and_say_why() -> None:
    line = Waits(
        names=["z1p0", "z2p0"],
        reasons=[Reason.NO_FREE_GPUS] * 2,
        positions=[1, 2],
        spell=lambda places: [
            Decision(f"z{place + 1}p0", Action.WAIT, Reason.NO_FREE_GPUS) for place in places
        ],
    )
    kept, _ = portion(replace(starts("a1p0 a2p0 a3p0"), waits=line), 1, priority_of)
    assert list(kept.waits.names) == ["a2p0", "a3p0", "z1p0", "z2p0"]
    told = kept.waits.spell([3, 0, 2])
    assert [d.workload for d in told] == ["z2p0", "a2p0", "z1p0"]
    assert (told[1].reason, told[1].sentence) == (Reason.WAITS_FOR_TURN, NEXT)
    assert [*kept.waits.reasons] == [d.reason for d in kept.waits.spell(range(4))]
    assert [*kept.waits.positions] == [0, 0, 1, 2]


def test_acts_that_make_room_stay_whole_when_starts_are_put_off() -> None:
    made = plan(
        ("e1p0", Action.EVICT),
        ("a1p0", Action.ADMIT),
        ("a2p0", Action.ADMIT),
        ("g1p0", Action.GROW),
    )
    kept, whole = portion(made, 1, priority_of)
    assert [d.workload for d in kept.acts] == ["e1p0", "a1p0", "g1p0"]
    assert not whole
