"""How much of a core a task may take in the long run: a run of it is followed by a rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from celery import Task
from django.conf import settings

from scheduling.services import tracing
from scheduling.services.worker.allocator import give_back

HEAVY_S = 0.5
"""CPU seconds of a run that may have held much more memory than the process needs in between."""
MOST = 1000
"""Keys that are remembered; those that may run again are forgotten first."""


@dataclass(slots=True)
class Budget:
    """Of one task in this process, by what it is about. A process that starts anew owes nothing."""

    share: float
    clock: Callable[[], float] = time.monotonic
    cpu: Callable[[], float] = time.thread_time
    _until: dict[Hashable, float] = field(default_factory=dict)

    def rest_s(self, key: Hashable = ()) -> float:
        """Seconds until the next run about ``key`` may begin."""
        return max(0.0, self._until.get(key, 0.0) - self.clock())

    @contextmanager
    def spend(self, key: Hashable = ()) -> Iterator[None]:
        """A run that takes c CPU seconds is followed by a rest until c / share have gone by since it began,
        whatever came of it; as many times that as there are things that the task is about."""
        began, began_cpu = self.clock(), self.cpu()
        try:
            yield
        finally:
            self._until.setdefault(key, 0.0)
            if len(self._until) > MOST:
                self._forget()
            took_s = self.cpu() - began_cpu
            self._until[key] = began + len(self._until) * took_s / self.share
            if took_s >= HEAVY_S:
                give_back()

    def _forget(self) -> None:
        now = self.clock()
        self._until = {key: until for key, until in self._until.items() if until > now}


_budgets: dict[str, Budget] = {}


def budget_of(name: str) -> Budget | None:
    """That of the task; None where it may take all it needs."""
    duty = settings.WEIR_DUTIES.get(name)
    if duty is None or duty.share >= 1:
        return None
    return _budgets.setdefault(name, Budget(duty.share))


class BudgetedTask(Task):
    """A task that keeps within its share where a worker runs it; who calls it as a function is not kept."""

    abstract = True

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self.request.called_directly:
            return self.run(*args, **options)
        with tracing.span(self.name, of="consumer"):
            return self._within_budget(args, options)

    def _within_budget(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        budget = budget_of(self.name)
        if budget is None:
            return self.run(*args, **options)
        is_awaited = settings.WEIR_DUTIES[self.name].is_awaited
        key = () if is_awaited else args
        if rest_s := budget.rest_s(key):
            if is_awaited:
                self.apply_async(args=args, kwargs=options, countdown=rest_s)
            return None
        with budget.spend(key):
            return self.run(*args, **options)
