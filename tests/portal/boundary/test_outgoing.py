"""Where calls of Weir may go, and that they go nowhere else."""

import ipaddress
import socket
import threading
import time

import pytest

from portal.boundary import outgoing
from portal.boundary.outgoing import OutgoingError, is_inside, post, target_of
from scheduling.services.errors import ServiceError
from tests.sink import listening

INSIDE = (
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",  # noqa: S104
    "169.254.169.254", "169.254.0.1", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    "192.0.2.1", "198.18.0.1", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::1", "::", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1",
    "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
    "2002:808:808::1", "2001:0:7f00:1::1", "64:ff9b:1::1",
)  # fmt: skip
OUTSIDE = ("8.8.8.8", "93.184.216.34", "2606:2800:220:1::1")


def resolving(monkeypatch, *found):
    """Every name is at ``found``; one list for each look."""
    looks = iter(found)
    last = list(found[-1])

    def getaddrinfo(host, port, *_, **__):
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port))
            for address in next(looks, last)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.fixture
def sink(settings):
    settings.WEIR_WEBHOOK_HTTP = True
    with listening() as made:
        settings.WEIR_WEBHOOK_INSIDE = [made.host]
        yield made


@pytest.mark.parametrize("address", INSIDE)
def test_address_inside_is_refused_at_its_field(monkeypatch, address):
    assert is_inside(ipaddress.ip_address(address))
    resolving(monkeypatch, [address])
    with pytest.raises(ServiceError) as refusal:
        target_of("https://hooks.example.org/x")
    assert refusal.value.field == "address"
    assert "WEIR_WEBHOOK_INSIDE" in refusal.value.remedy


@pytest.mark.parametrize("address", OUTSIDE)
def test_address_outside_is_taken(monkeypatch, address):
    resolving(monkeypatch, [address])
    target = target_of("https://hooks.example.org/x?y=1")
    assert (target.address, target.host, target.port, target.path) == (
        address, "hooks.example.org", 443, "/x?y=1"
    )  # fmt: skip


def test_host_with_one_address_inside_is_refused(monkeypatch):
    resolving(monkeypatch, ["8.8.8.8", "10.0.0.1"])
    with pytest.raises(ServiceError):
        target_of("https://hooks.example.org/")


@pytest.mark.parametrize(
    "address",
    ["https://localhost/", "https://127.1/", "https://0x7f.1/", "https://2130706433/", "https://[::1]/",
     "https://[::ffff:127.0.0.1]/", "https://localhost./", "https://[fe80::1%25lo]/"],
)  # fmt: skip
def test_other_spellings_of_loopback_are_refused(address):
    with pytest.raises(ServiceError):
        target_of(address)


@pytest.mark.parametrize(
    "address",
    ["http://hooks.example.org/", "ftp://hooks.example.org/", "file:///etc/passwd", "hooks.example.org", "",
     "https://", "https://user:pass@hooks.example.org/", "https://hooks.example.org:0/",
     "https://hooks.example.org:99999/", "https://hooks.example.org/a b",
     "https://hooks.example.org/\r\nX: 1", "https://[::1/", "https://hooks.example.org/" + "a" * 500, "https://hooks.exämple.org/"],
)  # fmt: skip
def test_what_is_no_https_address_is_refused_with_a_remedy(monkeypatch, address):
    resolving(monkeypatch, ["8.8.8.8"])
    with pytest.raises(ServiceError) as refusal:
        target_of(address)
    assert refusal.value.field == "address"
    assert refusal.value.remedy


def test_unknown_host_reads_as_one_inside(monkeypatch):
    said = []
    for found in ([], ["10.0.0.1"]):
        resolving(monkeypatch, found)
        with pytest.raises(ServiceError) as refusal:
            target_of("https://hooks.example.org/")
        said.append(str(refusal.value))
    assert said[0] == said[1]


def test_name_that_changes_after_the_look_leads_nowhere_else(monkeypatch, settings, sink):
    name = f"rebind.example.org:{sink.port}"
    settings.WEIR_WEBHOOK_INSIDE = [name]
    resolving(monkeypatch, ["127.0.0.1"])
    target = target_of(f"http://{name}/")
    asked, real = [], socket.create_connection

    def opening(at, *rest):
        asked.append(at)
        return real(at, *rest)

    monkeypatch.setattr(socket, "create_connection", opening)
    assert post(target, b"{}", {}) == 200
    assert asked == [("127.0.0.1", sink.port)]
    assert sink.got[0][1]["Host"] == name


def test_allowed_host_inside_is_called(sink):
    assert post(target_of(sink.address), b"{}", {"X-A": "b"}) == 200
    path, headers, body = sink.got[0]
    assert (path, headers["X-A"], body) == ("/hook?x=1", "b", b"{}")


def test_allowed_port_opens_no_other_port_of_the_host(sink):
    with pytest.raises(ServiceError):
        target_of(f"http://127.0.0.1:{sink.port + 1}/")


def test_redirect_is_not_followed(sink):
    sink.status, sink.headers = 302, {"Location": "http://127.0.0.1:1/"}
    assert post(target_of(sink.address), b"{}", {}) == 302
    assert len(sink.got) == 1


def test_receiver_that_does_not_answer_is_cut_off(sink, monkeypatch):
    monkeypatch.setattr(outgoing, "WHOLE_S", 0.3)
    sink.hold = threading.Event()
    began = time.monotonic()
    with pytest.raises(OutgoingError):
        post(target_of(sink.address), b"{}", {})
    assert time.monotonic() - began < 3


def test_answer_without_end_is_not_read_to_its_end(sink):
    sink.answer = b"x" * 5_000_000
    assert post(target_of(sink.address), b"{}", {}) == 200


def test_receiver_that_is_gone_is_said_in_safe_words(settings, sink):
    target = outgoing.Target("http", "127.0.0.1", 1, "/", "127.0.0.1")
    with pytest.raises(OutgoingError, match="could not be reached"):
        post(target, b"{}", {})


def test_wrong_certificate_is_refused(sink):
    target = target_of(sink.address)
    secure = outgoing.Target("https", target.host, target.port, "/", target.address)
    with pytest.raises(OutgoingError):
        post(secure, b"{}", {})
    assert sink.got == []
