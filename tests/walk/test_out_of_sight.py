"""What is out of sight is answered as what does not exist, word for word."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from django.urls import reverse

from tests.portal.test_permission_matrix import ADDRESSES as CONF
from tests.security.test_sealed_names import ADDRESSES, tried
from tests.walk.asking import ask
from tests.walk.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.long]
NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"

VOLATILE = re.compile(
    rb'csrf\w*["&;:=\s]+(?:value=)?["&;quot]*\w{64}|X-CSRFToken\W+(?:quot;)?\w{64}'
    rb'|data-planned-age="[^"]*"|"(?:token|created_at|id|expires_at)": ?[^,}]*|weir_\w+'
    rb"|>\d+ (?:s|min|h|d)(?: \d+ (?:s|min|h))?<"
    rb"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\"<]*|\d\d:\d\d:\d\d [A-Z]+"
)
"""What differs from one answer to the same question to the next."""


def answer(world: World, who: str, method: str, url: str, given: str, payload: Any = None) -> Any:
    """Status, target and body without ``given``, the name that was tried."""
    came = ask(world, who, method, "", url, payload)
    said = [came.headers.get("Location", "").encode(), came.body]
    return came.status, *(VOLATILE.sub(b"", t).replace(given.encode(), b"NAME") for t in said)


def askers(name: str) -> tuple[str, ...]:
    """Who leads nlp, and by turns somebody of it and somebody of nowhere; at night all of them."""
    others = ("outsider", "researcher")
    return ("chief", *(others if NIGHTLY else (others[[*ADDRESSES].index(name) % 2],)))


@pytest.mark.parametrize("name", [name for name, row in ADDRESSES.items() if row.probes])
def test_name_that_is_taken_out_of_sight_is_answered_as_one_that_is_not(world, name):
    url, row = world.url(name).partition("?")[0], ADDRESSES[name]
    for who in set(askers(name)) - row.by_name:
        for probe in row.probes:
            hidden, absent = (
                answer(world, who, row.by, url, given, tried(probe, given))
                for given in (row.tries, "nobody-place")
            )
            assert hidden == absent, (who, url, probe)


OUT_OF_SIGHT = {
    "uid": "uid-vision",
    "queue": "zebra-vision",
    "name": "zebra-vision",
    "team": "zebra-team",
    "username": "zebra-user",
}
"""Argument of an address -> what is not there for people of nlp."""
TEAMS_BY_NAME = {"api:team", "api:team_member"}


@pytest.mark.parametrize("name", [n for n, given in CONF.items() if set(OUT_OF_SIGHT) & given])
def test_object_out_of_sight_is_answered_as_one_that_is_not(world, name):
    argument = next(a for a in OUT_OF_SIGHT if a in CONF[name])
    others = {key: one for key, (one, *_) in world.known(name).items()}
    hidden_name = "zebra-team" if name in TEAMS_BY_NAME else OUT_OF_SIGHT[argument]
    for who in askers(name):
        for method in sorted({"GET", "POST", ADDRESSES[name].by}):
            hidden, absent = (
                answer(world, who, method, reverse(name, kwargs={**others, argument: given}), given)
                for given in (hidden_name, "nobody-place")
            )
            assert hidden == absent, (who, method)
