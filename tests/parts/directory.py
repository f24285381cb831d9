"""An LDAP server on loopback: OpenLDAP's slapd over TLS, with people and a group, of a folder of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.portal.streams.receivers import certificate
from workshop.testbed.parts import free_port

BASE, READER, SECRET, RIGHT = (
    "dc=example,dc=org",
    "cn=weir,dc=example,dc=org",
    "reads",
    "correct horse",
)
SCHEMAS = ("core", "cosine", "inetorgperson")


@dataclass(frozen=True)
class Running:
    port: int
    ca: Path

    @property
    def environment(self) -> dict[str, str]:
        """What Weir is told of it."""
        return {
            "WEIR_LDAP_URL": f"ldap://localhost:{self.port}",
            "WEIR_LDAP_BIND_DN": READER,
            "WEIR_LDAP_BIND_PASSWORD": SECRET,
            "WEIR_LDAP_BASE": f"ou=people,{BASE}",
            "WEIR_LDAP_GROUPS_BASE": f"ou=groups,{BASE}",
            "WEIR_LDAP_CA": str(self.ca),
        }


@contextmanager
def slapd(folder: Path, people: Sequence[str], group: Sequence[str]) -> Iterator[Running]:
    """Serves ``people``, those in ``group`` in the group ``gpu-users``, until the end of the block. It takes
    no password without TLS and gives no more than 500 entries at once, as many do."""
    _, ca = certificate(folder)
    (folder / "db").mkdir()
    (folder / "slapd.conf").write_text(_configuration(folder))
    (folder / "people.ldif").write_text("\n".join(_entries(people, group)))
    add = [_program("slapadd"), "-q", "-f", folder / "slapd.conf", "-l", folder / "people.ldif"]
    subprocess.run(add, check=True, capture_output=True)
    port = free_port()
    serve = [
        _program("slapd"),
        "-f",
        folder / "slapd.conf",
        "-h",
        f"ldap://localhost:{port}",
        "-d",
        "0",
    ]
    process = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(port, process)
        yield Running(port, ca)
    finally:
        process.terminate()
        process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        assert process.poll() is None, "slapd ended"
        try:
            socket.create_connection(("localhost", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("slapd does not listen")


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    assert found, f"{name} is missing: docker/install-services.sh"
    return found


def _configuration(folder: Path) -> str:
    schemas = "".join(f"include /etc/ldap/schema/{name}.schema\n" for name in SCHEMAS)
    return f"""{schemas}modulepath /usr/lib/ldap
moduleload back_mdb
TLSCertificateFile {folder}/server.crt
TLSCertificateKeyFile {folder}/server.key
security simple_bind=128
sizelimit 500
database mdb
suffix {BASE}
rootdn {READER}
rootpw {SECRET}
directory {folder}/db
"""


def _entries(people: Sequence[str], group: Sequence[str]) -> Iterator[str]:
    yield f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\no: x\ndc: example\n"
    for unit in ("people", "groups"):
        yield f"dn: ou={unit},{BASE}\nobjectClass: organizationalUnit\nou: {unit}\n"
    for name in people:
        named = f"uid: {name}\ncn: {name}\nsn: Lovelace\ngivenName: Ada\nmail: {name}@example.org"
        yield f"dn: {_dn(name)}\nobjectClass: inetOrgPerson\n{named}\nuserPassword: {RIGHT}\n"
    members = "".join(f"member: {_dn(name)}\n" for name in group)
    yield f"dn: cn=gpu-users,ou=groups,{BASE}\nobjectClass: groupOfNames\ncn: gpu-users\n{members}"


def _dn(name: str) -> str:
    return f"uid={name},ou=people,{BASE}"
