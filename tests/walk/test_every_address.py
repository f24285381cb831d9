"""Each address is walked once: by everybody, with what its row names and with what is out of sight; every
answer is held to every checker.

By day who leads a team and who leads its department ask for everything that an address takes; at night
everybody does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from portal.reports.kinds import REPORTS
from tests.portal.test_permission_matrix import ADDRESSES, ANYBODY, OPEN, ROWS
from tests.security.sealed import SEALED_FROM
from tests.security.test_sealed_names import ADDRESSES as SEALED
from tests.security.test_sealed_names import tried, variants
from tests.walk.asking import Answer, ask
from tests.walk.checkers import IN, NO_METHOD, OUT, SIGN_IN, faults
from tests.walk.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.long]
NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
CURIOUS = tuple(SEALED_FROM) if NIGHTLY else ("chief", "lead")
"""Those who see most of whom something is sealed from."""
ENDINGS = tuple(
    (area, ending)
    for area, ending in (("reports", ""), ("reports", "_csv"), ("reports", "_json"), ("api", ""))
)
TURN = {f"{a}:{kind}{e}": turn for kind in REPORTS for turn, (a, e) in enumerate(ENDINGS)}
"""Forms of one report read the same figures: a query goes to one of them, by turns; at night to each."""


def by_row(world: World, name: str) -> Iterator[Answer]:
    """Everybody reads and writes."""
    url, row = world.url(name), ROWS[name]
    for method in ("GET", "POST", "PUT", "DELETE"):
        yield ask(world, "anonymous", method, name, url, expected=SIGN_IN)
    for who in sorted(ANYBODY):
        for method, allowed in (("GET", row.read), (row.by, row.write)):
            may = NO_METHOD if allowed is None else IN if who in allowed else OUT
            answer = ask(world, who, method, name, url, expected=may)
            if may == OUT and answer.status == 400:
                twin = ask(world, who, method, name, world.url(name, absent=True))
                answer = replace(answer, twin=twin.status)
            yield answer


def curious(world: World, name: str) -> Iterator[Answer]:
    """Those from whom something is sealed ask for everything, and try names."""
    row, url = SEALED[name], world.url(name)
    others = list(world.others(name))
    for who in CURIOUS if name in ROWS else {"anonymous", *CURIOUS}:
        walked = name in ROWS and who in ANYBODY
        for headers in variants(name, who)[walked:]:
            yield ask(world, who, "GET", name, url, **headers)
        for other in (*others, *asked(name, url)):
            yield ask(world, who, "GET", name, other)
        for other in (url, *others) if who == "chief" or NIGHTLY else (url,)[walked:]:
            yield ask(world, who, row.by, name, other)
        for probe in row.probes:
            yield ask(world, who, row.by, name, url, tried(probe, row.tries))


def asked(name: str, url: str) -> Sequence[str]:
    """The address with each of its queries."""
    queries = SEALED[name].queries
    if name in TURN and not NIGHTLY:
        queries = queries[TURN[name] :: len(ENDINGS)]
    return [url.partition("?")[0] + query for query in queries]


def shown(world: World, name: str) -> Iterator[Answer]:
    """What is sealed from others, to whom everything is shown."""
    url = world.url(name)
    for other in (
        url,
        *(url.partition("?")[0] + q for q in SEALED[name].queries),
        *world.others(name),
    ):
        yield ask(world, "admin", "GET", name, other)


@pytest.mark.parametrize("name", ADDRESSES)
def test_every_answer_of_the_address_is_right(world, name):
    walked = (*(by_row(world, name) if name in ROWS else ()), *curious(world, name))
    found = [fault for answer in walked for fault in faults(answer)]
    assert not found, f"{len(found)} of {len(walked)} answers:\n" + "\n".join(found[:40])


@pytest.mark.parametrize("name", [name for name, row in SEALED.items() if row.shows])
def test_what_is_sealed_stands_there_for_whom_it_is_not(world, name):
    """Or the walk could not fail."""
    missing = {b"zebra", b"quokka"}
    for answer in shown(world, name):
        missing -= {mark for mark in missing if mark in answer.body}
        if not missing:
            return
    assert not missing


def test_every_address_is_walked():
    assert set(ADDRESSES) == set(SEALED) == set(ROWS) | OPEN


def test_every_argument_has_something_to_stand_for_it(world):
    arguments = {argument for given in ADDRESSES.values() for argument in given}
    assert arguments - {"pk", "name"} <= set(world.objects)
    assert {row.args["pk"] for row in ROWS.values() if "pk" in row.args} == set(world.keys)
