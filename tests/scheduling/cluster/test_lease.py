"""Two workers never both hold a cluster's lease."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from scheduling.cluster.connection import lease as module
from scheduling.cluster.connection.client import Client, NotFoundError
from scheduling.cluster.connection.lease import DURATION_S, Lease, LeaseLostError
from workshop.testbed.server import EmbeddedServer

PATH = "/apis/coordination.k8s.io/v1/namespaces/weir-system/leases/weir-engine"


class Hands:
    """The clock of all leases here, which stands still unless a test turns it."""

    now = 1000.0

    def turn(self, part: float) -> None:
        """By that part of the time that a lease is held."""
        self.now += part * DURATION_S


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    made = Hands()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def lease(client: Client, holder: str) -> Lease:
    return Lease(client, holder=holder)


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


def test_lease_of_a_dead_worker_is_taken_when_its_record_stood_still(
    client: Client, hands: Hands
) -> None:
    lease(client, "dead").hold()
    rival = lease(client, "b")
    assert not rival.hold()
    hands.turn(1.1)

    assert rival.hold()


def test_lease_renewed_before_our_eyes_is_not_taken(client: Client, hands: Hands) -> None:
    first, rival = lease(client, "a"), lease(client, "b")
    first.hold()
    for _ in range(4):
        hands.turn(0.5)
        assert first.hold()
        assert not rival.hold()


def test_worker_whose_lease_was_stolen_stops(client: Client, hands: Hands) -> None:
    mine = lease(client, "a")
    mine.hold()
    stolen = client.get(PATH)
    stolen["spec"]["holderIdentity"] = "thief"
    client.replace(PATH, stolen)
    hands.turn(0.5)

    with pytest.raises(LeaseLostError):
        mine.check()


def test_server_out_of_reach_is_borne_until_the_time_is_up(
    bare_server: EmbeddedServer, client: Client, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.cluster.connection.client.BACK_OFF_S", (0.001, 0.001))
    mine = lease(client, "a")
    mine.hold()
    bare_server.faults.configure(server_error=1.0)
    hands.turn(0.5)
    assert mine.hold()
    hands.turn(0.7)

    with pytest.raises(Exception, match="500"):
        mine.hold()


def test_time_of_a_dead_worker_runs_from_the_first_look_which_takes_nothing(
    client: Client, hands: Hands
) -> None:
    lease(client, "dead").hold()
    rival = lease(client, "b")
    rival.look()
    assert client.get(PATH)["spec"]["holderIdentity"] == "dead"
    hands.turn(1)

    assert rival.hold()


def test_look_at_a_lease_that_nobody_made_makes_none(client: Client) -> None:
    lease(client, "a").look()

    with pytest.raises(NotFoundError):
        client.get(PATH)


def test_dead_worker_keeps_another_from_it_for_no_longer_than_8_s(
    client: Client, hands: Hands
) -> None:
    """Of the 15 s to the next plan the rest is for the start of a process."""
    lease(client, "dead").hold()
    rival = lease(client, "b")
    assert not rival.hold()
    assert rival.free_in_s() == 8
    hands.now += rival.free_in_s()

    assert rival.hold()


def test_renewal_is_looked_at_anew_for_the_whole_time(client: Client, hands: Hands) -> None:
    first, rival = lease(client, "a"), lease(client, "b")
    first.hold()
    rival.hold()
    hands.turn(0.5)
    first.hold()
    rival.hold()

    assert rival.free_in_s() == DURATION_S


@pytest.mark.parametrize(("interval_s", "lasts_s"), [(0.1, 8), (5, 8), (5.5, 9), (60, 90)])
def test_lease_outlasts_the_interval_between_two_cycles(
    client: Client, interval_s: float, lasts_s: int
) -> None:
    Lease(client, holder="a", interval_s=interval_s).hold()

    assert client.get(PATH)["spec"]["leaseDurationSeconds"] == lasts_s


def test_duration_of_another_version_is_honoured(client: Client, hands: Hands) -> None:
    lease(client, "dead").hold()
    record = client.get(PATH)
    record["spec"]["leaseDurationSeconds"] = 15
    client.replace(PATH, record)
    rival = lease(client, "b")
    rival.hold()

    assert rival.free_in_s() == 15
