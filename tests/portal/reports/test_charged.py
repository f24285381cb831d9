"""What work held is one figure wherever it is shown: page, API, by user, type and class, days, showback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import pytest

from portal.reports.showback import showback
from portal.reports.utilization import utilization
from portal.selectors.costs import cost_of, gpu_seconds
from scheduling.models import GpuClass, State, Workload
from scheduling.services.ledger.workdays import roll_days
from scheduling.services.workloads import lifecycle
from tests.portal.reports.conftest import END, HOUR, Small
from tests.portal.reports.test_pages import client_of
from tests.portal.reports.test_showback import set_price

pytestmark = pytest.mark.django_db
S = State
PRICES = {"h100": "2", "mig": "0.30"}


def ago(hours: float) -> datetime:
    return END - hours * HOUR


class Life:
    """One workload of ``rea``, step by step."""

    def __init__(self, small: Small, gpus: int = 1000, members: int = 1) -> None:
        self.work = Workload(
            cluster=small.cluster, uid="w0", namespace="vision", name="w",
            queue=small.vision, user="rea", gpus=gpus, min_members=members, max_members=8,
            submitted_at=ago(40),
        )  # fmt: skip
        self._to(S.PENDING, 40, first=True)

    def _to(self, state: State, hours: float, **more: object) -> Life:
        lifecycle.transition(self.work, state, at=ago(hours), **more)
        return self

    def starts(self, hours: float, gpu_class: GpuClass) -> Life:
        return self._to(S.ADMITTED, hours, gpu_class=gpu_class)._to(S.RUNNING, hours)

    def sized(self, members: int, hours: float) -> Life:
        lifecycle.resize(self.work, members, at=ago(hours)).save()
        self.work.save()
        return self

    def leaves(self, hours: float, grace: float = 0.5) -> Life:
        return self._to(S.EVICTED, hours, lost_gpu_s=60.0)._to(S.REQUEUED, hours - grace)

    def ends(self, hours: float) -> Life:
        return self._to(S.FINISHED, hours)


LIVES: Sequence[tuple[str, Callable[[Small], object], float, float]] = [
    ("ended", lambda s: Life(s, members=2).starts(5, s.h100).ends(2), 6, 12),
    ("runs", lambda s: Life(s, members=2).starts(5, s.h100), 10, 20),
    ("shrunk", lambda s: Life(s, members=4).starts(6, s.h100).sized(1, 4).ends(2), 10, 20),
    ("grown", lambda s: Life(s).starts(6, s.h100).sized(3, 4).sized(2, 3), 11, 22),
    ("evicted", lambda s: Life(s).starts(6, s.h100).leaves(4), 2.5, 5),
    ("requeued", lambda s: Life(s).starts(9, s.h100).leaves(7, 1).starts(4, s.h100).ends(1), 6, 12),
    ("slices", lambda s: Life(s, members=7).starts(5, s.mig).ends(3), 2, 4.2),
    (
        "moved",
        lambda s: Life(s, members=7).starts(9, s.h100).leaves(8).starts(4, s.mig),
        14.5,
        29.4,
    ),
    ("yesterday", lambda s: Life(s, members=2).starts(30, s.h100).sized(1, 20).ends(3), 37, 74),
]
"""What it lived, GPU-hours in whole GPUs, and what they cost."""


@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize(("live", "hours", "amount"), [life[1:] for life in LIVES],
                         ids=[life[0] for life in LIVES])  # fmt: skip
def test_what_was_held_is_one_figure_everywhere(
    small: Small, live: Callable[[Small], object], hours: float, amount: float, rolled: bool
) -> None:
    for gpu_class in (small.h100, small.mig):
        set_price(gpu_class, PRICES[gpu_class.name], ago(24 * 40))
    live(small)
    if rolled:
        roll_days(small.cluster)
    filters = small.last(48)
    report = utilization(small.cluster, filters, small.operator)
    mine = utilization(small.cluster, small.last(48, user="rea"), small.operator)
    bill = showback(small.cluster, filters, small.operator)
    work = Workload.objects.get()
    row = client_of(small.operator).get(f"/api/v1/clusters/fra1/workloads/{work.uid}").json()
    found = {
        "page": gpu_seconds(work, END) / 3600,
        "by user": report.work.users[0].held,
        "by type": sum(each.held for each in report.work.types),
        "by class": sum(each.usage.allocated for each in mine.classes),
        "showback by user": sum(each.gpu_hours for each in bill.users),
    }
    assert found == dict.fromkeys(found, pytest.approx(hours))
    cost = cost_of(work, END)
    assert cost is not None
    assert float(cost.amount) == pytest.approx(amount)
    now = small.cluster.now()
    assert row["used_gpu_hours"] == pytest.approx(gpu_seconds(work, now) / 3600, abs=1e-4)
    assert sum(each.charged for each in bill.users) == pytest.approx(amount)
