"""The division by definition: exact fractions, one raise of the water level at a time."""

from __future__ import annotations

from fractions import Fraction as F

from scheduling.engine.model import MILLI, Queue, Quota, Snapshot

ENDLESS = F(10**15)


def divide(snapshot: Snapshot, gpu_class: str) -> dict[str, F]:
    """Fair share of every queue in milli-GPU, for workloads that all fit."""
    capacity = sum(
        max(0, n.gpus - n.foreign_gpus)
        for n in snapshot.nodes
        if n.ready and n.gpu_class == gpu_class
    )
    return _Level(snapshot, gpu_class).shares(None, F(capacity))


class _Level:
    def __init__(self, snapshot: Snapshot, gpu_class: str) -> None:
        self.snapshot, self.gpu_class = snapshot, gpu_class
        self.k = F(snapshot.policy.history_strength).limit_denominator(10**6)

    def kids(self, parent: str | None) -> list[Queue]:
        return [q for q in self.snapshot.queues if q.parent == parent]

    def quota(self, queue: Queue) -> Quota:
        return queue.quotas.get(self.gpu_class, Quota())

    def cap(self, queue: Queue) -> F:
        quota = self.quota(queue)
        if quota.weight == 0:
            return F(quota.nominal)
        return (
            ENDLESS if quota.borrowing_limit is None else F(quota.nominal + quota.borrowing_limit)
        )

    def demand(self, queue: Queue) -> F:
        below = [self.demand(kid) for kid in self.kids(queue.name)]
        own = sum(
            w.members.max * w.gpus
            for w in self.snapshot.workloads
            if w.queue == queue.name and self.gpu_class in w.gpu_classes
        )
        return min(self.cap(queue), sum(below, F(own)))

    def kept(self, queue: Queue) -> F:
        quota = self.quota(queue)
        idle = max(F(0), F(quota.nominal) - self.demand(queue))
        lending = ENDLESS if quota.lending_limit is None else F(quota.lending_limit)
        below = sum((self.kept(kid) for kid in self.kids(queue.name)), F(0))
        left = quota.nominal - sum((self.owed(kid) for kid in self.kids(queue.name)), F(0))
        return max(idle - lending, min(below, max(F(0), left)))

    def owed(self, queue: Queue) -> F:
        return min(self.quota(queue).nominal - self.kept(queue), self.demand(queue))

    def shares(self, parent: str | None, total: F) -> dict[str, F]:
        kids = self.kids(parent)
        owed = {q.name: self.owed(q) for q in kids}
        kept = {q.name: self.kept(q) for q in kids}
        rest = total - sum(owed.values())
        if rest < 0:
            got = pour(total, owed, {q.name: F(self.quota(q).nominal) for q in kids})
            rest = F(0)
        else:
            got = dict(owed)
        back = sum(kept.values(), F(0))
        scale = min(F(1), rest / back) if back else F(0)
        spare = max(F(0), rest - back)
        asked = {q.name: self.demand(q) for q in kids}
        if spare >= sum(asked.values()) - sum(got.values()):
            got = asked  # nothing is short: weights decide nothing
        for tier in sorted({q.priority for q in kids}, reverse=True):
            spare = self.tier([q for q in kids if q.priority == tier], spare, got)
        found = dict(got)
        for queue in kids:
            below = got[queue.name] + kept[queue.name] * scale
            found |= self.shares(queue.name, below)
        return found

    def tier(self, kids: list[Queue], spare: F, got: dict[str, F]) -> F:
        want = {q.name: self.demand(q) - got[q.name] for q in kids}
        plain = {q.name: F(self.quota(q).weight) if want[q.name] > 0 else F(0) for q in kids}
        weights = sum(plain.values())
        if not weights:
            return spare
        weight = {}
        for queue in kids:
            n = plain[queue.name] / weights
            used = F(queue.usage.get(self.gpu_class, 0.0)).limit_denominator(10**6)
            weight[queue.name] = max(F(0), n + self.k * (n - used)) if n else F(0)
        for weigh in (weight, {n: plain[n] if not weight[n] else F(0) for n in plain}):
            more = pour(spare, want, weigh)
            for name, part in more.items():
                got[name] += part
            spare -= sum(more.values())
        return spare


def pour(total: F, want: dict[str, F], weight: dict[str, F]) -> dict[str, F]:
    """Raise everybody's level together, in ratio of weight, until the next one is full or all is gone."""
    got = dict.fromkeys(want, F(0))
    while True:
        thirsty = [n for n in want if weight[n] > 0 and got[n] < want[n]]
        left = total - sum(got.values())
        if not thirsty or left <= 0:
            return got
        weights = sum(weight[n] for n in thirsty)
        step = min(left / weights, *((want[n] - got[n]) / weight[n] for n in thirsty))
        for name in thirsty:
            got[name] += step * weight[name]


def gpus(share: F) -> float:
    return float(share / MILLI)
