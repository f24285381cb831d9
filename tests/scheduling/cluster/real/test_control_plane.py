"""The control plane: verified TLS, RBAC, what it stores, and parts that go and come."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from scheduling.cluster.connection.client import ApiError, Client, configuration_from
from tests.scheduling.cluster.contract.api import Api
from workshop.testbed.control_plane.access import kubeconfig_of, read
from workshop.testbed.control_plane.binaries import find
from workshop.testbed.control_plane.plane import STORAGE, ControlPlane, forget

pytestmark = pytest.mark.real

MAPS = "/api/v1/namespaces/default/configmaps"


def connect(plane: ControlPlane) -> Client:
    return Client(configuration_from(plane.access.kubeconfig))


def test_certificate_is_verified(real_control_plane: ControlPlane) -> None:
    access = real_control_plane.access
    assert Api(access.url, access.token, access.ca_file).call("GET", "/api").code == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        Api(access.url, access.token).call("GET", "/api")


def test_address_is_never_given_to_an_outgoing_connection(real_control_plane: ControlPlane) -> None:
    """Else a client that tries again while it is down would take it, and it could not come back."""
    outgoing = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert int(real_control_plane.access.url.rpartition(":")[2]) < int(outgoing[0])


@pytest.mark.parametrize(("token", "code"), [("", 403), ("made-up", 401)])
def test_unknown_callers_are_refused(
    real_control_plane: ControlPlane, token: str, code: int
) -> None:
    access = real_control_plane.access
    assert Api(access.url, token, access.ca_file).call("GET", "/api/v1/nodes").code == code


def test_callers_may_do_what_rbac_grants_them(real_control_plane: ControlPlane) -> None:
    """The scheduler reads pods, and no secrets."""
    kubeconfig = kubeconfig_of(real_control_plane.folder, "kube-scheduler")
    scheduler = Client(configuration_from(str(kubeconfig)))
    assert "items" in scheduler.get("/api/v1/pods")
    with pytest.raises(ApiError, match="403 Forbidden"):
        scheduler.get("/api/v1/secrets")


def test_what_is_stored_outlives_a_stop_and_not_a_farewell(tmp_path: Path) -> None:
    binaries = find()
    with ControlPlane(tmp_path / "c", binaries, parts=STORAGE) as plane:
        connect(plane).create(MAPS, {"metadata": {"name": "kept"}})
    assert not plane.access.is_answered

    with ControlPlane(tmp_path / "c", binaries, parts=STORAGE) as plane:
        assert connect(plane).get(f"{MAPS}/kept")["metadata"]["name"] == "kept"
    assert forget(tmp_path / "c") == []
    assert read(tmp_path / "c") is None


def test_second_start_in_a_folder_ends_what_the_first_left(tmp_path: Path) -> None:
    binaries = find()
    left = ControlPlane(tmp_path / "c", binaries, parts=STORAGE).start()
    with ControlPlane(tmp_path / "c", binaries, parts=STORAGE) as plane:
        assert plane.access.is_answered
        assert not left.access.is_answered
