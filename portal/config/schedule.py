"""Every task: how often beat asks for it, in which lane it waits, and how much of a core it may take.

This is the one place that says so; how much a lane gives way to others stands in ``worker.names``. Settings,
the processes of ``serve`` and ``demo`` and those of docker/compose.yaml follow it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scheduling.services.worker.names import CLUSTERS, GENERAL, STUDIES


@dataclass(frozen=True, slots=True)
class Duty:
    """A task that is asked for every ``every_s`` seconds, 0 where something else asks for it.

    ``share`` is the part of one core that it takes in the long run, over all clusters; 1 is unbounded. Of
    what comes too early the next request is soon enough, unless it ``is_awaited``: that has its turn later.
    """

    task: str
    every_s: float = 0.0
    lane: str = GENERAL
    share: float = 1.0
    is_awaited: bool = False


def _duties() -> Iterator[Duty]:
    s, p = "scheduling.tasks.", "portal."
    for name in ("run_cycle", "guard", "measure"):
        # The engine's process asks for them itself: a cycle waits for no other process.
        yield Duty(f"{s}{name}", lane=CLUSTERS)
    yield Duty(f"{s}heartbeat", 10.0)
    yield Duty(f"{s}answer_heartbeat")
    yield Duty(f"{s}deliver", 5.0, share=0.05)
    yield Duty(f"{p}approvals.tasks.advance", 5.0, share=0.02)
    yield Duty(f"{p}plans.tasks.ask_ahead", 60.0, share=0.02)
    # A page says that it is being planned.
    yield Duty(f"{p}plans.tasks.answer", is_awaited=True)
    yield Duty(f"{p}teams.tasks.plan_sooner", 10.0, share=0.05)
    yield Duty(f"{p}notices.tasks.look", 10.0, share=0.05)
    yield Duty(f"{p}notices.tasks.deliver", 5.0, share=0.05)
    yield Duty(f"{p}notices.tasks.look_at_budgets", 300.0, share=0.02)
    yield Duty(f"{p}notices.tasks.tell_views", 600.0, share=0.02)
    yield Duty(f"{p}notices.tasks.forget", 3600.0, share=0.02)
    yield Duty(f"{p}streams.tasks.send", 10.0, share=0.05)
    yield Duty(f"{p}teams.tasks.read_directory", 900.0, share=0.05)
    yield Duty(f"{p}idempotency.tasks.forget", 3600.0, share=0.02)
    yield Duty(f"{p}alerts.tasks.look", 20.0, share=0.05)
    yield Duty(f"{s}roll_up", 60.0, share=0.05)
    yield Duty(f"{s}roll_up_days", 600.0, share=0.02)
    yield Duty(f"{s}retention", 3600.0, share=0.05)
    yield Duty(f"{s}request_forecasts", 10.0)
    yield Duty(f"{s}forecast_starts", share=0.1)
    yield Duty(f"{s}request_predictions", 30.0)
    yield Duty(f"{s}predict", share=0.05)
    yield Duty(f"{s}request_learning", 300.0)
    yield Duty(f"{s}learn", lane=STUDIES, share=0.1)
    yield Duty(f"{s}request_demand", 900.0)
    yield Duty(f"{s}book_demand", lane=STUDIES, share=0.05)
    yield Duty(f"{s}request_studies", 60.0)
    yield Duty(f"{s}look_for_studies", lane=STUDIES, share=0.1)
    yield Duty(f"{s}live_study", lane=STUDIES, share=0.5, is_awaited=True)
    # Somebody waits for the answer.
    yield Duty(f"{s}answer_study", lane=STUDIES, is_awaited=True)


DUTIES: dict[str, Duty] = {duty.task: duty for duty in _duties()}


def beat() -> dict[str, dict[str, Any]]:
    """What Celery's beat sends. Each expires before the next is due, or ticks pile up behind a stall."""
    return {
        duty.task: {
            "task": duty.task,
            "schedule": duty.every_s,
            "options": {"expires": duty.every_s},
        }
        for duty in DUTIES.values()
        if duty.every_s
    }


def routes() -> dict[str, dict[str, str]]:
    """Lanes by task, but of what a cluster's own lane takes: whoever asks for it names that lane."""
    return {
        duty.task: {"queue": duty.lane}
        for duty in DUTIES.values()
        if duty.lane not in (GENERAL, CLUSTERS)
    }
