"""How much sooner runs end on one GPU class than on another, by name and image.

Work of one name and image is a *group*. Of a group that has run on both classes, the mean logarithms of its
run times differ by its own pace; the common pace of two classes is the mean over the groups, each weighed by
the runs that its difference rests on, and a group's own is drawn towards the common one. Two classes that no
group has run on both of have no pace: nobody knows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from .quantiles import log2_s
from .runs import Run, Work

KEPT = 16
"""Last runs of a group on a class."""
DRAWN = 3.0
"""The common pace counts as so many pairs of runs."""
MOST_GROUPS = 4000

Group = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Pace:
    """``shift``: by how much the logarithm of a run time grows from one class to another, with what it rests
    on: ``runs`` of ``groups`` seen on both; ``own`` of them are of the group itself."""

    shift: float
    runs: int
    groups: int
    own: int = 0

    @property
    def ratio(self) -> float:
        """How many times sooner it ends on the second class than on the first."""
        return float(2.0**-self.shift)


@dataclass(slots=True)
class Paces:
    """Run times by group and class; ``common`` remembers what follows until another run ends."""

    seen: dict[Group, dict[str, deque[float]]] = field(default_factory=dict)
    common: dict[tuple[str, str], Pace | None] = field(default_factory=dict)

    def learn(self, run: Run) -> None:
        """What was cut short says nothing of the class that it ran on."""
        work = run.work
        if run.censored or not work.gpu_class or not (work.stem or work.image):
            return
        by_class = self.seen.pop((work.stem, work.image), {})
        by_class.setdefault(work.gpu_class, deque(maxlen=KEPT)).append(log2_s(run.ran_s))
        self.seen[work.stem, work.image] = by_class  # The latest last: the first are dropped.
        if len(self.seen) > MOST_GROUPS:
            del self.seen[next(iter(self.seen))]
        self.common.clear()

    def between(self, work: Work, begin: str, to: str) -> Pace | None:
        """From class ``begin`` to class ``to`` for ``work``; None where nobody knows."""
        if begin == to:
            return Pace(0.0, 0, 0)
        common = self.common_of(begin, to)
        if common is None:
            return None
        own = _difference(self.seen.get((work.stem, work.image), {}), begin, to)
        if own is None:
            return common
        shift, weight, runs = own
        drawn = (weight * shift + DRAWN * common.shift) / (weight + DRAWN)
        return Pace(drawn, common.runs, common.groups, own=runs)

    def common_of(self, begin: str, to: str) -> Pace | None:
        if (begin, to) not in self.common:
            self.common[begin, to] = self._common(begin, to)
        return self.common[begin, to]

    def _common(self, begin: str, to: str) -> Pace | None:
        found = [d for by in self.seen.values() if (d := _difference(by, begin, to)) is not None]
        if not found:
            return None
        weight = sum(w for _, w, _ in found)
        shift = sum(shift * w for shift, w, _ in found) / weight
        return Pace(shift, runs=sum(runs for _, _, runs in found), groups=len(found))

    def pairs(self) -> Iterator[tuple[str, str, Pace]]:
        """Every two classes whose pace is known, the quicker one first."""
        classes = sorted({name for by_class in self.seen.values() for name in by_class})
        for place, first in enumerate(classes):
            for other in classes[place + 1 :]:
                if (pace := self.common_of(other, first)) is None:
                    continue
                quicker = pace.shift <= 0
                back = Pace(-pace.shift, pace.runs, pace.groups)
                yield (first, other, pace) if quicker else (other, first, back)


def _difference(
    by_class: dict[str, deque[float]], begin: str, to: str
) -> tuple[float, float, int] | None:
    """Shift, its weight in pairs of runs, and the runs that it rests on."""
    a, b = by_class.get(begin), by_class.get(to)
    if not a or not b:
        return None
    shift = sum(b) / len(b) - sum(a) / len(a)
    return shift, len(a) * len(b) / (len(a) + len(b)), len(a) + len(b)
