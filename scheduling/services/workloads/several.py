"""One verb on several workloads: each is done or refused by itself, and none stops the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from scheduling.models import Workload
from scheduling.services.errors import ServiceError
from scheduling.services.workloads import submit

log = logging.getLogger(__name__)

MOST = 100
"""Workloads in one call: each costs the cluster a call or more while somebody waits for the answer."""
Act = Callable[[Workload], None]


class Action(StrEnum):
    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one; ``refused`` is None where it was done."""

    workload: Workload
    refused: ServiceError | None = None


def act_on(
    workloads: Iterable[Workload], action: Action, *, user: str, priority_class: str = ""
) -> list[Outcome]:
    """Do it to each in the name of ``user``, in their order; the class is that of ``Action.PRIORITY``."""
    act = _act_of(action, user, priority_class)
    return [Outcome(workload, _refusal(workload, act)) for workload in workloads]


def _act_of(action: Action, user: str, priority_class: str) -> Act:
    acts: dict[Action, Act] = {
        Action.CANCEL: lambda work: submit.cancel(work, user=user),
        Action.HOLD: lambda work: submit.hold(work, user=user),
        Action.RELEASE: lambda work: _release(work, user),
        Action.PRIORITY: lambda work: submit.set_priority_class(
            work, name=priority_class, user=user
        ),
    }
    return acts[action]


def _release(workload: Workload, user: str) -> None:
    """Of what waits: to say of the others that they are released would tell of nothing."""
    if not workload.is_waiting:
        is_now = workload.get_state_display().lower()
        raise ServiceError("not_waiting", f"{workload.name} does not wait: it is {is_now}.")
    submit.release(workload, user=user)


def _refusal(workload: Workload, act: Act) -> ServiceError | None:
    try:
        act(workload)
    except ServiceError as refused:
        return refused
    except Exception:  # What nobody foresaw of one must not hide what became of the others.
        log.exception("acting on %s of several failed", workload.uid)
        return ServiceError(
            "outcome_unknown",
            f"Something failed, so nobody knows what came of {workload.name}.",
            "Look at its page before you try again.",
        )
    return None
