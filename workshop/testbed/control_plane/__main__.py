"""`python -m workshop.testbed.control_plane build|up|down|status FOLDER`: a control plane by hand."""

from __future__ import annotations

import sys
from pathlib import Path

from workshop.arguments import OneLineParser
from workshop.testbed.control_plane.plane import ControlPlane, NotReadyError, forget

from . import access
from .binaries import NoBinariesError, find
from .furniture import furnish
from .processes import ProcessDiedError


def main() -> int:
    """Do what the command line says; 1 if it cannot be done."""
    parser = OneLineParser(prog="python -m workshop.testbed.control_plane")
    parser.add_argument("verb", choices=("build", "up", "down", "status"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path("var/cluster"))
    arguments = parser.parse_args()
    verbs = {"build": _programs, "up": _up, "down": _down, "status": _status}
    try:
        return verbs[arguments.verb](arguments.folder)
    except (NoBinariesError, NotReadyError, ProcessDiedError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _programs(_: Path) -> int:
    """Those that ``up`` starts: what waits for a control plane then waits for its processes alone."""
    find(_say)
    return 0


def _up(folder: Path) -> int:
    present = access.read(folder)
    if present is not None and present.is_answered:
        _say(f"The cluster in {folder} is up already.")
        _announce(present)
        return 0
    plane = ControlPlane(folder, find(_say)).start()
    furnish(plane.access)
    _say("Kubernetes is up, with simulated nodes.")
    _announce(plane.access)
    return 0


def _down(folder: Path) -> int:
    ended = forget(folder)
    _say(f"Ended {', '.join(ended)}." if ended else f"Nothing runs in {folder}.")
    return 0


def _status(folder: Path) -> int:
    present = access.read(folder)
    if present is None or not present.is_answered:
        _say(f"Nothing runs in {folder}.")
        return 1
    _announce(present)
    return 0


def _announce(present: access.Access) -> None:
    _say(f"  API server  {present.url}\n  kubectl     --kubeconfig {present.kubeconfig}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
