"""What submit says of a quota.

class h100: queue (nominal 12, limit 24) below language (nominal 36, limit 64)
"""

import pytest

from portal.web.workloads.fits import Gang, Room, judge
from scheduling.models import MILLI, Node, Queue, Share

NODES = [Node(gpus=8 * MILLI, ready=True)]


def share(name, *, held, pending=0, nominal=12, limit=24, potential=20):
    return Share(
        queue=Queue(name=name, path=name),
        allocated=held * MILLI,
        pending=pending * MILLI,
        nominal=nominal * MILLI,
        limit=None if limit is None else limit * MILLI,
        potential=potential * MILLI,
    )


def verdict(gang, *, above=40, nodes=NODES, **leaf):
    rows = [share("language", held=above, nominal=36, limit=64), share("alignment", **leaf)]
    return judge(gang, Room(rows), nodes)


def gang(gpus=4, low=1, high=None, **more):
    return Gang(gpus * MILLI, low, high or low, **more)


@pytest.mark.parametrize(
    ("asked", "leaf", "tone", "head"),
    [
        (gang(4, 1), {"held": 4}, "ok", "4 fit"),
        (gang(1, 1), {"held": 4}, "ok", "1 fits"),
        (gang(4, 1, 2), {"held": 12, "pending": 8}, "warn", "4 fit now, 8 do not"),
        (gang(8, 1), {"held": 20}, "warn", "Waits for room below the limit"),
        (gang(8, 4), {"held": 0}, "err", "Never fits"),
        (gang(16, 1), {"held": 0}, "err", "Never fits"),
        (gang(8, 2), {"held": 0, "limit": None}, "ok", "16 fit"),
        (gang(4, 1), {"held": 4, "above": 64}, "warn", "Waits for room below the limit"),
        (gang(8, 2, preemptible=False), {"held": 0}, "err", "Never fits"),
    ],
)
def test_verdict(asked, leaf, tone, head):
    said = verdict(asked, **leaf)
    assert (said.tone, said.head) == (tone, head)


def test_limit_that_binds_is_named_with_its_sum():
    said = verdict(gang(4, 1, 2), held=12, pending=8)
    assert "Limit 24 of alignment: 12 held and 8 pending leave 4." in said.text


def test_limit_of_an_ancestor_binds_as_well():
    assert "language" in verdict(gang(4, 1), held=0, above=64).text


@pytest.mark.parametrize(
    ("held", "says"),
    [(4, "guaranteed"), (12, "potential share of 20"), (18, "may be reclaimed")],
)
def test_how_safe_the_gpus_are_is_said(held, says):
    assert says in verdict(gang(4, 1), held=held).text


def test_class_without_a_division_is_not_judged():
    assert judge(gang(), None, NODES).head == "Not planned yet"


def test_class_without_a_large_node_never_fits():
    assert "No node has more than 8" in judge(gang(16), None, NODES).text
