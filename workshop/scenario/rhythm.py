"""How often people submit, by the hour of the local week; each rhythm averages 1 over the week."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from .model import Rhythm

# Hours 0 to 23 of a working day, relative.
OFFICE_DAY = (
    *(0.15, 0.1, 0.1, 0.1, 0.1, 0.15, 0.3, 0.7, 1.4, 2.2, 2.5, 2.3),
    *(1.7, 2.0, 2.4, 2.4, 2.2, 2.0, 1.5, 1.0, 0.8, 0.6, 0.4, 0.25),
)
# Long runs are started before people go home.
EVENING_DAY = (
    *(0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.2, 0.4, 0.8, 1.2, 1.3, 1.3),
    *(1.1, 1.2, 1.4, 1.7, 2.3, 2.8, 2.6, 1.6, 1.2, 1.0, 0.8, 0.5),
)
WEEKEND = {Rhythm.OFFICE: 0.25, Rhythm.EVENING: 0.4, Rhythm.FLAT: 1.0}
DAYS = {Rhythm.OFFICE: OFFICE_DAY, Rhythm.EVENING: EVENING_DAY, Rhythm.FLAT: (1.0,) * 24}


@cache
def week(rhythm: Rhythm) -> tuple[float, ...]:
    """168 factors from Monday 00:00, mean 1."""
    day = DAYS[rhythm]
    hours = day * 5 + tuple(hour * WEEKEND[rhythm] for hour in day) * 2
    mean = sum(hours) / len(hours)
    return tuple(hour / mean for hour in hours)


def factor(rhythm: Rhythm, hour: datetime, zone: ZoneInfo) -> float:
    """Submissions in the hour that begins at ``hour``, relative to the week's mean."""
    local = (hour + timedelta(minutes=30)).astimezone(zone)
    return week(rhythm)[local.weekday() * 24 + local.hour]
