"""How a fair share comes about, on a tree of

root 88 ready
└── research 48 (nominal 40)
    ├── vision    36 of 36, asks 48 -> 44
    ├── language  holds 3 of 4   lends 1
    ├── speech    holds 1 of 4   lends 3
    └── robotics  holds 0 of 4   lends 4
"""

import pytest

from portal.display.division import Division, parts
from scheduling.models import Queue, Share

G = 1000


def queue(pk, name, parent):
    return Queue(pk=pk, name=name, parent_id=parent, path=name, position=pk)


def share(of, fair, guaranteed, nominal, lent=0, **more):
    fields = {
        "fair_share": fair,
        "guaranteed": guaranteed,
        "nominal": nominal,
        "lent": lent,
        **more,
    }
    return Share(queue_id=of, **{name: value * G for name, value in fields.items()})


ROOT, RESEARCH, VISION = queue(1, "fra1", None), queue(2, "research", 1), queue(3, "vision", 2)
QUEUES = [
    ROOT,
    RESEARCH,
    VISION,
    queue(4, "language", 2),
    queue(5, "speech", 2),
    queue(6, "robotics", 2),
]
SHARES = [
    share(2, 48, 48, 48),
    share(3, 44, 36, 36, demand=48),
    share(4, 3, 3, 4, lent=1),
    share(5, 1, 1, 4, lent=3),
    share(6, 0, 0, 4, lent=4),
]


def made(shares=SHARES, visible=range(1, 7)):
    return Division.of(shares, QUEUES, 88 * G, visible)


def test_only_borrower_gets_its_loans_by_name():
    steps = made().steps(VISION)
    assert [(s.title, s.amount / G) for s in steps] == [
        ("Guaranteed", 36),
        ("Idle nominal of language", 1),
        ("Idle nominal of speech", 3),
        ("Idle nominal of robotics", 4),
        ("Spare above research", 0),
    ]
    assert steps[-1].end == 44 * G


@pytest.mark.parametrize("asks", [36, 40, 44])
def test_steps_always_end_at_the_fair_share(asks):
    shares = [share(2, 48, 48, 48), share(3, asks, 36, 36, demand=asks), *SHARES[2:]]
    assert made(shares).steps(VISION)[-1].end == asks * G


def test_lenders_that_one_may_not_see_stay_unnamed():
    steps = made(visible=[1, 2, 3]).steps(VISION)
    assert [s.title for s in steps] == [
        "Guaranteed",
        "Idle nominal of other queues",
        "Spare above research",
    ]
    assert steps[-1].end == 44 * G


def test_several_borrowers_share_one_pot():
    shares = [*SHARES[:2], share(4, 5, 4, 4), *SHARES[3:]]
    steps = made(shares).steps(VISION)
    assert [s.title for s in steps] == ["Guaranteed", "Spare of research"]
    assert steps[-1].end == 44 * G


def test_levels_lead_from_the_cluster_to_the_queue():
    rows = [
        (one.queue.name, one.to_divide / G, one.guaranteed / G, one.spare / G)
        for one in made().levels(VISION)
    ]
    assert rows == [("fra1", 88, 48, 40), ("research", 48, 40, 8), ("vision", 44, 36, 8)]


def test_what_is_kept_back_is_no_spare():
    shares = [*SHARES[:4], share(6, 0, 0, 4, kept_back=4)]
    level = made(shares).levels(VISION)[1]
    assert level.spare == 4 * G
    assert level.note == "its fair share, of which 4 are kept back"


def test_queue_without_division_gets_nothing():
    assert made([]).steps(VISION)[-1].end == 0


def test_parts_are_the_steps_of_the_engine_and_sum_to_the_share():
    step = {"n": 0.0, "u": 0.0, "w": 0.0, "tier": 0}
    shared = {"n": 0.25, "u": 0.1, "w": 0.4, "tier": 0}
    steps = [
        {"kind": "nominal", "gpus": 36, **step},
        {"kind": "lent", "gpus": -4, **step},
        {"kind": "spare", "gpus": 12.5, **shared},
    ]

    told = parts(Share(fair_share=44.5 * G, steps=steps))

    assert [(one.title, one.amount / G) for one in told] == [
        ("Nominal quota", 36),
        ("Idle, lent", -4),
        ("Spare", 12.5),
    ]
    assert told[-1].why == (
        "its weight is 25 % of those who still want, it used 10 % of the class: it pulls with 40 %"
    )
    assert sum(one.amount for one in told) == 44.5 * G
