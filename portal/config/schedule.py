"""What beat asks for and how often, and which tasks have a lane of their own."""

from __future__ import annotations

EVERY: dict[str, tuple[str, float]] = {
    "cycles": ("scheduling.tasks.request_cycles", 5.0),
    "guardrails": ("scheduling.tasks.request_guards", 30.0),
    "measures": ("scheduling.tasks.request_measures", 15.0),
    "forecasts": ("scheduling.tasks.request_forecasts", 10.0),
    "replays": ("scheduling.tasks.request_replays", 60.0),
    "heartbeat": ("scheduling.tasks.heartbeat", 10.0),
    "roll-up": ("scheduling.tasks.roll_up", 60.0),
    "roll-up-days": ("scheduling.tasks.roll_up_days", 600.0),
    "demand": ("scheduling.tasks.request_demand", 900.0),
    "adapting": ("scheduling.tasks.request_adapting", 60.0),
    "capacity": ("scheduling.tasks.request_capacity", 300.0),
    "deliver": ("scheduling.tasks.deliver", 5.0),
    "requests": ("portal.approvals.tasks.advance", 5.0),
    "notices": ("portal.notices.tasks.look", 10.0),
    "letters": ("portal.notices.tasks.deliver", 5.0),
    "alerts": ("portal.alerts.tasks.look", 20.0),
    "budgets": ("portal.notices.tasks.look_at_budgets", 300.0),
    "views": ("portal.notices.tasks.tell_views", 600.0),
    "old-notices": ("portal.notices.tasks.forget", 3600.0),
    "old-answers": ("portal.idempotency.tasks.forget", 3600.0),
    "learning": ("scheduling.tasks.request_learning", 300.0),
    "predictions": ("scheduling.tasks.request_predictions", 30.0),
    "retention": ("scheduling.tasks.retention", 3600.0),
}
"""Name -> task, and seconds from one to the next."""

STUDIES = (
    "answer_what_if",
    "live_replays",
    "study_capacity",
    "adapt",
    "learn",
    "book_demand",
)
"""Tasks of ``scheduling.tasks`` that compute for seconds at a time, in a lane of their own: the general
one is the clock of all clusters.
"""
