"""Two workers never both hold a cluster's lease."""

from __future__ import annotations

import time

import pytest

from scheduling.cluster.connection.client import Client
from scheduling.cluster.connection.lease import Lease, LeaseLostError
from workshop.testbed.server import EmbeddedServer

PATH = "/apis/coordination.k8s.io/v1/namespaces/weir-system/leases/weir-engine"


def lease(client: Client, holder: str, duration_s: float = 15) -> Lease:
    return Lease(client, holder=holder, duration_s=duration_s)


def test_first_worker_acquires_and_the_second_does_not(client: Client) -> None:
    assert lease(client, "a").hold()
    assert not lease(client, "b").hold()
    assert client.get(PATH)["spec"]["holderIdentity"] == "a"


def test_held_lease_asks_the_server_only_now_and_then(client: Client) -> None:
    mine = lease(client, "a")
    mine.hold()
    before = client.get(PATH)["metadata"]["resourceVersion"]
    assert all(mine.hold() for _ in range(10))

    assert client.get(PATH)["metadata"]["resourceVersion"] == before


def test_released_lease_is_taken_over_at_once(client: Client) -> None:
    first = lease(client, "a")
    first.hold()
    first.release()

    assert lease(client, "b").hold()
    assert client.get(PATH)["spec"]["leaseTransitions"] == 1


def test_lease_of_a_dead_worker_is_taken_when_its_record_stood_still(client: Client) -> None:
    lease(client, "dead", duration_s=1).hold()
    rival = lease(client, "b", duration_s=1)
    assert not rival.hold()
    time.sleep(1.1)

    assert rival.hold()


def test_lease_renewed_before_our_eyes_is_not_taken(client: Client) -> None:
    first, rival = lease(client, "a", 0.6), lease(client, "b", 0.6)
    first.hold()
    for _ in range(4):
        time.sleep(0.3)
        assert first.hold()
        assert not rival.hold()


def test_worker_whose_lease_was_stolen_stops(client: Client) -> None:
    mine = lease(client, "a", duration_s=0.3)
    mine.hold()
    stolen = client.get(PATH)
    stolen["spec"]["holderIdentity"] = "thief"
    client.replace(PATH, stolen)
    time.sleep(0.15)

    with pytest.raises(LeaseLostError):
        mine.check()


def test_server_out_of_reach_is_borne_until_the_time_is_up(
    bare_server: EmbeddedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.cluster.connection.client.BACK_OFF_S", (0.001, 0.001))
    mine = lease(client, "a", duration_s=0.6)
    mine.hold()
    bare_server.faults.configure(server_error=1.0)
    time.sleep(0.3)
    assert mine.hold()
    time.sleep(0.4)

    with pytest.raises(Exception, match="500"):
        mine.hold()
