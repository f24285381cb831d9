"""What people of the example organisation do once the portal serves, each by the door that a page uses: so
the pages of requests, quota changes, alerts and failed work have something to show."""

from __future__ import annotations

import logging
from collections.abc import Callable

from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from workshop.demo.edits import edit_quotas, look_after
from workshop.demo.failures import fail
from workshop.demo.requests import ask_all

log = logging.getLogger(__name__)

ACTS: tuple[Callable[[Cluster], None], ...] = (fail, look_after, ask_all, edit_quotas)
"""Each leaves alone what it has done before."""


def act(cluster: Cluster) -> None:
    """One that is refused, as people's edits may have made it since, keeps no other from its turn."""
    for each in ACTS:
        try:
            each(cluster)
        except ServiceError as refused:
            log.warning("%s: %s", each.__name__, refused)
