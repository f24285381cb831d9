"""What is wrong with an installation, in plain words with a remedy each. Reads and asks; changes nothing."""

from __future__ import annotations

import shutil
import smtplib
import time
from collections.abc import Iterator

from django.conf import settings
from django.core import checks, mail
from django.db import DatabaseError, connection
from django.utils import timezone

from portal.accounts import ldap
from portal.display.format import counted, duration
from portal.notices.models import Letter, LetterState
from portal.setup.inviting import needs_admin
from portal.streams.standing import StreamStanding
from portal.streams.standing import standings as streams
from scheduling.models import Cluster, ClusterMode, Credential, Role
from scheduling.models.credentials import read
from scheduling.services.clusters import checkup
from scheduling.services.clusters.gaps import Grade, Item
from scheduling.services.lists import few
from scheduling.services.worker import looks
from scheduling.services.worker.processes import missing, standings

APART_S = 2.0
"""Clocks of database and process: forecasts and sessions bear no more."""
LEAST_FREE = 0.05
LEAST_BYTES = 512 << 20
MAIL_S = 5
MOST_NAMED = 4


def examine() -> Iterator[Item]:
    """Everything that was looked at; the rest is left out where the database does not answer."""
    yield from _settings()
    yield from _disk()
    yield from _broker()
    found = list(_database())
    yield from found
    if any(item.grade is Grade.MISSING for item in found):
        return
    for part in (_clock, _secrets, _processes, _mail, _streams, _directory, _people, _clusters):
        yield from part()


def _good(topic: str, sentence: str) -> Item:
    return Item(Grade.GOOD, topic, sentence)


def _fault(topic: str, sentence: str, remedy: str) -> Item:
    return Item(Grade.MISSING, topic, sentence, remedy)


def _note(topic: str, sentence: str, remedy: str) -> Item:
    return Item(Grade.ADVICE, topic, sentence, remedy)


def _settings() -> Iterator[Item]:
    messages = checks.run_checks(tags=[checks.Tags.security], include_deployment_checks=True)
    messages = [one for one in messages if not one.is_silenced()]
    errors = [one for one in messages if one.level >= checks.ERROR]
    for one in errors:
        yield _fault("settings", f"{one.id}: {one.msg}", one.hint or "")
    if warned := ", ".join(sorted(str(one.id) for one in messages if one not in errors)):
        remedy = "python manage.py check --deploy says each; most go with WEIR_TLS=true."
        yield _note("settings", f"They could be safer: {warned}.", remedy)
    if not messages:
        yield _good("settings", "Nothing is insecure.")


def _disk() -> Iterator[Item]:
    folder = settings.VAR_DIR
    space = shutil.disk_usage(folder)
    said = f"{space.free / 2**30:.1f} GiB of {space.total / 2**30:.0f} are free below {folder}."
    if space.free < max(LEAST_BYTES, LEAST_FREE * space.total):
        yield _fault("disk", said, "Make room: a full disk refuses writes.")
    else:
        yield _good("disk", said)


def _broker() -> Iterator[Item]:
    if fault := looks.broker().fault:
        remedy = "Look at Redis and at WEIR_BROKER_URL: host, port and password."
        yield _fault("broker", f"The broker {fault}.", remedy)
    else:
        yield _good("broker", "The broker answers.")


def _database() -> Iterator[Item]:
    began = time.perf_counter()
    if fault := looks.database().fault:
        remedy = "Look at the database and at DATABASE_URL: host, port, name and password."
        yield _fault("database", f"The database {fault}.", remedy)
        return
    took_ms = 1000 * (time.perf_counter() - began)
    yield _good("database", f"{connection.display_name} answers in {took_ms:.0f} ms.")
    if lacking := looks.unapplied():
        said = f"{counted(len(lacking), 'migration is,migrations are')} not applied, first {lacking[0]}."
        yield _fault("migrations", said, "python manage.py migrate")
    else:
        yield _good("migrations", "All are applied.")


def _clock() -> Iterator[Item]:
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        apart_s = abs((cursor.fetchone()[0] - timezone.now()).total_seconds())
    if apart_s > APART_S:
        said = f"This machine's clock and the database's are {duration(apart_s)} apart."
        yield _fault("clock", said, "Have both follow one time server.")
    else:
        yield _good("clock", "This machine and the database agree.")


def _secrets() -> Iterator[Item]:
    """Of files too: one that only this process sees is found where it is asked on another machine."""
    lost = [
        one for one in Credential.objects.select_related("cluster") if not _opens(one.reference)
    ]
    for one in lost:
        said = f"{one.name} of {one.cluster.name} was enciphered with a key that is not known."
        remedy = "Name the key of then in WEIR_SECRET_KEY_FALLBACKS, or paste it again."
        yield _fault("secret key", said, remedy)
    if not lost:
        yield _good("secret key", f"Reads all {Credential.objects.count()} credentials.")


