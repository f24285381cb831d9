"""Whose word counts for where a request comes from: a trusted proxy's, nobody else's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponseBase

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
SAID_BY_PROXIES = (
    "HTTP_FORWARDED",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_FORWARDED_PORT",
    "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_REAL_IP",
)


def networks(words: Iterable[str]) -> tuple[Network, ...]:
    """Networks and single addresses. Raises ImproperlyConfigured at a word that is neither."""
    found: list[Network] = []
    for word in words:
        try:
            found.append(ip_network(word.strip()))
        except ValueError as error:
            raise ImproperlyConfigured(
                f"WEIR_TRUSTED_PROXIES: {error}. Write addresses or networks such as 10.0.0.0/8."
            ) from None
    return tuple(found)


def client_address(peer: str, forwarded_for: str, trusted: Iterable[Network]) -> str:
    """The sender of the request: the first address, from the peer outwards, that no trusted proxy has.

    ``forwarded_for`` is read from the right, because each proxy adds whom it saw at that end and a
    client writes what it likes at the other. An entry that is no address ends the reading at the
    proxy that let it through. Empty where the peer has no address (a socket of the file system).
    """
    known = tuple(trusted)
    address = _address(peer)
    hops = forwarded_for.split(",")
    while address is not None and hops and any(address in network for network in known):
        hop = _address(hops.pop())
        if hop is None:
            break
        address = hop
    return "" if address is None else str(address)


def _address(word: str) -> Address | None:
    """The address in ``word``, which may carry a port; IPv4 mapped into IPv6 is IPv4."""
    text = word.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


class ProxyMiddleware:
    """Puts the client's address into REMOTE_ADDR and drops what only a trusted proxy may say.

    It comes first, so that whatever asks later (sign-in, throttles, the scheme) cannot be lied to.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        meta, trusted = request.META, settings.WEIR_TRUSTED_PROXIES
        peer = _address(meta.get("REMOTE_ADDR", ""))
        forwarded_for = meta.pop("HTTP_X_FORWARDED_FOR", "")
        if peer is None or not any(peer in network for network in trusted):
            for name in SAID_BY_PROXIES:
                meta.pop(name, None)
        else:
            meta["REMOTE_ADDR"] = client_address(str(peer), forwarded_for, trusted)
        return self.get_response(request)
