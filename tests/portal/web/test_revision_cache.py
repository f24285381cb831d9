"""What is computed once for all who look at one revision."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from portal.web.frame.revision_cache import MOST, RevisionCache
from scheduling.models import Cluster

LONGEST_S = 5.0


@pytest.fixture(autouse=True)
def kept(settings: Any) -> None:
    settings.WEIR_REMEMBERED_S = LONGEST_S


class Figures:
    """Says at which reading it was made."""

    def __init__(self) -> None:
        self.readings = 0

    def __call__(self) -> int:
        self.readings += 1
        return self.readings


def cluster(revision: int = 1, pk: int = 1) -> Cluster:
    return Cluster(pk=pk, revision=revision)


def at(times: list[float]) -> Callable[[], float]:
    return lambda: times[0]


def test_value_of_one_revision_is_made_once_for_each_key() -> None:
    kept, figures = RevisionCache(), Figures()

    assert [kept.of(cluster(), "a", figures) for _ in range(3)] == [1, 1, 1]
    assert kept.of(cluster(), "b", figures) == 2
    assert kept.of(cluster(pk=2), "a", figures) == 3


def test_value_is_made_anew_when_the_cluster_changed() -> None:
    kept, figures = RevisionCache(), Figures()

    assert kept.of(cluster(1), "a", figures) == 1
    assert kept.of(cluster(2), "a", figures) == 2


def test_value_is_made_anew_when_it_is_old() -> None:
    now = [0.0]
    kept, figures = RevisionCache(at(now)), Figures()
    kept.of(cluster(), "a", figures)
    now[0] = LONGEST_S - 0.1
    assert kept.of(cluster(), "a", figures) == 1
    now[0] = LONGEST_S
    assert kept.of(cluster(), "a", figures) == 2


def test_crowd_that_comes_at_once_waits_for_one_reading() -> None:
    kept, figures, come = RevisionCache(), Figures(), Event()

    def slow() -> int:
        come.wait(60)
        return figures()

    with ThreadPoolExecutor(8) as people:
        asked = [people.submit(kept.of, cluster(), "a", slow) for _ in range(8)]
        come.set()
        assert [one.result() for one in asked] == [1] * 8


def test_failure_is_told_and_not_kept() -> None:
    kept, figures = RevisionCache(), Figures()

    def fails() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        kept.of(cluster(), "a", fails)
    assert kept.of(cluster(), "a", figures) == 1


def test_values_asked_for_least_recently_go_first() -> None:
    kept, figures = RevisionCache(), Figures()
    kept.of(cluster(), "often", figures)
    for key in range(MOST - 1):
        kept.of(cluster(), key, figures)
    assert kept.of(cluster(), "often", figures) == 1
    kept.of(cluster(), "one more", figures)
    assert kept.of(cluster(), "often", figures) == 1
    assert kept.of(cluster(), 0, figures) == MOST + 2
