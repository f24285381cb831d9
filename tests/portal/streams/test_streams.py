"""Streams out: nothing is lost and nothing but a batch doubled, whatever fails or is killed where."""

from __future__ import annotations

import json
import socket
import sys
from collections import Counter
from datetime import timedelta

import pytest
from django.conf import settings as real
from django.db import connection
from django.utils import timezone

from portal.audit.models import AuditEntry
from portal.boundary.outgoing import OutgoingError
from portal.config.checks import streams_have_targets
from portal.streams import batches, passing
from portal.streams.models import Position, Stream
from portal.streams.records import Record
from portal.streams.standing import standings
from portal.streams.targets import TargetError, target_named
from scheduling.models import Cluster, GpuClass, Queue, UsageSample
from scheduling.services import events
from scheduling.services.ledger.rollup import settled_before
from tests.factories import make_cluster
from tests.portal.streams.receivers import certificate, tcp
from tests.sink import listening

pytestmark = pytest.mark.django_db


@pytest.fixture
def sink(settings):
    with listening() as made:
        settings.WEIR_STREAMS = {"audit": made.address, "security": "", "usage": ""}
        yield made


@pytest.fixture
def cluster(db) -> Cluster:
    return make_cluster()


def happen(count: int, kind: str = "quota.saved", **facts) -> None:
    for number in range(count):
        events.announce(kind, actor="ada", subject=f"thing {number}", **facts)
    events.deliver_due()


def lines(sink) -> list[dict]:
    return [json.loads(line) for *_, body in sink.got for line in body.splitlines()]


def ids(sink) -> list[str]:
    return [line["id"] for line in lines(sink)]


def everything() -> list[str]:
    return [f"audit-{entry.number}" for entry in AuditEntry.objects.order_by("number")]


def later() -> None:
    """Leases have run out and what was put off is due."""
    Stream.objects.update(claimed_until=None, due_at=None)


# What goes out


def test_records_go_out_once_in_their_order_with_what_their_digest_seals(sink):
    happen(3, before={"gpus": 4}, after={"gpus": 8})

    assert passing.send_due() == 3
    assert passing.send_due() == 0

    assert ids(sink) == everything()
    last, entry = lines(sink)[-1], AuditEntry.objects.first()
    assert (last["digest"], last["previous"], last["after"]) == (
        entry.digest, entry.previous, {"gpus": 8},
    )  # fmt: skip
    (_, headers, _), *_ = sink.got
    assert headers["Content-Type"] == "application/x-ndjson"


def test_a_name_can_neither_begin_a_line_nor_act_on_a_terminal(sink):
    events.announce("quota.saved", actor="ada", subject="a\nb\x1b[2J\u2028ü")
    events.deliver_due()
    passing.send_due()

    (*_, body), = sink.got  # fmt: skip
    assert body.count(b"\n") == 1
    assert body.isascii()
    assert b"\x1b" not in body


def test_security_has_sign_ins_tokens_and_refusals_alone_and_passes_the_rest_over(settings, sink):
    settings.WEIR_STREAMS = {"security": sink.address}
    happen(2)
    happen(1, "token.issued")
    happen(1, refused=True)

    assert passing.send_due() == 2

    assert [(line["kind"], line["refused"]) for line in lines(sink)] == [
        ("token.issued", False), ("quota.saved", True),
    ]  # fmt: skip
    assert Stream.objects.get(pk="security").number == 4


def test_header_of_authorization_is_sent_and_never_shown(settings, sink):
    settings.WEIR_STREAM_AUTHORIZATION = "Splunk s3cret"
    happen(1)
    passing.send_due()

    assert sink.got[0][1]["Authorization"] == "Splunk s3cret"
    (told,) = standings()
    assert "s3cret" not in repr(told)
    assert "hook" not in told.where, "the path may be what lets one write there"


def test_many_go_in_batches_of_a_bounded_size(sink, monkeypatch):
    monkeypatch.setattr(batches, "MOST", 4)
    monkeypatch.setattr(batches, "MOST_BYTES", 600)
    happen(9)

    assert passing.send_due() == 9
    assert ids(sink) == everything()
    assert len(sink.got) > 3


def test_stdout_has_a_line_a_record(settings, capsys):
    settings.WEIR_STREAMS = {"audit": "stdout:"}
    happen(2)
    passing.send_due()

    told = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    assert told == ["audit-1", "audit-2"]


# Usage


def book(cluster: Cluster, hours_ago: int, gpus: float = 2000, queue: str = "leaf") -> UsageSample:
    root, _ = Queue.objects.get_or_create(cluster=cluster, parent=None, defaults={"name": "root"})
    leaf, _ = Queue.objects.get_or_create(cluster=cluster, name=queue, parent=root)
    kind, _ = GpuClass.objects.get_or_create(cluster=cluster, name="h100")
    start = settled_before(cluster) - timedelta(hours=hours_ago)
    return UsageSample.objects.create(
        queue=leaf, gpu_class=kind, resolution="hour", start=start, seconds=3600,
        allocated_gpus=gpus,
    )  # fmt: skip


