"""How commands read a snapshot file, and what they say of a broken one."""

from __future__ import annotations

from scheduling.engine import document, run_plainly
from scheduling.engine.model import Snapshot, SnapshotError
from scheduling.files import BrokenFileError, Fault, lines_of, read, read_text
from scheduling.management.command import MOST_FAULTS, WeirCommand

SMALL = 100
"""Workloads and nodes that are planned in less time than it takes to load machine code."""


def read_snapshot(command: WeirCommand, name: str) -> Snapshot:
    """The snapshot in file ``name`` (``-``: standard input). Broken input ends the process with code 2
    and one line per fault: ``file:line: path: found X, expected Y; what to do``."""
    try:
        text = read_text(name)
        snapshot = document.parse(read(text, name))
    except BrokenFileError as error:
        command.refuse(map(str, error.faults))
    except SnapshotError as error:
        at = lines_of(text, [fault.path for fault in error.faults[:MOST_FAULTS]])
        command.refuse(
            str(Fault(name, at.get(path, 0), path, *rest)) for path, *rest in error.faults
        )
    if len(snapshot.workloads) + len(snapshot.nodes) <= SMALL:
        run_plainly()
    return snapshot
