"""``python -m scheduling.simulation``: compile the loop that lives ahead, before any study waits for it."""

from __future__ import annotations

from dataclasses import replace

from scheduling.engine.__main__ import ONE
from scheduling.simulation.loop.lives import live_submissions
from scheduling.simulation.run.jobs import Submission


def main() -> None:
    """One workload of one GPU, from its submission to its end."""
    live_submissions(replace(ONE, workloads=()), [Submission(ONE.workloads[0], 60)])


main()
