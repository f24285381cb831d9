"""How a process reaches a cluster: the client and what watches and writes through it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

from scheduling.cluster.connection.client import LEAVE_S, Client
from scheduling.cluster.connection.lease import Lease
from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.enforcement.enforcer import Enforcer
from scheduling.cluster.picture import compose as pictures
from scheduling.models import Cluster

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
        client = Client.connect(cluster)
        mirror = Mirror(
            client, pictures.resources(), on_change=on_change, optional=pictures.OPTIONAL
        )
        lease = Lease(client)
        mirror.start()
        enforcer = Enforcer(client, mirror, lease, on_change)
        return cls(address_of(cluster), client, mirror, lease, enforcer)

    def leave(self) -> None:
        """Keep nobody waiting for a server that does not answer: the process is about to end."""
        self.client.leave()

    def close(self) -> None:
        """Stop the mirror and let the lease go, so that another worker takes over at once."""
        self.leave()
        # Whoever began to ask before is not made to wait any longer than who asks now.
        late = threading.Timer(LEAVE_S, self.client.sever)
        late.start()
        self.mirror.stop()
        self.enforcer.close()
        late.cancel()
        self.lease.release()
        self.client.close()
