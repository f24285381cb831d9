"""A plan as its enforcement needs it: all acts, and of the waits only what is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scheduling.engine import model as m


@dataclass(frozen=True, slots=True)
class Waits:
    """What does not start, in planned order: first work for which room is kept. A place in these columns
    stands for a decision, to reserve or to wait.
    """

    names: Sequence[str]
    reasons: Sequence[m.Reason]
    positions: Sequence[int]
    """1-based, among those of its queue; 0 for none."""
    spell: Callable[[Sequence[int]], list[m.Decision]]
    """The decisions at some places."""

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class Outline:
    """A plan: its division, its acts in the order they are to be carried out, and its waits."""

    fair_share: Mapping[str, Mapping[str, m.Share]]
    acts: tuple[m.Decision, ...]
    waits: Waits

    def whole(self) -> m.Plan:
        """With every decision put into words."""
        waits = self.waits.spell(range(len(self.waits)))
        return m.Plan(self.fair_share, (*self.acts, *waits))
