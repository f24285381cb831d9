"""Quotas that a change lowers, as the engine spares them: for the grace nobody leaves for what was taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from scheduling.engine import model as m
from scheduling.services.policy.entitlements import gives_less

Quotas = Mapping[str, m.Quota]


def spared(before: m.Snapshot, after: m.Snapshot, until: datetime) -> m.Snapshot | None:
    """``after`` as it is planned until ``until``, the end of the grace; None where nothing was lowered."""
    was = {queue.name: queue.quotas for queue in before.queues}
    queues = tuple(_spared(queue, was.get(queue.name, {}), until) for queue in after.queues)
    return None if queues == after.queues else replace(after, queues=queues)


def _spared(queue: m.Queue, was: Quotas, until: datetime) -> m.Queue:
    lowered = {
        name: replace(quota, lowered=_former(was[name], until))
        for name, quota in queue.quotas.items()
        if name in was and quota.lowered is None and gives_less(quota, was[name])
    }
    return replace(queue, quotas={**queue.quotas, **lowered}) if lowered else queue


def _former(was: m.Quota, until: datetime) -> m.Lowered:
    return m.Lowered(until, was.nominal, was.borrowing_limit, was.lending_limit, was.weight)
