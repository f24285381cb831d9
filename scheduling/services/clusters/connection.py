"""How a process reaches a cluster: the client and what watches and writes through it.

Services share one client for each way to reach a cluster; its refusals become what they say to people.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass

from kubernetes.config import ConfigException

from scheduling.cluster.connection.client import (
    LEAVE_S,
    ApiError,
    Client,
    ConflictError,
    InvalidError,
    NotFoundError,
    UnreachableError,
)
from scheduling.cluster.connection.lease import Lease
from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.enforcement.enforcer import Enforcer
from scheduling.cluster.picture import compose as pictures
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError

Address = tuple[str, str, str, str, str]


def for_people(cluster: Cluster) -> Cluster:
    """``cluster`` as it is reached to act for people: by the token of the portal's own account, where it has
    one."""
    if not cluster.portal_token_file:
        return cluster
    reached = copy(cluster)
    reached.token_file = cluster.portal_token_file
    return reached


def address_of(cluster: Cluster) -> Address:
    """What decides how a cluster is reached: two rows with the same are reached alike."""
    return (
        cluster.api_url,
        cluster.token_file,
        cluster.ca_file,
        cluster.kubeconfig,
        cluster.context,
    )


@dataclass(slots=True)
class ClusterLink:
    """The connection to one cluster: what is seen of it, who may write, and what writes."""

    address: Address
    client: Client
    mirror: Mirror
    lease: Lease
    enforcer: Enforcer

    @classmethod
    def open(cls, cluster: Cluster, on_change: Callable[[], None]) -> ClusterLink:
        """Connect and begin to watch; ``on_change`` is called from a thread of the mirror, or from one that
        writes when a start ended that nobody waited for."""
        met = _looked_at.pop(address_of(cluster), None)
        client, lease = met or _meet(cluster)
        mirror = Mirror(
            client, pictures.resources(), on_change=on_change, optional=pictures.OPTIONAL
        )
        mirror.start()
        enforcer = Enforcer(client, mirror, lease, on_change)
        return cls(address_of(cluster), client, mirror, lease, enforcer)

    def leave(self) -> None:
        """Keep nobody waiting for a server that does not answer: the process is about to end."""
        self.client.leave()

    def close(self) -> None:
        """Stop the mirror and let the lease go, so that another worker takes over at once."""
        self.leave()
        # A caller who began to ask before waits no longer than one who asks now.
        late = threading.Timer(LEAVE_S, self.client.sever)
        late.start()
        self.mirror.stop()
        self.enforcer.close()
        late.cancel()
        self.lease.release()
        self.client.close()


_looked_at: dict[Address, tuple[Client, Lease]] = {}
"""Leases that were looked at before anything else of their clusters was wanted."""


def look_early(cluster: Cluster) -> None:
    """Look at the lease, for whoever opens the link later: a dead engine's time runs from here.

    Raises ApiError, and what ``configuration_of`` raises.
    """
    met = _meet(cluster)
    met[1].look()
    _looked_at[address_of(cluster)] = met


def _meet(cluster: Cluster) -> tuple[Client, Lease]:
    client = Client.connect(cluster)
    return client, Lease(client, interval_s=cluster.cycle_interval_s)


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
