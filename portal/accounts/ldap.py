"""The organisation's directory by LDAP: whether a password is somebody's, who is in it, and their groups.

Weir reads with an account of its own and binds as the person with the password that they typed. Nothing is
written, no referral is followed, and without TLS no password is sent unless the settings say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured, ValidationError

# ldap3 takes 0.1 s to import, for which commands that sign nobody in need not wait.
if TYPE_CHECKING:
    from ldap3 import Connection

PROVIDER_ID = "ldap"
"""Stands at connections with people of the directory, beside those with the provider."""
NEEDED = ("WEIR_LDAP_URL", "WEIR_LDAP_BIND_DN", "WEIR_LDAP_BIND_PASSWORD", "WEIR_LDAP_BASE")
TIMEOUT_S = 5
PAGE = 500
NOBODY = ("invalidCredentials", "unwillingToPerform", "insufficientAccessRights", "noSuchObject")
"""What a directory says where a password is wrong, has run out, or is of an entry that nobody signs in as."""


class AwayError(ValidationError):
    """The directory does not answer, or not to Weir. ``why`` is for the log, not for whoever signs in."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(
            "The directory does not answer, so no password of it can be checked. Try again; if it stays,"
            " tell an admin.",
            code="directory_away",
        )


@dataclass(frozen=True, slots=True)
class Directory:
    """docs/operations/run.md, "Signing in", says each."""

    servers: tuple[str, ...]
    bind_dn: str
    bind_password: str = field(repr=False)
    base: str
    filter: str
    name: str
    key: str
    groups_base: str
    member: str
    is_encrypted: bool
    ca: str


@dataclass(frozen=True, slots=True)
class LdapPerson:
    """A person of the directory. The ``key`` stays theirs when they get another name or place in it."""

    dn: str
    key: str
    name: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""


def configured(env: environ.Env) -> Directory | None:
    """None where no directory is set. Raises ImproperlyConfigured for half of one, or one that cannot be."""
    given = {name: env.str(name, default="") for name in NEEDED}
    if not any(given.values()):
        return None
    if missing := [name for name, value in given.items() if not value]:
        raise ImproperlyConfigured(
            f"{' and '.join(missing)} is missing: the directory's admin knows it."
        )
    urls, bind_dn, bind_password, base = given.values()
    made = Directory(
        servers=tuple(url.strip() for url in urls.split(",")),
        bind_dn=bind_dn,
        bind_password=bind_password,
        base=base,
        filter=env.str("WEIR_LDAP_FILTER", default="(objectClass=person)"),
        name=env.str("WEIR_LDAP_NAME", default="uid"),
        key=env.str("WEIR_LDAP_KEY", default="entryUUID"),
        groups_base=env.str("WEIR_LDAP_GROUPS_BASE", default=""),
        member=env.str("WEIR_LDAP_MEMBER", default="member"),
        is_encrypted=env.str("WEIR_LDAP_TLS", default="required") != "none",
        ca=env.str("WEIR_LDAP_CA", default=""),
    )
    if faults := list(_faults(made, env.str("WEIR_LDAP_TLS", default="required"))):
        raise ImproperlyConfigured(" ".join(faults))
    return made


def _faults(directory: Directory, tls: str) -> Iterator[str]:
    for url in directory.servers:
        if urlsplit(url).scheme not in ("ldap", "ldaps") or not urlsplit(url).hostname:
            yield f"WEIR_LDAP_URL: {url} is no ldaps://HOST or ldap://HOST."
    if tls not in ("required", "none"):
        yield f"WEIR_LDAP_TLS: write required or none, not {tls}."
    text = directory.filter
    if not (text.startswith("(") and text.endswith(")") and text.count("(") == text.count(")")):
        yield "WEIR_LDAP_FILTER: write a filter in brackets, such as (objectClass=person)."
    if directory.ca and not Path(directory.ca).is_file():
        yield f"WEIR_LDAP_CA: there is no file {directory.ca}."


def sign_in(
    directory: Directory, name: str, password: str
) -> tuple[LdapPerson, list[str] | None] | None:
    """Whose this name and password are, with their groups; None where nobody's. Raises AwayError.

    An empty password is nobody's: a directory lets anybody in with one, as nobody."""
    if not password:
        return None
    with reading(directory) as reader:
        entry = reader.person(name)
        if entry is None or not _is_theirs(directory, entry, password):
            return None
        return entry, reader.groups_of(entry)