def test_usage_goes_out_by_hours_that_change_no_more(settings, sink, cluster):
    settings.WEIR_STREAMS = {"usage": sink.address}
    book(cluster, 2, 1000)
    book(cluster, 1)
    book(cluster, 0, 9000)
    book(cluster, -3, 9000)

    passing.send_due()
    passing.send_due()

    assert [(line["gpu_hours"], line["leaf"]) for line in lines(sink)] == [(1.0, True), (2.0, True)]


def test_rows_of_one_hour_may_go_in_several_batches(settings, sink, cluster, monkeypatch):
    settings.WEIR_STREAMS = {"usage": sink.address}
    monkeypatch.setattr(batches, "MOST", 2)
    for name in ("a", "b", "c", "d", "e"):
        book(cluster, 1, queue=name)

    assert passing.send_due() == 5
    assert len(set(ids(sink))) == 5


def test_a_queue_above_others_is_no_leaf(settings, sink, cluster):
    settings.WEIR_STREAMS = {"usage": sink.address}
    leaf = book(cluster, 1).queue
    UsageSample.objects.update(queue=leaf.parent)

    passing.send_due()

    assert [line["leaf"] for line in lines(sink)] == [False]


# Failing


def test_a_failing_target_is_put_off_longer_each_time_and_told(settings, sink):
    happen(1)
    sink.status = 503
    waits = []
    for _ in range(3):
        passing.send_due()
        row = Stream.objects.get(pk="audit")
        waits.append(row.due_at - timezone.now())
        later()

    assert waits[0] < waits[2], "half of the longest is as much as the whole of the first"
    (told,) = standings()
    assert told.fault == "It answered 503."
    assert told.failing_since is not None
    assert (told.waiting, told.name) == (1, "audit")

    sink.status = 204
    assert passing.send_due() == 1
    (told,) = standings()
    assert (told.fault, told.failing_since, told.waiting, told.lag_s) == ("", None, 0, 0)


def test_what_is_put_off_is_not_tried_before_its_time(sink):
    happen(1)
    sink.status = 500
    passing.send_due()
    passing.send_due()

    assert len(sink.got) == 1


def test_one_failing_stream_keeps_no_other_back(settings, sink):
    settings.WEIR_STREAMS = {"audit": "http://127.0.0.1:9/x", "security": sink.address}
    happen(1, "token.issued")

    passing.send_due()

    assert len(sink.got) == 1
    assert {one.name: bool(one.fault) for one in standings()} == {"audit": True, "security": False}


def test_a_wrong_target_is_named_by_doctor_and_start_and_fails_quietly(settings):
    settings.WEIR_STREAMS = {"audit": "syslog://x"}
    happen(1)
    passing.send_due()

    (found,) = streams_have_targets()
    assert found.id == "weir.E005"
    assert "syslog+tls" in standings()[0].fault


@pytest.mark.parametrize(
    "address",
    ["", "x", "ftp://a", "https://", "https://u:p@h/", "syslog+tcp://h:0", "syslog+tcp://h:99999", "http://[x/"],
)  # fmt: skip
def test_no_target_is_named_with_what_to_write(address):
    with pytest.raises(TargetError) as refusal:
        target_named(address)
    assert "write" in str(refusal.value)


def test_ports_and_paths_of_targets():
    assert target_named("syslog+tls://log.example.org").where == "syslog+tls://log.example.org:6514"
    assert target_named("https://h.example.org/a?b=1").path == "/a?b=1"
    assert target_named("syslog+udp://[::1]").where == "syslog+udp://[::1]:514"


# Killed, and several at once


class Killed(BaseException):
    """As by kill -9: nothing of the pass runs after it."""


def killed_at(line: int) -> int:
    """A pass that is killed before its ``line``-th line; how many lines it had where it was not."""
    seen = 0
    own = str(real.BASE_DIR / "portal" / "streams")

    def trace(frame, event, arg):
        nonlocal seen
        if not frame.f_code.co_filename.startswith(own):
            return None
        if event == "line":
            seen += 1
            if seen == line:
                raise Killed
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        passing.send_due()
    except Killed:
        sys.settrace(before)
        cut_off()
        return 0
    finally:
        sys.settrace(before)
    return seen


def cut_off() -> None:
    """What the database does once the process at the other end is gone, and a new one connects."""
    connection.connection.rollback()
    connection.in_atomic_block = connection.needs_rollback = False
    connection.savepoint_ids, connection.atomic_blocks, connection.run_on_commit = [], [], []
    connection.set_autocommit(True)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stream", ["audit", "usage"])
