"""Attacks run on the embedded API server, and in `make test-cluster` on a real one."""

from __future__ import annotations

import pytest

from tests.scheduling.services.conftest import server, world
from tests.scheduling.services.guardrails.conftest import guarded, kubernetes, lab, writes
from tests.scheduling.services.guardrails.lab import Lab, Pass

from .people import Member, install_role

__all__ = ["guarded", "kubernetes", "lab", "server", "world", "writes"]


@pytest.fixture
def ann(lab: Lab, guarded: Pass) -> Member:
    """A member of the team that works in the lab's namespace, where every rule is in force."""
    install_role(lab.kube)
    guarded()
    member = Member(lab)
    member.wait_until_bound()
    return member
