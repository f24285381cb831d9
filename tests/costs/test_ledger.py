"""What Weir asks for stays what ``ledger.json`` says: ``make costs`` writes it anew.

Background tasks and cycles run three times: over all, when nothing has changed since, and after as much has
changed for 500 as for 2,000 waiting. What the last two ask for more of for 2,000 grows with what there is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from portal.accounts.models import User
from portal.alerts import watching
from portal.notices import idle, outbox, watch
from scheduling import tasks
from scheduling.engine import Planner
from scheduling.models import Cluster
from scheduling.services import run_times
from scheduling.services.explain import fragmentation
from scheduling.services.ledger import retention, rollup, workdays
from scheduling.services.starts import outcomes
from tests.costs.counting import counted
from tests.costs.living import cost_of_a_cycle, living_cluster, settle, submit
from tests.costs.scenario import busy_cluster, change, snapshot_of
from tests.factories import NOW

WRITE = "WEIR_WRITE_COSTS" in os.environ
LEDGER = Path(__file__).parent / "ledger.json"
SIZES = (500, 2000)
JOBS = (100, 400)
"""On an API server. A line longer than 500 is told of by the clock."""
MORE = 1.05
"""A count may be so many times what the ledger says, and grow so many times as fast as what waits."""
SLACK = {"calls": 300}
"""Beyond that: a count of three may become five, and a page may be asked for by one call more."""

Costs = dict[str, dict[str, int]]
BACKGROUND: dict[str, Callable[[Cluster], Any]] = {
    "settle forecasts": outcomes.settle,
    "correct forecasts": lambda cluster: outcomes.keep_correction(cluster, cluster.now()),
    "book fragmentation": fragmentation.book,
    "roll up": rollup.roll_up,
    "roll up days": workdays.roll_days,
    "look at alerts": watching.look,
    "tell people": outbox.look,
    "tell of starts": watch.look,
    "tell of idle GPUs": idle.look,
    "learn run times": lambda cluster: run_times.learn(cluster=cluster),
    "predict run times": lambda cluster: run_times.predict(cluster=cluster),
    "prune": retention.retain,
    "book demand": lambda cluster: tasks.book_demand(cluster.pk),
}
PAGES = ("", "queues/", "queues/pretraining/", "work/", "workloads/", "quotas/", "nodes/", "alerts/",
         "requests/", "cluster/", "policy/",
         "reports/utilization", "reports/use", "reports/showback")  # fmt: skip
PEOPLE = "admin", "researcher"
PAIRS = [(str(SIZES[0]), str(SIZES[1])), (f"{JOBS[0]} Jobs", f"{JOBS[1]} Jobs")]
TURNS = "first", "again", "after a change"
CHANGED = 20
"""So much of the smaller and of the larger: one in a hundred of what waits there."""


class Clock:
    """The time of all clusters; it stands."""

    def __init__(self) -> None:
        self.now = NOW


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(Cluster, "now", lambda cluster: clock.now)
    return clock


@pytest.mark.parametrize("pending", SIZES)
def test_work_over_a_fixed_scenario_asks_for_what_the_ledger_says(
    db: None, clock: Clock, client: Client, pending: int
) -> None:
    _hold(f"{pending}", _costs(client, clock, pending))


@pytest.mark.parametrize("jobs", JOBS)
def test_cycles_against_an_api_server_ask_for_what_the_ledger_says(db: None, jobs: int) -> None:
    _hold(f"{jobs} Jobs", _costs_of_cycles(jobs))


def _hold(scenario: str, found: Costs) -> None:
    """Against the ledger."""
    if WRITE:
        _write(scenario, found)
    kept = json.loads(LEDGER.read_text())[scenario]

    assert found.keys() == kept.keys(), "write the ledger anew: make costs"
    assert _more(kept, found, MORE) == []


@pytest.mark.parametrize(("less", "more"), PAIRS)
def test_work_over_four_times_as_much_asks_for_at_most_four_times_as_much(
    less: str, more: str
) -> None:
    small, large = _ledger(less, more)
    # Trees are grown from a thousand runs on; what is read for them is held to the rule.
    for found in (small, large):
        found.get("learn run times, first", {}).pop("calls", None)

    assert _more(small, large, MORE * SIZES[1] / SIZES[0]) == []


@pytest.mark.parametrize("turn", TURNS[1:])
@pytest.mark.parametrize(("less", "more"), PAIRS)
def test_another_pass_costs_what_has_changed_and_not_what_there_is(
    less: str, more: str, turn: str
) -> None:
    small, large = (
        {w: c for w, c in one.items() if w.endswith(turn)} for one in _ledger(less, more)
    )

    large.get(f"cycle, {turn}", {}).pop("calls", None)  # A plan is over all that waits.
    anew = f"predict run times, {turn}"
    if anew in small:
        # Of those who wait so many are predicted anew at most: a few less in the smaller scenario.
        large[anew]["calls"] = large[anew]["calls"] * small[anew]["read"] // large[anew]["read"]

    assert small
    assert _more(small, large, MORE) == []


def _ledger(*scenarios: str) -> list[Costs]:
    ledger = json.loads(LEDGER.read_text())
    return [ledger[scenario] for scenario in scenarios]


def _costs(client: Client, clock: Clock, pending: int) -> Costs:
    with transaction.atomic():  # What a process does once, such as importing, is no cost of a pass.
        _pass_over(client, clock, 10)
        transaction.set_rollback(True)
    clock.now = NOW
    return _pass_over(client, clock, pending)


def _pass_over(client: Client, clock: Clock, pending: int) -> Costs:
    cluster = busy_cluster(pending)
    costs: Costs = {}
    for turn in TURNS:
        if turn == TURNS[2]:
            clock.now += timedelta(minutes=1)
            change(cluster, min(CHANGED, pending), clock.now)
        for name, work in BACKGROUND.items():
            if turn == TURNS[1]:
                work(cluster)  # An alert, say, fires in the pass after the one that saw it.
            costs[f"{name}, {turn}"] = _counts_of(partial(work, cluster))
    for person in PEOPLE:
        client.force_login(User.objects.get(username=person))
        for page in PAGES:
            address = f"/c/{cluster.name}/{page}"
            client.get(address)  # fills what is remembered between requests
            costs[f"{person} sees {page or 'overview'}"] = _counts_of(partial(client.get, address))
    planner, snapshot = Planner(), snapshot_of(pending)
    for turn in TURNS[:2]:
        costs[f"plan, {turn}"] = _counts_of(partial(planner.plan, snapshot))
    return costs


def _costs_of_cycles(jobs: int) -> Costs:
    """The first cycle plans for all and writes to each, the second finds what it wrote."""
    with transaction.atomic():
        _cycles(10)
        transaction.set_rollback(True)
    return _cycles(jobs)


def _cycles(jobs: int) -> Costs:
    costs: Costs = {}
    with living_cluster(jobs) as world:
        costs[f"cycle, {TURNS[0]}"] = cost_of_a_cycle(world)
        settle(world)
        costs[f"cycle, {TURNS[1]}"] = cost_of_a_cycle(world)
        submit(world, jobs, CHANGED)
        costs[f"cycle, {TURNS[2]}"] = cost_of_a_cycle(world)
    return costs


def _counts_of(work: Callable[[], Any]) -> dict[str, int]:
    with counted() as counts:
        work()
    return {name: count for name, count in sorted(counts.items()) if count}


def _more(before: Costs, after: Costs, times: float) -> list[str]:
    """What of ``after`` is more than so many times as much as before."""
    return [
        f"{work}: {count} {name}, {before.get(work, {}).get(name, 0)} before"
        for work, counts in after.items()
        for name, count in counts.items()
        if count > before.get(work, {}).get(name, 0) * times + SLACK.get(name, 2)
    ]


def _write(scenario: str, found: Costs) -> None:
    ledger = json.loads(LEDGER.read_text()) if LEDGER.exists() else {}
    ledger[scenario] = found
    pages = []
    for name in sorted(ledger):
        lines = [f"{json.dumps(work)}: {json.dumps(of)}" for work, of in ledger[name].items()]
        pages.append(f'"{name}": {{\n  ' + ",\n  ".join(lines) + "\n}")
    LEDGER.write_text("{" + ",\n".join(pages) + "}\n")