def test_killed_before_any_line_nothing_is_lost_and_no_batch_comes_a_third_time(
    settings, cluster, monkeypatch, stream
):
    arrived: list[str] = []
    monkeypatch.setattr(
        passing, "send", lambda target, records: arrived.extend(r.facts["id"] for r in records)
    )
    monkeypatch.setattr(batches, "MOST", 2)
    settings.WEIR_STREAMS = {stream: "stdout:"}
    happen(3)
    for hour in (1, 2, 3):
        book(cluster, hour)
    line, whole = 0, 0
    while not whole:
        line += 1
        Stream.objects.all().delete()
        Position.objects.all().delete()
        arrived.clear()
        whole = killed_at(line)
        later()
        passing.send_due()
        counted = Counter(arrived)
        assert len(counted) == 3, (line, counted)
        assert list(counted) == sorted(counted), line
        assert max(counted.values()) <= 2, (line, counted)
    assert line > 40
    assert max(Counter(arrived).values()) == 1


def test_of_two_workers_one_sends(sink):
    happen(1)
    first = passing.claim("audit", timezone.now())

    assert first is not None
    assert passing.claim("audit", timezone.now()) is None
    assert passing.send_due() == 0


def test_who_lost_the_claim_moves_no_cursor(sink):
    happen(2)
    slow = passing.claim("audit", timezone.now())
    batch = batches.next_of(slow)
    other = passing.claim("audit", timezone.now() + passing.LEASE * 2)

    assert other is not None
    assert passing.settle(slow, batch) is False
    assert Stream.objects.get(pk="audit").number == 0
    assert passing.settle(other, batch) is True
    assert Stream.objects.get(pk="audit").number == 2


# Syslog


def record(text: str = "x", refused: bool = False, stream: str = "audit") -> Record:
    return Record(stream, timezone.now(), "quota.saved", refused, {"id": text, "after": text})


def test_syslog_message_is_of_rfc_5424():
    at = timezone.now().replace(microsecond=5)
    made = passing.message(Record("audit", at, "token.issued", True, {"id": "ü"}), "weir-1")

    assert made.startswith(b"<108>1 ")
    head, body = made.split(b" - {", 1)
    assert head.split(b" ")[2:] == [b"weir-1", b"weir", b"-", b"token.issued"]
    assert head.split(b" ")[1] == at.strftime("%Y-%m-%dT%H:%M:%S.000005Z").encode()
    assert json.loads(b"{" + body) == {"id": "ü"}


def test_syslog_over_tcp_arrives_whole():
    with tcp() as server:
        target = target_named(f"syslog+tcp://127.0.0.1:{server.port}")
        passing.send(target, [record("a"), record("b\n")])

    assert [json.loads(m[m.index(b"{") :])["id"] for m in server.got] == ["a", "b\n"]


def test_syslog_over_tcp_that_breaks_off_has_not_arrived():
    with tcp() as server:
        server.resets = True
        target = target_named(f"syslog+tcp://127.0.0.1:{server.port}")
        with pytest.raises(OutgoingError):
            passing.send(target, [record("a" * 400_000)])


def test_syslog_over_tls_is_checked_and_arrives(settings, tmp_path):
    context, crt = certificate(tmp_path)
    with tcp(context) as server:
        target = target_named(f"syslog+tls://localhost:{server.port}")
        with pytest.raises(OutgoingError, match="certificate"):
            passing.send(target, [record("a")])
        settings.WEIR_STREAM_CA = str(crt)
        passing.send(target, [record("b"), record("c")])

    assert len(server.got) == 2


def test_syslog_over_tls_that_breaks_off_has_not_arrived(settings, tmp_path):
    context, crt = certificate(tmp_path)
    settings.WEIR_STREAM_CA = str(crt)
    with tcp(context) as server:
        server.resets = True
        target = target_named(f"syslog+tls://localhost:{server.port}")
        with pytest.raises(OutgoingError):
            passing.send(target, [record("a" * 4_000_000)])


def test_syslog_over_udp_is_a_datagram_each_and_cut_where_none_is_so_long():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(20)
        target = target_named(f"syslog+udp://127.0.0.1:{server.getsockname()[1]}")
        passing.send(
            target,
            [
                record("a"),
                Record("usage", timezone.now(), "usage", False, {"id": "b", "after": "x" * 70_000}),
            ],
        )
        first, second = server.recv(65_536), server.recv(65_536)

    assert first.startswith(b"<109>1 ")
    told = json.loads(second[second.index(b"{") :])
    assert (told["id"], told["after"], told["cut"]) == ("b", None, True)


def test_nobody_listens_is_an_error_that_says_so():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(OutgoingError, match="could not be reached"):
        passing.send(target_named(f"syslog+tcp://127.0.0.1:{port}"), [record()])


# Where people meet it


def test_page_and_api_tell_operators_how_streams_stand(settings, sink, client, django_user_model):
    happen(1)
    sink.status = 500
    passing.send_due()
    cluster = make_cluster()
    client.force_login(django_user_model.objects.create_superuser("boss"))

    (told,) = client.get("/api/v1/streams").json()
    page = client.get(f"/c/{cluster.name}/cluster/").content.decode()

    assert (told["name"], told["waiting"], told["fault"]) == ("audit", 1, "It answered 500.")
    assert told["where"] == f"http://{sink.host}"
    assert "Audit records" in page
    assert "It answered 500." in page
