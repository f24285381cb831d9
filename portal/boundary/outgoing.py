"""Calls to addresses that people name: where they may go, and one bounded POST to the address looked at.

A name is looked up once, all of its addresses are judged, and the socket is opened to the first of them, so a
name that changes between the look and the call leads nowhere else.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from scheduling.services.errors import ServiceError

LOOKUP_S = 5.0
CONNECT_S = 5.0
WHOLE_S = 10.0
"""From the first byte to the last, however slowly they come."""
MOST_ANSWER = 16 * 1024
MOST_ADDRESS = 500

METADATA = frozenset(
    map(ipaddress.ip_address, ("169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254"))
)  # fmt: skip
"""Where clouds hand out credentials; one of them lies among public addresses."""

SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "64:ff9b:1::/48", "2001::/23", "3fff::/20"),
    )
)
"""Assigned to protocols or left over from them; versions of Python differ in what they call global."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class OutgoingError(Exception):
    """A call that did not arrive, in words that are safe to show: nothing that was answered is in them."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a call goes: the name it was given, and the address that was looked at."""

    scheme: str
    host: str
    port: int
    path: str
    address: str


def trusted(scheme: str, host: str, port: int, path: str) -> Target:
    """A place that whoever runs Weir has set: it may lie inside, so nothing is judged."""
    return Target(scheme, host, port, path, host)


def is_inside(address: Address) -> bool:
    """Whether calls to it could reach what no stranger should: this host, its networks, metadata."""
    if address in METADATA or address.is_multicast or address.is_reserved:
        return True
    if isinstance(address, ipaddress.IPv6Address) and _carries_ipv4(address):
        return True
    return not address.is_global or any(address in network for network in SPECIAL)


def _carries_ipv4(address: ipaddress.IPv6Address) -> bool:
    """Mapped, 6to4 and Teredo: they lead to an IPv4 address by another spelling."""
    return bool(address.ipv4_mapped or address.sixtofour or address.teredo)


def target_of(address: str) -> Target:
    """The place behind ``address``, judged now. Raises ServiceError at the field ``address``."""
    parts = _parts(address)
    host, port = parts.hostname or "", _port(parts)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    found = _lookup(host, port)
    named = {name.lower() for name in settings.WEIR_WEBHOOK_INSIDE}
    if not found or (not named & {host, f"{host}:{port}"} and any(map(is_inside, map(_ip, found)))):
        # One sentence for both: whoever asks does not learn which names are known inside.
        raise _refused(
            "That host is not known, or it lies inside the network of Weir.",
            "Name a host on the internet, or ask who runs Weir to add it to WEIR_WEBHOOK_INSIDE.",
        )
    return Target(parts.scheme, host, port, path, found[0])


def _refused(sentence: str, remedy: str) -> ServiceError:
    return ServiceError("address_refused", sentence, remedy, field="address")


def _parts(address: str) -> SplitResult:
    if len(address) > MOST_ADDRESS or not all("!" <= char <= "~" for char in address):
        raise _refused(
            "That is no address.",
            f"Write it in ASCII without spaces, of at most {MOST_ADDRESS} characters.",
        )
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise _refused("That is no address.", "Write it whole, as https://HOST/PATH.")
    if parts.scheme == "http" and not settings.WEIR_WEBHOOK_HTTP:
        raise _refused("Over http anybody on the way can read it.", "Write https://.")
    if parts.username is not None or parts.password is not None:
        raise _refused("It holds a user name.", "Leave out what stands before the @.")
    return parts


def _port(parts: SplitResult) -> int:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise _refused("Its port is none.", "Write a port of 1 to 65535, or none.")
    return port or (443 if parts.scheme == "https" else 80)


def _ip(text: str) -> Address:
    return ipaddress.ip_address(text.partition("%")[0])


def _lookup(host: str, port: int) -> list[str]:
    """Every address of ``host``, as the system says; none where it knows none or takes too long."""
    pool = ThreadPoolExecutor(1)
    lookup = pool.submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        return list(dict.fromkeys(str(row[4][0]) for row in lookup.result(LOOKUP_S)))
    except (OSError, UnicodeError, TimeoutError):
        return []
    finally:
        pool.shutdown(wait=False)


class _Connection(http.client.HTTPConnection):
    """To the address that was judged, under the name that was given."""

    def __init__(self, target: Target, context: ssl.SSLContext | None) -> None:
        super().__init__(target.host, target.port, timeout=CONNECT_S)
        self.target, self.context = target, context
        self.default_port = 443 if target.scheme == "https" else 80

    def connect(self) -> None:
        plain = socket.create_connection((self.target.address, self.target.port), CONNECT_S)
        self.sock = plain
        if self.target.scheme == "https":
            context = self.context or ssl.create_default_context()
            self.sock = context.wrap_socket(plain, server_hostname=self.target.host)

    def cut(self) -> None:
        """Ends whatever is being waited for, in whichever thread."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            self.close()


def post(
    target: Target,
    body: bytes,
    headers: Mapping[str, str],
    *,
    context: ssl.SSLContext | None = None,
) -> int:
    """The status that was answered, a redirect's too: none is followed. Raises OutgoingError."""
    connection = _Connection(target, context)
    clock = threading.Timer(WHOLE_S, connection.cut)
    clock.daemon = True
    clock.start()
    try:
        connection.request("POST", target.path, body, dict(headers))
        answer = connection.getresponse()
        # Nobody asks for what it says beside the status.
        with suppress(OSError, http.client.HTTPException):
            answer.read(MOST_ANSWER)
        return answer.status
    except ssl.SSLCertVerificationError:
        raise OutgoingError("Its certificate is not right.") from None
    except TimeoutError:
        raise OutgoingError("It did not answer in time.") from None
    except (OSError, http.client.HTTPException, ValueError):
        raise OutgoingError("It could not be reached, or broke off.") from None
    finally:
        clock.cancel()
        connection.close()
