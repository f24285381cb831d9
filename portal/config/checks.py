"""Settings with which the portal does not start; `manage.py check` names them by stable ids."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured

from portal.accounts.capabilities import EVERYBODY, Capability
from portal.config.secret import weakness
from portal.streams.targets import TargetError, configured, target_named


@register(Tags.security)
def secret_key_is_strong(**kwargs: Any) -> list[CheckMessage]:
    fault = weakness(settings.SECRET_KEY)
    if not fault:
        return []
    hint = "Make one: python -c 'import secrets; print(secrets.token_urlsafe(50))'"
    return [Error(f"WEIR_SECRET_KEY {fault}.", hint=hint, id="weir.E001")]


@register(Tags.security)
def demo_is_not_in_production(**kwargs: Any) -> list[CheckMessage]:
    """The demo's three people have a password that everybody knows."""
    if settings.DEMO and settings.TLS:
        return [
            Error(
                "WEIR_DEMO is on where people sign in over TLS.",
                hint="Leave WEIR_DEMO out: `make demo` sets it for itself, on loopback.",
                id="weir.E002",
            )
        ]
    return []


@register(Tags.security, deploy=True)
def demo_is_not_deployed(**kwargs: Any) -> list[CheckMessage]:
    if settings.DEMO and not settings.TLS:
        return [Error("WEIR_DEMO is on.", hint="Leave it out in production.", id="weir.E003")]
    return []


@register(Tags.security)
def second_factor_is_asked_of_somebody(**kwargs: Any) -> list[CheckMessage]:
    """A capability that there is not would ask nobody, and nobody would notice."""
    known = (EVERYBODY, *Capability)
    unknown = [name for name in settings.WEIR_SECOND_FACTOR if name not in known]
    if not unknown:
        return []
    said = f"WEIR_SECOND_FACTOR names {', '.join(unknown)}, which there is not."
    return [Error(said, hint=f"Write some of: {', '.join(known)}.", id="weir.E004")]


@register(Tags.security)
def streams_have_targets(**kwargs: Any) -> list[CheckMessage]:
    """A name that is mistyped would lose nothing and send nothing, and nobody would notice."""
    found: list[CheckMessage] = []
    for name, address in configured().items():
        try:
            target_named(address)
        except TargetError as error:
            hint = "docs/operations/run.md, Streams out, has the ways."
            found.append(Error(f"WEIR_STREAM_{name.upper()}: {error}", hint=hint, id="weir.E005"))
    return found


def refuse_to_start() -> None:
    """Called by what serves. Raises ImproperlyConfigured with each fault and its remedy."""
    faults = [
        *secret_key_is_strong(),
        *demo_is_not_in_production(),
        *second_factor_is_asked_of_somebody(),
        *streams_have_targets(),
    ]
    if faults:
        raise ImproperlyConfigured(
            " ".join(f"{fault.id}: {fault.msg} {fault.hint}" for fault in faults)
        )
