"""A simulated life that is told in brief: the same, and described now and then."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from scheduling.engine.model import MILLI, Action, Plan, Reason, Snapshot
from scheduling.simulation.run.jobs import Submission
from tests.scheduling.simulation.conftest import ORIGIN
from tests.scheduling.simulation.test_engine import (
    lives,
    named_by_arrival,
    organisation_and_cluster,
)
from workshop.scenario import generate
from workshop.simulator.options import SimulatorOptions
from workshop.simulator.simulator import Observer, simulate

NOT_CARRIED_OUT = (Action.WAIT, Action.RESERVE)


class Heard(Observer):
    """How many plans, when with a snapshot, and what each act says."""

    def __init__(self) -> None:
        self.plans = 0
        self.described: list[datetime] = []
        self.acts: list[tuple[datetime, str, str]] = []

    def on_plan(self, now: datetime, snapshot: Snapshot | None, plan: Plan) -> None:
        self.plans += 1
        self.described += [] if snapshot is None else [now]
        acts = (
            d
            for d in plan.decisions
            if d.action not in NOT_CARRIED_OUT or d.reason is Reason.AWAITS_VICTIMS
        )
        self.acts += [(now, d.workload, d.sentence) for d in acts]


def never_fits(one: Submission) -> Submission:
    """The same, too large for any node: it waits all along, of which brief plans describe nothing."""
    return replace(one, workload=replace(one.workload, gpus=64 * MILLI))


def test_life_told_in_brief_is_the_same_and_describes_the_cluster_now_and_then() -> None:
    organisation, cluster = organisation_and_cluster(load=1.1)
    drawn = list(generate(organisation, ORIGIN, 0.5, seed=4))
    work = named_by_arrival([never_fits(drawn[0]), *drawn])
    whole, brief = Heard(), Heard()

    told = simulate(cluster, work, options=SimulatorOptions(leave_s=30), observer=whole)
    told_in_brief = simulate(
        cluster, work, options=SimulatorOptions(leave_s=30, spell_s=3600), observer=brief
    )

    assert lives(told_in_brief) == lives(told)
    assert brief.acts == whole.acts
    assert len(whole.described) == whole.plans == brief.plans > len(brief.described) > 1
    gaps = (b - a for a, b in pairwise(brief.described))
    assert min(gaps) >= timedelta(hours=1)
