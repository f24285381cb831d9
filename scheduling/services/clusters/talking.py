"""One client for each way to reach a cluster, whose refusals become what services say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kubernetes.config import ConfigException

from scheduling.cluster.connection.client import (
    ApiError,
    Client,
    ConflictError,
    InvalidError,
    NotFoundError,
    UnreachableError,
)
from scheduling.models import Cluster
from scheduling.services.clusters.connection import Address, address_of, for_people
from scheduling.services.errors import ServiceError

UNABLE = ("no_answer", "The cluster cannot do this now", "Try again in a minute.")
REFUSED = ("refused", "The cluster refuses", "Try again.")
OF_STATUS = {
    403: ("forbidden", "The cluster refuses", "Ask an admin for access."),
    **dict.fromkeys((502, 503, 504), UNABLE),
    507: ("no_space", "The cluster takes nothing more", "Tell an operator of the cluster."),
}
"""Status -> code, what the cluster does and what to do: of errors with no class of their own."""

_clients: dict[Address, Client] = {}
_lock = threading.Lock()


@contextmanager
def acting_on(cluster: Cluster) -> Iterator[Client]:
    """A shared client that acts in people's names; its refusals become ServiceErrors."""
    with talking_to(for_people(cluster)) as client:
        yield client


@contextmanager
def talking_to(cluster: Cluster) -> Iterator[Client]:
    """A shared client for ``cluster``; its refusals become ServiceErrors."""
    address = address_of(cluster)
    try:
        with _lock:
            client = _clients.get(address) or _clients.setdefault(address, Client.connect(cluster))
        yield client
    except (ConfigException, OSError) as error:
        raise ServiceError(
            "no_connection",
            f"Weir cannot connect to cluster {cluster.name}: {error}",
            "Ask an admin to check how the cluster is reached.",
        ) from error
    except ApiError as error:
        raise _translated(error, cluster) from error


def _translated(error: ApiError, cluster: Cluster) -> ServiceError:
    if isinstance(error, UnreachableError):
        return ServiceError(
            "no_answer", f"Cluster {cluster.name} does not answer.", "Try again in a minute."
        )
    if isinstance(error, NotFoundError):
        return ServiceError("gone", "The cluster has no such object any more.", "Reload the page.")
    if isinstance(error, ConflictError) and error.reason == "AlreadyExists":
        sentence = "There is a workload of that name already."
        return ServiceError("name_taken", sentence, "Choose another name.", field="name")
    if isinstance(error, InvalidError):
        field = error.causes[0][0] if error.causes else None
        sentence = f"{error.message}.".replace("..", ".")
        return ServiceError("invalid", sentence, "Correct it and send it again.", field=field)
    code, what, remedy = OF_STATUS.get(error.status, REFUSED)
    return ServiceError(code, f"{what}: {error.message}", remedy)
