"""Sending what waits: a stream is claimed by one worker at a time, and its cursor moves once a batch arrived.

A kill between sending and moving sends the batch again, under the same ids; a kill anywhere else costs
nothing. A target that fails keeps what is meant for it waiting, and nothing else.
"""

from __future__ import annotations

import logging
import random
import socket
import ssl
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from portal.boundary.outgoing import OutgoingError, post, trusted
from portal.streams import batches
from portal.streams.batches import Batch
from portal.streams.models import Stream
from portal.streams.records import Record
from portal.streams.targets import Target, configured, target_named

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


log = logging.getLogger(__name__)

LEASE = timedelta(seconds=90)
"""Longer than any one batch takes, so that who still sends keeps its claim."""
PASS_S = 20.0
"""No batch is begun later in a pass; the next goes on."""
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 600.0

dice = random.SystemRandom()


def wait_s(tries: int, lot: float) -> float:
    """Seconds until the next try after ``tries``; ``lot`` of [0, 1) takes off up to half."""
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(tries - 1, 20)) * (1 - lot / 2)


def send_due() -> int:
    """Everything that waits, of every stream that has a target; how many records went out."""
    until = time.monotonic() + PASS_S
    return sum(_drain(name, address, until) for name, address in configured().items())


def claim(name: str, now: datetime) -> Stream | None:
    """The stream, held by the caller now; None where somebody else holds it, or it is not due."""
    Stream.objects.get_or_create(pk=name)
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    ready = Q(due_at=None) | Q(due_at__lte=now)
    stamp = uuid.uuid4().hex
    taken = Stream.objects.filter(free, ready, pk=name).update(
        claim=stamp, claimed_until=now + LEASE
    )
    return Stream.objects.get(pk=name) if taken else None


def settle(stream: Stream, batch: Batch) -> bool:
    """Move the cursor; False where the claim has run out and somebody else holds the stream."""
    now = timezone.now()
    sent = {"sent_at": now, **HEALED} if batch.records else {}
    with transaction.atomic():
        if not _hold(stream, claimed_until=now + LEASE, **sent):
            return False
        batches.move(stream, batch)
    return True


HEALED = {"tries": 0, "due_at": None, "failing_since": None, "fault": ""}


def _hold(stream: Stream, **what: object) -> bool:
    """Write ``what`` while the claim still is the caller's."""
    return bool(Stream.objects.filter(pk=stream.pk, claim=stream.claim).update(**what))


def _drain(name: str, address: str, until: float) -> int:
    stream = claim(name, timezone.now())
    if stream is None:
        return 0
    sent = 0
    try:
        while time.monotonic() < until:
            arrived = _send_next(stream, address)
            if arrived is None:
                break
            sent += arrived
            stream.refresh_from_db(fields=["number"])
    except OutgoingError as error:
        _put_off(stream, str(error))
        return sent
    except Exception:
        log.exception("stream %s", name)
        _put_off(stream, "Weir failed to send it; its log says why.")
        return sent
    _hold(stream, claim="", claimed_until=None)
    return sent


def _send_next(stream: Stream, address: str) -> int | None:
    """How many records went out; None where nothing waits, or the stream is somebody else's by now."""
    target = target_named(address)
    batch = batches.next_of(stream)
    if batch is None:
        return None
    if batch.records:
        send(target, batch.records)
    return len(batch.records) if settle(stream, batch) else None


def _put_off(stream: Stream, fault: str) -> None:
    now = timezone.now()
    tries = Stream.objects.values_list("tries", flat=True).get(pk=stream.pk) + 1
    later = now + timedelta(seconds=wait_s(tries, dice.random()))
    _hold(
        stream, claim="", claimed_until=None, tries=F("tries") + 1, due_at=later, fault=fault[:200],
        failing_since=Coalesce(F("failing_since"), now),
    )  # fmt: skip
    log.warning("stream %s does not go out: %s", stream.name, fault)
