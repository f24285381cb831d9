"""One batch to its target. What returns has arrived as far as the way can tell; the rest raises."""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC

from django.conf import settings

from portal.boundary.outgoing import OutgoingError, post, trusted
from portal.streams.records import Record
from portal.streams.targets import Target

CONNECT_S = 5.0
WHOLE_S = 20.0
"""Of each wait for the receiver."""
MOST_DATAGRAM = 60_000
"""Bytes that IPv4 carries in one, with room for its headers."""
FACILITIES = {"audit": 13, "security": 10, "usage": 16}
"""RFC 5424: log audit, security, local use 0."""
WARNING, NOTICE = 4, 5


def send(target: Target, records: Sequence[Record]) -> None:
    """Raises OutgoingError, in words that are safe to show."""
    WAYS[target.scheme](target, records)


def _stdout(target: Target, records: Sequence[Record]) -> None:
    try:
        sys.stdout.write("".join(f"{record.line}\n" for record in records))
        sys.stdout.flush()
    except (OSError, ValueError):
        raise OutgoingError("Standard output is closed.") from None


def message(record: Record, host: str) -> bytes:
    """RFC 5424, without structured data: the line is the message."""
    severity = WARNING if record.refused else NOTICE
    at = record.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    kind = record.kind[:32] or "-"
    head = f"<{8 * FACILITIES[record.stream] + severity}>1 {at} {host} weir - {kind} -"
    return f"{head} {record.line}".encode("ascii")


def _udp(target: Target, records: Sequence[Record]) -> None:
    """A datagram each; nobody tells whether it came."""
    host = _own_name()
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            target.host, target.port, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind, protocol) as link:
            link.connect(address)  # so that a port where nobody listens is told
            for record in records:
                sent = message(record, host)
                link.send(sent if len(sent) <= MOST_DATAGRAM else message(record.cut(), host))
    except OSError:
        raise OutgoingError("The syslog server could not be reached.") from None


def _tcp(target: Target, records: Sequence[Record]) -> None:
    """Counted octets (RFC 6587, RFC 5425), then the end, and the receiver's own end as its answer: of what a
    connection that breaks still carried nobody knows, so the batch goes again."""
    host = _own_name()
    framed = b"".join(b"%d %s" % (len(m), m) for m in (message(r, host) for r in records))
    try:
        with socket.create_connection((target.host, target.port), CONNECT_S) as plain:
            plain.settimeout(WHOLE_S)
            if target.scheme == "syslog+tls":
                _over_tls(plain, target.host, framed)
            else:
                plain.sendall(framed)
                plain.shutdown(socket.SHUT_WR)
                _await_end(plain)
    except ssl.SSLCertVerificationError:
        raise OutgoingError("Its certificate is not right.") from None
    except TimeoutError:
        raise OutgoingError("It did not take everything in time.") from None
    except OSError:
        raise OutgoingError("The syslog server could not be reached, or broke off.") from None


def _over_tls(plain: socket.socket, host: str, framed: bytes) -> None:
    with _context().wrap_socket(plain, server_hostname=host, suppress_ragged_eofs=False) as link:
        link.sendall(framed)
        try:
            link.unwrap()
        except (ConnectionError, TimeoutError):
            raise
        except OSError as error:
            # Servers mostly close without a farewell of their own; a reset has been raised above.
            if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
                raise


def _await_end(link: socket.socket) -> None:
    while link.recv(4096):
        pass


def _context() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=settings.WEIR_STREAM_CA or None)


def _webhook(target: Target, records: Sequence[Record]) -> None:
    """One POST of JSON lines; any 2xx counts as arrived."""
    status = post(
        trusted(target.scheme, target.host, target.port, target.path),
        "".join(f"{record.line}\n" for record in records).encode("ascii"),
        _headers(records),
        context=_context(),
    )
    if not 200 <= status < 300:
        raise OutgoingError(f"It answered {status}.")


def _headers(records: Sequence[Record]) -> Mapping[str, str]:
    headers = {
        "Content-Type": "application/x-ndjson",
        "User-Agent": "Weir",
        "Weir-Stream": records[0].stream,
    }
    if settings.WEIR_STREAM_AUTHORIZATION:
        headers["Authorization"] = settings.WEIR_STREAM_AUTHORIZATION
    return headers


def _own_name() -> str:
    name = socket.gethostname().encode("ascii", "replace").decode()
    return name.replace(" ", "-")[:255] or "-"


WAYS: Mapping[str, Callable[[Target, Sequence[Record]], None]] = {
    "stdout": _stdout,
    "syslog+udp": _udp,
    "syslog+tcp": _tcp,
    "syslog+tls": _tcp,
    "http": _webhook,
    "https": _webhook,
}
