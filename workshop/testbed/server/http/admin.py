"""The private side door under /_weir: faults, audit, clock. Nothing of it is Kubernetes."""

from __future__ import annotations

from workshop.testbed.server.kinds.errors import bad_request, method_not_allowed, unknown_path
from workshop.testbed.server.kinds.faults import Faults
from workshop.testbed.server.store.context import World

from .messages import Reply, Request, read_body, reply


def administer(world: World, faults: Faults, request: Request) -> Reply:
    """Return the answer of the side door.

    Raises ApiError: 400 for unknown rules, 404 and 405 for what is not there.
    """
    match request.path.rstrip("/"), request.method:
        case "/_weir/faults", "GET":
            return reply(faults.describe())
        case "/_weir/faults", "POST":
            return _configure(faults, request)
        case "/_weir/faults", "DELETE":
            faults.clear()
            return reply(faults.describe())
        case "/_weir/audit", "GET":
            return reply({"items": list(world.audit)})
        case "/_weir/clock", "GET":
            return reply({"now": world.clock.stamp(), "speed": world.clock.speed})
        case (("/_weir/faults" | "/_weir/audit" | "/_weir/clock"), _):
            raise method_not_allowed()
    raise unknown_path()


def _configure(faults: Faults, request: Request) -> Reply:
    try:
        faults.configure(**read_body(request))
    except (ValueError, TypeError) as error:
        raise bad_request(str(error)) from error
    return reply(faults.describe())
