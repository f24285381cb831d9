"""Which names people and programs may get.

Own work is found by the name that stands on it, here and at the API server, where rights are bound to names
too. So a name under which work stands, or that a cluster or a provider gives itself, is not handed out.
"""

from __future__ import annotations

import re

from portal.accounts.models import User
from portal.accounts.provider import PROGRAMS
from portal.teams.access import is_admin
from scheduling.models import Workload
from scheduling.services.errors import ServiceError

OF_A_CLUSTER = re.compile(
    r"(system|kube|kubernetes|weir|cluster|docker)([-.:_].*)?|(super)?(admin|root|user)"
)
"""Names that installers of Kubernetes and its parts bind rights to, Weir's own among them."""


def check_person(name: str, by: User) -> None:
    """That ``by`` may give ``name`` to a person; an admin vouches that it is theirs. Raises ServiceError."""
    if name.startswith(PROGRAMS):
        raise _reserved(f"Names that begin with {PROGRAMS} are those of programs.")
    if is_admin(by):
        return
    if OF_A_CLUSTER.fullmatch(name):
        raise _reserved("Clusters give rights to this name.")
    if "@" in name:
        raise _reserved("An address is the name that a provider gives.")
    if _has_work(name):
        raise _reserved("Work stands under this name.")


def check_program(name: str) -> None:
    """That no earlier service account left work under ``name`` (with its prefix). Raises ServiceError."""
    if _has_work(name):
        raise ServiceError(
            "name_taken",
            "Work of an earlier service account stands under this name.",
            "Choose another name.",
            field="name",
        )


def _has_work(name: str) -> bool:
    """The one thing that is found by a name alone: requests, tokens and memberships go with the account."""
    return Workload.objects.filter(user__iexact=name).exists()


def _reserved(why: str) -> ServiceError:
    return ServiceError(
        "bad_name",
        why,
        "Choose another name, or ask somebody who administers the installation.",
        field="username",
    )
