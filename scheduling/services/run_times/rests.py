"""What is predicted of the rest of runs, for whoever plans ahead: rows that need nothing of the model."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from scheduling.cluster.adapters import key_of
from scheduling.models import Cluster, Prediction, State

LEAST_KEPT = 1000
SAME = 1.1
"""Factor between run times below which two classes are taken to be as fast."""
NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Rest:
    """Quantiles of the seconds that are left of a run, from ``at`` on; of one that waits, once it starts."""

    at: datetime
    p10_s: float
    p50_s: float
    p90_s: float
    classes: tuple[str, ...] = ()
    """That it may run on, those where it would end first first; empty where nobody knows."""
    not_before: tuple[tuple[str, datetime], ...] = ()
    """Slower classes, each with the moment until which waiting for a faster one is worth it."""

    def whole_s(self, started: datetime | None) -> tuple[float, float]:
        """P50 and P90 of the time from ``started`` to its end, as a plan counts it; of one that waits, from
        the start to come. The same until it is predicted anew."""
        gone_s = max(0.0, (self.at - started).total_seconds()) if started else 0.0
        return gone_s + self.p50_s, gone_s + self.p90_s

    def left_s(self, started: datetime | None, now: datetime) -> tuple[float, float, float]:
        """P10, P50 and P90 of what is left at ``now``."""
        since = max(self.at, started) if started else now
        passed_s = max(0.0, (now - since).total_seconds())
        p10, p50, p90 = (max(1.0, v - passed_s) for v in (self.p10_s, self.p50_s, self.p90_s))
        return p10, p50, p90


Rests = Mapping[str, Rest]
"""By uid."""
NONE: Rests = {}


def rests(cluster: Cluster, *, uids: Collection[str] | None = None) -> dict[str, Rest]:
    """By uid: what is predicted of those of ``cluster`` that have not ended, or of these among them."""
    said = Prediction.objects.filter(workload__cluster=cluster)
    said = said.exclude(workload__state=State.FINISHED).order_by()
    if uids is not None:
        said = said.filter(workload__uid__in=uids)
    return _by_uid(said)


def rests_by_name(cluster: Cluster) -> dict[str, Rest]:
    """By the engine's name, without those whose author says how long they run."""
    said = Prediction.objects.filter(
        workload__cluster=cluster, workload__predicted_p50_s__isnull=True
    )
    said = said.exclude(workload__state=State.FINISHED).order_by()
    columns = said.values_list(
        "workload__kind", "workload__namespace", "workload__name", "at", "p10_s", "p50_s", "p90_s"
    )
    return {
        key_of(kind, namespace, name): Rest(at, p10, p50, p90)
        for kind, namespace, name, at, p10, p50, p90 in columns
    }


@dataclass(slots=True)
class RestPredictions:
    """The predictions of one cluster in the memory of its worker: read whole once, then what is new."""

    by_uid: dict[str, Rest] = field(default_factory=dict)
    _seen: datetime = NEVER
    _waits: dict[str, datetime] = field(default_factory=dict)
    """By uid, the next moment at which a slower class is worth a start."""

    def renew(
        self, cluster: Cluster, present: Collection[str], now: datetime = NEVER
    ) -> Iterator[str]:
        """The uids whose prediction is another than before, and those that wait for a faster class no longer
        at ``now``; those not ``present`` are dropped in time.

        One query that finds no row where nothing was predicted since.
        """
        new = Prediction.objects.filter(predictor__cluster=cluster, at__gt=self._seen).order_by()
        new = new.exclude(workload__state=State.FINISHED)
        found = _by_uid(new)
        self.by_uid |= found
        self._seen = max([self._seen, *(rest.at for rest in found.values())])
        if len(self.by_uid) > LEAST_KEPT + 2 * len(present):
            self.by_uid = {uid: self.by_uid[uid] for uid in _both(self.by_uid, present)}
        passed = [uid for uid, until in self._waits.items() if until <= now]
        self._note_waits({*found, *passed}, now)
        return iter({**found, **dict.fromkeys(passed)})

    def _note_waits(self, uids: Iterable[str], now: datetime) -> None:
        for uid in uids:
            rest = self.by_uid.get(uid)
            ahead = [until for _, until in rest.not_before if until > now] if rest else []
            if ahead:
                self._waits[uid] = min(ahead)
            else:
                self._waits.pop(uid, None)


def _by_uid(said: QuerySet[Prediction]) -> dict[str, Rest]:
    columns = said.values_list(
        "workload__uid", "workload__submitted_at", "at", "p10_s", "p50_s", "p90_s", "by_class"
    )
    return {
        uid: Rest(at, p10, p50, p90, by_end(classes), _not_before(classes, submitted))
        if classes
        else Rest(at, p10, p50, p90)
        for uid, submitted, at, p10, p50, p90, classes in columns
    }


def _not_before(
    by_class: Mapping[str, Any], submitted: datetime
) -> tuple[tuple[str, datetime], ...]:
    return tuple((name, one.until) for name, one in held_back(by_class, submitted).items())


@dataclass(frozen=True, slots=True)
class HeldBack:
    """From a slower class ``until`` then, for ``faster``: the run is ``shorter_s`` seconds shorter there."""

    until: datetime
    faster: str
    shorter_s: float


def held_back(by_class: Mapping[str, Any], submitted: datetime) -> dict[str, HeldBack]:
    """Slower classes, each with how long work is held back from it: as long after ``submitted`` as its run is
    longer there than on the fastest class on which starts waited less than that of late.

    Work that waits so long and then starts on the slower after all ends later than by a start at once, but by
    no more than the difference between both runs (rent until what was paid is the price: Karlin, Manasse,
    Rudolph, Sleator, "Competitive snoopy caching", 1988).
    """
    found: dict[str, HeldBack] = {}
    for name, slow in by_class.items():
        worth = [faster for faster, of in by_class.items() if _is_worth_waiting(of, slow)]
        if worth:
            faster = min(worth, key=lambda one: by_class[one]["p50_s"])
            shorter_s = slow["p50_s"] - by_class[faster]["p50_s"]
            found[name] = HeldBack(submitted + timedelta(seconds=shorter_s), faster, shorter_s)
    return found


def _is_worth_waiting(quick: Mapping[str, Any], slow: Mapping[str, Any]) -> bool:
    wait_s = quick.get("wait_s")
    if wait_s is None or slow["p50_s"] < SAME * max(1.0, quick["p50_s"]):
        return False
    return bool(wait_s + quick["p50_s"] < slow["p50_s"])


def by_end(by_class: Mapping[str, Any]) -> tuple[str, ...]:
    """Classes by the P50 of a run that starts at once, the quickest first; of those whose P50 differ by less
    than ``SAME`` the one that its author puts first."""
    quickest = max(1.0, min(one["p50_s"] for one in by_class.values()))

    def rank(name: str) -> tuple[int, int]:
        longer = max(1.0, by_class[name]["p50_s"]) / quickest
        return int(math.log(longer) / math.log(SAME) + 1e-9), by_class[name].get("place", 0)

    return tuple(sorted(by_class, key=rank))


def _both(first: Iterable[str], second: Collection[str]) -> Iterator[str]:
    return (uid for uid in first if uid in second)
