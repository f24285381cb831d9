"""What Weir asks for stays what ``ledger.json`` says: ``make costs`` writes it anew.

Each piece of work runs twice. The second time nothing has changed since: what it asks for then that is more
for 2,000 waiting than for 500 grows with what there is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.alerts import watching
from portal.notices import idle, outbox, watch
from scheduling import tasks
from scheduling.engine import Planner
from scheduling.models import Cluster
from scheduling.services import forecasts
from scheduling.services.explain import fragmentation
from scheduling.services.ledger import retention, rollup, workdays
from scheduling.services.starts import outcomes
from tests.costs.counting import counted
from tests.costs.scenario import busy_cluster, snapshot_of
from tests.factories import NOW

WRITE = "WEIR_WRITE_COSTS" in os.environ
LEDGER = Path(__file__).parent / "ledger.json"
SIZES = (500, 2000)
MORE = 1.05
"""A count may be so many times what the ledger says, and grow so many times as fast as what waits."""
SLACK = 2
"""Beyond that: a count of three may become five."""

BACKGROUND: dict[str, Callable[[Cluster], Any]] = {
    "settle forecasts": outcomes.settle,
    "correct forecasts": lambda cluster: outcomes.correction_of(cluster, cluster.now()),
    "book fragmentation": fragmentation.book,
    "roll up": rollup.roll_up,
    "roll up days": workdays.roll_days,
    "look at alerts": watching.look,
    "tell people": outbox.look,
    "tell of starts": watch.look,
    "tell of idle GPUs": idle.look,
    "learn run times": lambda cluster: forecasts.learn(cluster=cluster),
    "predict run times": lambda cluster: forecasts.predict(cluster=cluster),
    "prune": retention.retain,
    "book demand": lambda cluster: tasks.book_demand(cluster.pk),
}
PAGES = ("", "queues/", "queues/pretraining/", "work/", "workloads/", "quotas/", "nodes/", "alerts/",
         "requests/", "cluster/", "policy/")  # fmt: skip
PEOPLE = "admin", "researcher"


@pytest.fixture
def at_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "now", lambda cluster: NOW)


@pytest.mark.parametrize("pending", SIZES)
def test_work_over_a_fixed_scenario_asks_for_what_the_ledger_says(
    db: None, at_one_moment: None, client: Client, pending: int
) -> None:
    found = _costs(client, pending)
    if WRITE:
        _write(pending, found)

    kept = json.loads(LEDGER.read_text())[str(pending)]

    assert found.keys() == kept.keys(), "write the ledger anew: make costs"
    assert _more(kept, found, MORE) == []


def test_work_over_four_times_as_much_asks_for_at_most_four_times_as_much() -> None:
    small, large = (json.loads(LEDGER.read_text())[str(pending)] for pending in SIZES)

    assert _more(small, large, MORE * SIZES[1] / SIZES[0]) == []


def _costs(client: Client, pending: int) -> dict[str, dict[str, int]]:
    costs: dict[str, dict[str, int]] = {}
    cluster = busy_cluster(pending)
    for name, work in BACKGROUND.items():
        for turn in ("first", "again"):
            costs[f"{name}, {turn}"] = _counts_of(partial(work, cluster))
    for person in PEOPLE:
        client.force_login(User.objects.get(username=person))
        for page in PAGES:
            address = f"/c/{cluster.name}/{page}"
            client.get(address)  # fills what is remembered between requests
            costs[f"{person} sees {page or 'overview'}"] = _counts_of(partial(client.get, address))
    planner, snapshot = Planner(), snapshot_of(pending)
    for turn in ("first", "again"):
        costs[f"plan, {turn}"] = _counts_of(partial(planner.plan, snapshot))
    return costs


def _counts_of(work: Callable[[], Any]) -> dict[str, int]:
    with counted() as counts:
        work()
    return {name: count for name, count in sorted(counts.items()) if count}


def _more(
    before: dict[str, dict[str, int]], after: dict[str, dict[str, int]], times: float
) -> list[str]:
    """What of ``after`` is more than so many times as much as before."""
    return [
        f"{work}: {count} {name}, {before[work].get(name, 0)} before"
        for work, counts in after.items()
        for name, count in counts.items()
        if count > before[work].get(name, 0) * times + SLACK
    ]


def _write(pending: int, found: dict[str, dict[str, int]]) -> None:
    ledger = json.loads(LEDGER.read_text()) if LEDGER.exists() else {}
    ledger[str(pending)] = found
    pages = []
    for size in sorted(ledger, key=int):
        lines = [f"{json.dumps(work)}: {json.dumps(of)}" for work, of in ledger[size].items()]
        pages.append(f'"{size}": {{\n  ' + ",\n  ".join(lines) + "\n}")
    LEDGER.write_text("{" + ",\n".join(pages) + "}\n")
