"""The caller: bearer tokens, impersonation, and no browsers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workshop.testbed.server.kinds.errors import ApiError, invalid_options, unsupported
from workshop.testbed.server.store.context import Caller

from .messages import Request


@dataclass(frozen=True, slots=True)
class User:
    """Somebody a token stands for."""

    name: str
    groups: tuple[str, ...] = ()


ANYBODY = User("system:admin", ("system:masters", "system:authenticated"))
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def identify(request: Request, tokens: Mapping[str, User] | None) -> Caller:
    """Return who asks and how the request wants its write to be taken.

    Without `tokens` everybody on this machine is an administrator. A web page must not be able
    to write here through somebody's browser: requests with an Origin or a foreign Host are
    refused.

    Raises ApiError: 401 for an unknown token, 403 for a browser, 422 for bad options.
    """
    _refuse_browsers(request)
    user = _user(request, tokens)
    name, groups, by = user.name, user.groups, ""
    if impersonated := request.headers.get("impersonate-user"):
        groups = tuple(filter(None, request.headers.get("impersonate-group", "").split(",")))
        name, by = impersonated, user.name
    dry_run = request.query.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise invalid_options("Options", unsupported("dryRun", dry_run, ("All",)))
    manager = request.query.get("fieldManager") or _agent(request)
    return Caller(name, groups, by, manager, dry_run == "All", request.flag("force"))


def _user(request: Request, tokens: Mapping[str, User] | None) -> User:
    if tokens is None:
        return ANYBODY
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    user = tokens.get(token.strip()) if scheme.lower() == "bearer" else None
    if user is None:
        raise ApiError(401, "Unauthorized", "Unauthorized")
    return user


def _agent(request: Request) -> str:
    """Return the default field manager: the program's name in the User-Agent."""
    agent = request.headers.get("user-agent", "")
    return agent.split("/", 1)[0].split(" ", 1)[0][:128] or "unknown"


def _refuse_browsers(request: Request) -> None:
    host = request.headers.get("host", "localhost")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name not in _LOOPBACK or "origin" in request.headers:
        message = "this server answers programs on this machine only, under a loopback address"
        raise ApiError(403, "Forbidden", message)
