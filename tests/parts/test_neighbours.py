"""What stands beside an installation: OpenLDAP, PgBouncer, a second database that reports read, TLS."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import environ
import psycopg
import pytest

from portal.accounts import ldap
from tests.parts.directory import RIGHT, Running, slapd
from tests.parts.running import ROOT
from tests.parts.test_whole import SECRET
from tests.portal.streams.receivers import certificate
from workshop.testbed.parts import PASSWORD, Postgres, free_port, postgres, unprivileged

pytestmark = pytest.mark.parts
PEOPLE = ["ada", *(f"person{number}" for number in range(600))]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with slapd(tmp_path_factory.mktemp("slapd"), PEOPLE, PEOPLE[::2]) as running:
        yield running


def told(server: Running, **more: str) -> ldap.Directory:
    env = environ.Env()
    env.ENVIRON = {**server.environment, **more}
    made = ldap.configured(env)
    assert made is not None
    return made


def test_password_of_openldap_is_right_or_wrong_over_tls(server: Running) -> None:
    found = ldap.sign_in(told(server), "ada", RIGHT)
    assert found is not None
    entry, groups = found

    assert (entry.name, entry.email, groups) == ("ada", "ada@example.org", ["gpu-users"])
    assert len(entry.key) == 36
    assert ldap.sign_in(told(server), "ada", "wrong") is None
    assert ldap.sign_in(told(server), "*", RIGHT) is None


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"WEIR_LDAP_CA": ""}, "CERTIFICATE_VERIFY_FAILED"),
        ({"WEIR_LDAP_TLS": "none"}, "confidentialityRequired"),
        ({"WEIR_LDAP_BIND_PASSWORD": "old"}, "WEIR_LDAP_BIND_DN: invalidCredentials"),
    ],
)
def test_openldap_that_weir_cannot_trust_or_enter_is_away(
    server: Running, more: dict[str, str], why: str
) -> None:
    with pytest.raises(ldap.AwayError) as refusal:
        ldap.sign_in(told(server, **more), "ada", RIGHT)
    assert why in refusal.value.why


def test_certificate_of_another_host_is_not_trusted(server: Running) -> None:
    other = replace(told(server), servers=(f"ldap://127.0.0.1:{server.port}",))
    with pytest.raises(ldap.AwayError):
        ldap.sign_in(other, "ada", RIGHT)


def test_authority_that_all_of_weir_trusts_vouches_for_the_directory_too(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", server.environment["WEIR_LDAP_CA"])

    assert ldap.sign_in(told(server, WEIR_LDAP_CA=""), "ada", RIGHT) is not None


def test_second_server_answers_where_the_first_is_away(server: Running) -> None:
    place = told(server)
    both = replace(place, servers=(f"ldap://localhost:{free_port()}", *place.servers))
    assert ldap.sign_in(both, "ada", RIGHT) is not None


def test_more_people_than_openldap_gives_at_once_are_all_read(server: Running) -> None:
    with ldap.reading(told(server)) as reader:
        assert sum(1 for _ in reader.people()) == len(PEOPLE)


LOOKED = """
import json
from django.test import Client
from portal.accounts.models import User
from scheduling.models import Cluster, Queue
from django.core.management import call_command
from django.db import connection
from scheduling.services import events
browser = Client()
browser.force_login(User.objects.get(username="boss"))
for number in range(600):
    events.announce("quota.saved", actor="boss", subject=f"thing {number}")
