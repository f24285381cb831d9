"""What stood in the way of searches for victims, in bits: one for each rule, those of searches up to fair
shares first.
"""

from __future__ import annotations

from scheduling.engine.compile.kernel import inner
from scheduling.engine.eviction.rules import CAP, DELAY
from scheduling.engine.quota.fair_share import PLAIN
from scheduling.engine.state.queues import Search

MOST_BARS = CAP + 1


@inner
def forget_bars(search: Search) -> None:
    """Nothing has stood in the way of a search yet."""
    for rule in range(MOST_BARS):
        search.forbidden[rule] = 0


@inner
def bars(search: Search, stretch: int) -> int:
    """What has stood in the way of searches that go as far as ``stretch``, in bits: those up to fair shares
    first.
    """
    found = 0
    for rule in range(DELAY, MOST_BARS):
        found += search.forbidden[rule] << rule
    return found if stretch == PLAIN else found << MOST_BARS


@inner
def is_delayed(barred_by: int) -> bool:
    """Whether a workload that this barred had to wait itself."""
    return bool((barred_by | barred_by >> MOST_BARS) >> DELAY & 1)


@inner
def recall_bars(search: Search, barred_by: int, stretch: int) -> bool:
    """Note in ``search`` what ``bars`` returned; whether it is anything."""
    found = barred_by if stretch == PLAIN else barred_by >> MOST_BARS
    anything = False
    for rule in range(DELAY, MOST_BARS):
        search.forbidden[rule] = found >> rule & 1
        anything = anything or search.forbidden[rule] == 1
    return anything
