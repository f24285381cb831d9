"""GET …/pods/NAME/log: what a container wrote, as text. ``follow`` ends with what there is so far."""

from __future__ import annotations

from workshop.testbed.server.kinds import output
from workshop.testbed.server.kinds.clock import micro_stamp, parse_stamp
from workshop.testbed.server.kinds.errors import bad_request
from workshop.testbed.server.store.store import Record

from .messages import Reply, Request

MOST_LINES = 10_000


def log_of(pod: Record, request: Request, now: float) -> Reply:
    """Raises ApiError (400) for a container that is not there, not named or not started."""
    name = _container(pod, request.query.get("container", ""))
    found = output.lines(pod.body, name, now, _tail(request))
    if not found and not pod.body.get("status", {}).get("containerStatuses"):
        raise bad_request(
            f'container "{name}" in pod "{pod.name}" is waiting to start: ContainerCreating'
        )
    since = request.query.get("sinceTime")
    first = parse_stamp(since) if since else float("-inf")
    stamped = request.flag("timestamps")
    text = "".join(
        f"{micro_stamp(at)} {line}\n" if stamped else f"{line}\n"
        for at, line in found
        if at >= first
    )
    limit = request.query.get("limitBytes", "")
    body = text.encode()
    return Reply(200, body[: int(limit)] if limit.isdigit() else body, "text/plain")


def _tail(request: Request) -> int:
    said = request.query.get("tailLines", "")
    if said and not said.isdigit():
        raise bad_request(f'tailLines: Invalid value: "{said}": must be a number')
    return min(int(said), MOST_LINES) if said else MOST_LINES


def _container(pod: Record, named: str) -> str:
    names = [container["name"] for container in pod.body["spec"]["containers"]]
    if named and named not in names:
        raise bad_request(f"container {named} is not valid for pod {pod.name}")
    if not named and len(names) > 1:
        raise bad_request(
            f"a container name must be specified for pod {pod.name}, choose one of: [{' '.join(names)}]"
        )
    return named or names[0]
