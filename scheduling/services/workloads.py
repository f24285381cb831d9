"""What people do to workloads: each verb goes to the cluster's API in the person's own name.

Nothing is written to the database here: the cluster is the truth for workloads, and the next cycle
projects what it shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduling.models import Cluster, Workload

Json = dict[str, Any]


def submit(cluster: Cluster, *, manifest: Mapping[str, Any], user: str) -> Json:
    """Create the Job that ``manifest`` describes as ``user`` (a user name), suspended.

    Sets ``spec.suspend`` and the annotation ``weir.dev/user``, whatever the manifest says. Returns the
    object as the API server made it (``metadata.uid`` is the Workload's ``uid``). Raises ServiceError
    with the field at fault when the manifest is no Job of a leaf queue of this cluster, and with the
    server's own words when it refuses.
    """
    raise NotImplementedError


def cancel(workload: Workload, *, user: str) -> None:
    """Delete the Job; its pods get their grace. A Job that is gone already is no error."""
    raise NotImplementedError


def hold(workload: Workload, *, user: str) -> None:
    """Keep a waiting workload from being admitted until ``release``."""
    raise NotImplementedError


def release(workload: Workload, *, user: str) -> None:
    """Undo ``hold``."""
    raise NotImplementedError


def set_priority_class(workload: Workload, *, name: str, user: str) -> None:
    """Give the workload another priority class. Raises ServiceError(field='priority_class')."""
    raise NotImplementedError
