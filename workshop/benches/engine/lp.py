"""The division as a sequence of linear programmes: slow, and independent of the engine's arithmetic.

Sharing in ratio of weights up to what each wants is a lexicographic max-min programme (Nace and Pioro,
IEEE Communications Surveys, 2008): maximise t so that everybody has at least ``weight t`` or all that it
wants, within the total; fix whom the optimum satisfies; go on with the others. HiGHS solves each
programme in floating point and so finds its optimal basis; the share of that basis is then computed in
exact fractions, because the solver's tolerances are wider than what is to be checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from scheduling.engine import Frame

NEAR = 1e-6
"""How far the solver's t may lie from that of its basis, of 1."""


def shares_by_lp(frame: Frame, gpu_class: int) -> list[Fraction]:
    """Fair share of every queue of one class (milli-GPU, exact) for what ``frame`` holds and asks for."""
    return _Class(frame, gpu_class).shares


class _Class:
    """Demand and what is kept back from the leaves up, then shares from the root down."""

    def __init__(self, frame: Frame, c: int) -> None:
        self.tree, self.quotas, self.c = frame.tree, frame.quotas, c
        self.k = Fraction(frame.rules.history)
        self.usage = frame.buffers.division.usage
        size = self.tree.parent.size
        self.kids: list[list[int]] = [[] for _ in range(size)]
        for q in range(1, size):
            self.kids[int(self.tree.parent[q])].append(q)
        self.demand = [Fraction(int(gpus)) for gpus in frame.buffers.queues.demand.requests[c]]
        self.kept_back = [Fraction(0)] * size
        for q in range(size - 1, 0, -1):
            self._sum_up(q)
        self.shares = [Fraction(0)] * size
        supply = Fraction(int(frame.buffers.queues.demand.supply[c]))
        self.shares[0] = min(self.demand[0], supply)
        self._divide(0, supply)

    def _sum_up(self, q: int) -> None:
        self.demand[q] = min(self.demand[q], Fraction(int(self.quotas.cap[self.c, q])))
        self.demand[int(self.tree.parent[q])] += self.demand[q]
        idle = max(Fraction(0), self._nominal(q) - self.demand[q])
        lending = Fraction(int(self.quotas.lending[self.c, q]))
        below = sum((self.kept_back[kid] for kid in self.kids[q]), Fraction(0))
        left = self._nominal(q) - sum((self._owed(kid) for kid in self.kids[q]), Fraction(0))
        self.kept_back[q] = max(idle - lending, min(below, max(Fraction(0), left)))

    def _nominal(self, q: int) -> Fraction:
        return Fraction(int(self.quotas.nominal[self.c, q]))

    def _owed(self, q: int) -> Fraction:
        return min(self._nominal(q) - self.kept_back[q], self.demand[q])

    def _divide(self, parent: int, total: Fraction) -> None:
        kids = self.kids[parent]
        nominal = {q: self._nominal(q) for q in kids}
        owed = {q: self._owed(q) for q in kids}
        rest = total - sum(owed.values(), Fraction(0))
        got = max_min(total, owed, nominal) if rest < 0 else dict(owed)
        back = sum((self.kept_back[q] for q in kids), Fraction(0))
        scale = min(Fraction(1), max(rest, Fraction(0)) / back) if back else Fraction(0)
        spare = max(Fraction(0), rest - back)
        for tier in sorted({int(self.tree.tier[q]) for q in kids}, reverse=True):
            members = [q for q in kids if self.tree.tier[q] == tier]
            spare = self._pour(members, spare, got)
        for q in kids:
            self.shares[q] = got[q]
            self._divide(q, got[q] + self.kept_back[q] * scale)

    def _pour(self, members: list[int], spare: Fraction, got: dict[int, Fraction]) -> Fraction:
        weight = {q: Fraction(float(self.quotas.weight[self.c, q])) for q in members}
        want = {
            q: self.demand[q] - got[q] for q in members if weight[q] and self.demand[q] > got[q]
        }
        weights = sum((weight[q] for q in want), Fraction(0))
        pull = {}
        for q in want:
            n = weight[q] / weights
            pull[q] = max(Fraction(0), n + self.k * (n - Fraction(float(self.usage[self.c, q]))))
        for pulls in (pull, {q: weight[q] for q in want if not pull[q]}):
            for q, part in max_min(spare, want, pulls).items():
                got[q] += part
                spare -= part
        return spare


def max_min(
    total: Fraction, want: Mapping[int, Fraction], weight: Mapping[int, Fraction]
) -> dict[int, Fraction]:
    """Lexicographic max-min split of ``total``: ``weight t`` each, at most what it wants."""
    got = dict.fromkeys(want, Fraction(0))
    still = [q for q in want if weight.get(q, Fraction(0)) > 0 and want[q] > 0]
    rest = total
    while still and rest > 0:
        level = _level(rest, [want[q] for q in still], [weight[q] for q in still])
        full = [q for q in still if want[q] <= weight[q] * level]
        if not full:
            return got | {q: weight[q] * level for q in still}
        for q in full:
            got[q] = want[q]
            rest -= want[q]
        still = [q for q in still if q not in full]
    return got


def _level(total: Fraction, want: list[Fraction], weight: list[Fraction]) -> Fraction:
    """The largest t of ``x_i >= weight_i t``, ``x_i <= want_i``, ``sum x <= total``, exact."""
    size, scale = len(want), float(total)
    bound = np.zeros((size + 1, size + 1))
    bound[:size, :size] = -np.eye(size)
    unit = max(float(w) for w in weight)
    bound[:size, size] = [float(w) / unit for w in weight]
    bound[size, :size] = 1.0
    found = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=bound,
        b_ub=np.append(np.zeros(size), 1.0),
        bounds=[(0.0, min(1.0, float(w) / scale)) for w in want] + [(0.0, None)],
        method="highs-ds",
    )
    if found.status != 0:
        raise ArithmeticError(f"HiGHS: {found.message}")
    t = found.x[size] * scale / unit
    all_share = total / sum(weight, Fraction(0))
    first_full = min(w / pull for w, pull in zip(want, weight, strict=True))
    exact = min((all_share, first_full), key=lambda level: abs(float(level) - t))
    if abs(float(exact) - t) > NEAR * max(float(exact), 1e-300):
        raise ArithmeticError(f"HiGHS says {t}, its basis {float(exact)}")
    return exact
