"""Where a stream goes, as the settings name it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from portal.boundary.outgoing import OutgoingError

PORTS = {
    "syslog+udp": 514, "syslog+tcp": 601, "syslog+tls": 6514, "http": 80, "https": 443, "stdout": 0,
}  # fmt: skip
"""Scheme -> the port where none is named."""
EXAMPLES = (
    "stdout:, syslog+udp://HOST, syslog+tcp://HOST, syslog+tls://HOST:PORT or https://HOST/PATH"
)


class TargetError(OutgoingError):
    """The setting names no target; the remedy is part of its words."""


@dataclass(frozen=True, slots=True)
class Target:
    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def where(self) -> str:
        """Safe to show: the path of a webhook may be what lets one write there."""
        if self.scheme == "stdout":
            return "stdout"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def target_named(address: str) -> Target:
    """Raises TargetError."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise TargetError(f"It is no address: write {EXAMPLES}.") from None
    if parts.scheme not in PORTS:
        raise TargetError(f"It begins with no way that there is: write {EXAMPLES}.")
    if parts.scheme == "stdout":
        return Target("stdout")
    _check(parts, port)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    web = parts.scheme in ("http", "https")
    return Target(
        parts.scheme, parts.hostname or "", port or PORTS[parts.scheme], path if web else ""
    )


def _check(parts: SplitResult, port: int | None) -> None:
    if not parts.hostname or port == 0:
        raise TargetError(f"It names no host, or a port that is none: write {EXAMPLES}.")
    if parts.username is not None or parts.password is not None:
        raise TargetError("It holds a user name: write it into WEIR_STREAM_AUTHORIZATION.")


def configured() -> dict[str, str]:
    """Stream -> the address that the settings name for it."""
    return {name: address for name, address in settings.WEIR_STREAMS.items() if address}