@contextmanager
def reading(directory: Directory) -> Iterator[Reader]:
    """Raises AwayError, also where the connection ends meanwhile."""
    from ldap3.core.exceptions import LDAPException

    try:
        connection = _connected(directory, directory.bind_dn, directory.bind_password)
        try:
            if not connection.bind():
                raise AwayError(f"it refuses WEIR_LDAP_BIND_DN: {connection.result['description']}")
            yield Reader(directory, connection)
        finally:
            connection.unbind()
    except LDAPException as error:
        raise AwayError(f"{type(error).__name__}: {error}") from error


def _is_theirs(directory: Directory, entry: LdapPerson, password: str) -> bool:
    connection = _connected(directory, entry.dn, password)
    try:
        if connection.bind():
            return True
        if connection.result["description"] in NOBODY:
            return False
        raise AwayError(f"it answers {connection.result['description']} to a person's password")
    finally:
        connection.unbind()


def _connected(directory: Directory, dn: str, password: str) -> Connection:
    """To the first server that answers, over TLS before anything is said. Raises LDAPException."""
    from ldap3.core.exceptions import LDAPException, LDAPStartTLSError

    fault: LDAPException | None = None
    for url in directory.servers:
        connection = connection_to(directory, url, dn, password)
        try:
            connection.open()
            if directory.is_encrypted and not connection.server.ssl and not connection.start_tls():
                raise LDAPStartTLSError("it speaks no TLS")
        except LDAPException as error:
            fault = error
        else:
            return connection
    assert fault is not None  # noqa: S101 - there is a server at least
    raise fault


def connection_to(directory: Directory, url: str, dn: str, password: str) -> Connection:
    import ssl

    from ldap3 import NONE, Connection, Server, Tls

    where = urlsplit(url)
    tls = Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=directory.ca or None)
    server = Server(
        where.hostname, where.port, use_ssl=where.scheme == "ldaps", tls=tls, get_info=NONE,
        connect_timeout=TIMEOUT_S,
    )  # fmt: skip
    # A referral would have the password sent to hosts that nobody named.
    return Connection(server, dn, password, auto_referrals=False, receive_timeout=TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class Reader:
    directory: Directory
    connection: Connection

    def person(self, name: str) -> LdapPerson | None:
        """The one of this name; None where there is none, or several."""
        from ldap3.utils.conv import escape_filter_chars

        condition = f"({self.directory.name}={escape_filter_chars(name)})"
        found = list(self._people(f"(&{self.directory.filter}{condition})"))
        return found[0] if len(found) == 1 else None

    def people(self) -> Iterator[LdapPerson]:
        return self._people(self.directory.filter)

    def groups_of(self, entry: LdapPerson) -> list[str] | None:
        """Names of the groups below the groups' base, sorted; None where the settings name no base."""
        from ldap3.utils.conv import escape_filter_chars

        if not self.directory.groups_base:
            return None
        member = entry.name if self.directory.member == "memberUid" else entry.dn
        condition = f"({self.directory.member}={escape_filter_chars(member)})"
        found = self._pages(self.directory.groups_base, condition, ["cn"])
        return sorted({name for one in found if (name := _text(one["raw_attributes"], "cn"))})

    def _people(self, condition: str) -> Iterator[LdapPerson]:
        place = self.directory
        wanted = [place.name, place.key, "givenName", "sn", "mail"]
        for one in self._pages(place.base, condition, wanted):
            raw = one["raw_attributes"]
            key, name = _text(raw, place.key), _text(raw, place.name)
            if key and name:
                named = (_text(raw, kind) for kind in ("givenName", "sn", "mail"))
                yield LdapPerson(one["dn"], key, name, *named)

    def _pages(self, base: str, condition: str, attributes: list[str]) -> Iterator[dict[str, Any]]:
        """What was found so far counts for nothing where the rest does not come. Raises AwayError."""
        found: list[dict[str, Any]] = []
        cookie: bytes | None = None
        while cookie is None or cookie:
            self.connection.search(
                base, condition, attributes=attributes, paged_size=PAGE, paged_cookie=cookie,
                time_limit=TIMEOUT_S,
            )  # fmt: skip
            result = self.connection.result
            if result["description"] != "success":
                raise AwayError(f"it answers {result['description']} below {base}")
            found += [one for one in self.connection.response if one["type"] == "searchResEntry"]
            paged = result.get("controls", {}).get("1.2.840.113556.1.4.319", {})
            cookie = paged.get("value", {}).get("cookie") or b""
        yield from found


def _text(raw: dict[str, list[bytes]], kind: str) -> str:
    """The first value; one that is no text, as Active Directory's objectGUID, in hexadecimal digits."""
    value = next(iter(raw.get(kind) or ()), b"")
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value.hex()
    return text if text.isprintable() else value.hex()
