"""Whether what was told of runs has held, of those whose time has come.

Who ends first ran short: were only what has ended looked at, a model would seem to tell too long. So a run is
counted from the moment on at which it should have ended by its P90, whether it has or not; and only one of
which something was told before it ran.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F, QuerySet

from scheduling.models import Prediction

LOOKED_AT = 10
"""So many times what is wanted are read: many have not come due."""


def due(told: QuerySet[Prediction], now: datetime, most: int) -> list[bool]:
    """Of the latest ``most`` among ``told`` that have come due: whether P10 to P90 held. What was cut short
    says nothing."""
    rows = told.filter(told_at__lte=F("workload__first_started_at"), cut_short=False)
    columns = rows.order_by("-told_at", "-pk").values_list(
        "workload__first_started_at", "told_p10_s", "told_p90_s", "ran_s"
    )
    found = [
        ran_s is not None and p10_s <= ran_s <= p90_s
        for started, p10_s, p90_s, ran_s in columns[: LOOKED_AT * most]
        if started is not None and started + timedelta(seconds=p90_s) <= now
    ]
    return found[:most]