events.deliver_due()
call_command("audit", "verify")
pages = ("/c/here/", "/c/there/", "/c/here/reports/showback", "/c/there/reports/showback")
print(json.dumps([browser.get(page).status_code for page in pages]))
"""
MADE = """
from portal.accounts.models import User
from scheduling.models import Cluster, Queue
User.objects.create_superuser("boss", password=None)
Queue.objects.create(cluster=Cluster.objects.create(name="here"), name="all")
"""


def manage(environment: dict[str, str], *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *command], cwd=ROOT, check=False, capture_output=True, text=True,
        env={**environment, "PATH": "/usr/bin:/bin", "WEIR_SECRET_KEY": SECRET,
             "WEIR_ALLOWED_HOSTS": "testserver"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[tuple[Postgres, str]]:
    """A database, and its address through PgBouncer, which gives each transaction one of two connections."""
    found = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
    assert found, "pgbouncer is missing: docker/install-services.sh"
    with postgres(free_port()) as database:
        port = free_port()
        (tmp_path / "users").write_text(f'"weir" "{PASSWORD}"\n')
        (tmp_path / "pgbouncer.ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={database.port}\n[pgbouncer]\nlisten_addr=127.0.0.1\n"
            f"listen_port={port}\nauth_type=scram-sha-256\nauth_file={tmp_path}/users\n"
            "pool_mode=transaction\ndefault_pool_size=2\nunix_socket_dir=\n"
        )
        user = unprivileged()
        for path in (tmp_path, *tmp_path.iterdir()):
            shutil.chown(path, user)
        for path in takewhile(lambda one: one != Path(tempfile.gettempdir()), tmp_path.parents):
            path.chmod(0o755)
        command = [found, "-q", str(tmp_path / "pgbouncer.ini")]
        process = subprocess.Popen(command, user=user, stdout=subprocess.DEVNULL)
        try:
            yield database, f"postgres://weir:{PASSWORD}@127.0.0.1:{port}/weir"
        finally:
            process.terminate()
            process.wait()


def test_portal_works_through_pgbouncer_and_reads_reports_from_the_replica(
    pooled: tuple[Postgres, str],
) -> None:
    """What stands for the replica calls the cluster otherwise, so who reads there sees that name alone."""
    database, address = pooled
    _wait(address)
    environment = {"DATABASE_URL": address, "WEIR_DATABASE_POOLER": "true"}
    manage(environment, "migrate", "--verbosity", "0")
    manage(environment, "shell", "-c", MADE)
    with psycopg.connect(database.url, autocommit=True) as link:
        link.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = 'weir' AND pid <> pg_backend_pid()"
        )
        link.execute("CREATE DATABASE there TEMPLATE weir")
    there = database.url.removesuffix("weir") + "there"
    with psycopg.connect(there, autocommit=True) as link:
        link.execute("UPDATE scheduling_cluster SET name = 'there'")

    said = manage({**environment, "WEIR_REPLICA_URL": there}, "shell", "-c", LOOKED)

    assert json.loads(said.splitlines()[-1]) == [200, 404, 404, 200]


LOOKED_OVER_TLS = """
import json
from django.core.cache import cache
from scheduling.services.worker import looks
def cached():
    try:
        cache.set("asked", 1)
    except Exception as error:
        return type(error).__name__
    return cache.get("asked")
print(json.dumps([looks.broker().fault, cached(), *(look().fault for look in {looks})]))
"""


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """Addresses of PostgreSQL and Redis that speak TLS as localhost, and the file of who vouches for them."""
    _, crt = certificate(tmp_path)
    key = tmp_path / "server.key"
    with postgres(free_port()) as database:
        held = shutil.copy(key, database.folder / "server.key")
        if os.geteuid() == 0:
            shutil.chown(held, unprivileged())
        Path(held).chmod(0o600)
        shutil.copy(crt, database.folder / "server.crt")
        with psycopg.connect(database.url, autocommit=True) as link:
            for name in ("cert", "key"):
                there = database.folder / f"server.{name.replace('cert', 'crt')}"
                link.execute(f"ALTER SYSTEM SET ssl_{name}_file = '{there}'")
            link.execute("ALTER SYSTEM SET ssl = on")
            link.execute("SELECT pg_reload_conf()")
        port = free_port()
        files = ["--tls-cert-file", crt, "--tls-key-file", key, "--tls-auth-clients", "no"]
        served = subprocess.Popen(
            ["redis-server", "--port", "0", "--tls-port", str(port), "--save", "", *map(str, files)],
            cwd=tmp_path, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        named = database.url.replace("127.0.0.1", "localhost")
        try:
            yield {
                "DATABASE_URL": f"{named}?sslmode=verify-full&sslrootcert=system",
                "WEIR_BROKER_URL": f"rediss://localhost:{port}/0",
            }, crt  # fmt: skip
        finally:
            served.terminate()
            served.wait()


def test_database_broker_and_cache_over_tls_are_trusted_by_ones_own_authority_alone(
    encrypted: tuple[dict[str, str], Path],
) -> None:
    addresses, crt = encrypted

    def look(*looks: str, **more: str) -> list[object]:
        asked = LOOKED_OVER_TLS.replace("{looks}", f"[{', '.join(looks)}]")
        said = manage({**addresses, **more}, "shell", "-c", asked)
        return json.loads(said.splitlines()[-1])

    assert look("looks.database", SSL_CERT_FILE=str(crt)) == ["", 1, ""]
    assert look() == ["does not answer (OperationalError)", "ConnectionError"]


def _wait(address: str) -> None:
    until = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(address, connect_timeout=2).close()
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return