def _opens(place: str) -> bool:
    try:
        read(place)
    except OSError:
        return False
    return True


def _processes() -> Iterator[Item]:
    absent = missing(standings())
    for role in absent:
        said = f"No {Role(role).label.lower()} has been heard of."
        yield _fault("processes", said, "Start it; the page of the engine has the command.")
    if not absent:
        yield _good("processes", "One of each role lives.")


def _mail() -> Iterator[Item]:
    if not settings.WEIR_MAIL_HOST:
        yield _note(
            "mail", "There is no mail server: notices go by no mail.", "Set WEIR_MAIL_HOST."
        )
    elif fault := _mail_fault():
        remedy = "Look at WEIR_MAIL_HOST, _PORT, _TLS, _USER and _PASSWORD."
        yield _fault("mail", f"{settings.WEIR_MAIL_HOST} takes no mail: {fault}.", remedy)
    else:
        yield _good("mail", f"{settings.WEIR_MAIL_HOST} lets Weir in.")
    if dead := Letter.objects.filter(state=LetterState.DEAD).count():
        yield _note("mail", f"{dead} letters are dead.", "See Notices, Dead letters.")


def _mail_fault() -> str:
    try:
        link = mail.get_connection(timeout=MAIL_S)
        link.open()
        link.close()
    except (OSError, smtplib.SMTPException) as error:
        return str(error) or type(error).__name__
    return ""


def _streams() -> Iterator[Item]:
    for one in streams():
        topic = f"stream {one.name}"
        if one.fault:
            remedy = f"Look at WEIR_STREAM_{one.name.upper()} and at what listens there."
            yield _fault(topic, f"{one.where} takes nothing, {_waiting(one)}: {one.fault}", remedy)
        elif one.is_late:
            said = f"{_waiting(one)} for {one.where}, the oldest for {duration(one.lag_s)}."
            yield _fault(topic, said, "Start a worker: it sends them.")
        else:
            yield _good(topic, f"{one.where} has everything but {one.waiting}.")


def _waiting(one: StreamStanding) -> str:
    return counted(one.waiting, "record waits,records wait")


def _directory() -> Iterator[Item]:
    if settings.WEIR_LDAP is None:
        return
    try:
        with ldap.reading(settings.WEIR_LDAP) as reader:
            count = sum(1 for _ in reader.people())
    except ldap.AwayError as away:
        remedy = (
            "Look at the directory and at WEIR_LDAP_URL, _CA, _BIND_DN, _BIND_PASSWORD and _BASE."
        )
        yield _fault("directory", f"Nobody of it is let in: {away.why}.", remedy)
        return
    if count:
        yield _good(
            "directory", f"It answers, and {counted(count, 'person,people')} of it may sign in."
        )
    else:
        remedy = "Look at WEIR_LDAP_BASE, _FILTER, _NAME and _KEY."
        yield _fault("directory", "It answers, and nobody of it may sign in.", remedy)


def _people() -> Iterator[Item]:
    if needs_admin():
        yield _note("people", "Nobody administers Weir yet.", "python manage.py first-admin")


def _clusters() -> Iterator[Item]:
    """What several have alike is told once."""
    late = {one.pk for one in looks.late_clusters()}
    found: dict[tuple[Grade, str, str], list[str]] = {}
    for cluster in Cluster.objects.order_by("name"):
        for item in _cluster(cluster, is_late=cluster.pk in late):
            alike = found.setdefault((item.grade, item.sentence, item.remedy), [])
            alike.append(cluster.name)
    for (grade, sentence, remedy), names in found.items():
        yield Item(grade, _named(names), sentence, remedy)


def _named(clusters: list[str]) -> str:
    return f"{'cluster' if len(clusters) == 1 else 'clusters'} {few(clusters, MOST_NAMED)}"


def _cluster(cluster: Cluster, *, is_late: bool) -> Iterator[Item]:
    topic = f"cluster {cluster.name}"
    lacks = [item for item in checkup.check(cluster) if item.grade is Grade.MISSING]
    for item in lacks:
        yield _fault(topic, item.sentence, item.remedy)
    if is_late:
        at = cluster.planned_at
        said = f"It was planned last {at:%F %T}Z." if at else "It was never planned."
        yield _fault(topic, said, "Look at the engine's log.")
    if not lacks and not is_late:
        said = "is paused" if cluster.mode == ClusterMode.PAUSED else "is planned"
        yield _good(topic, f"It answers, grants what {cluster.mode} needs, and {said}.")


def examined() -> list[Item]:
    """As ``examine``; a database that goes away meanwhile is told."""
    found: list[Item] = []
    try:
        for item in examine():
            found.append(item)
    except DatabaseError as error:
        found.append(_fault("database", f"It went away: {error}.", "Try again."))
    return found
