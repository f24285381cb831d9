"""What is said on objects that wait, and how seldom."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduling.cluster.adapters import ADAPTERS, Sighting
from scheduling.cluster.enforcement.enforcer import Act
from scheduling.cluster.vocabulary import labels
from scheduling.engine import Waits
from scheduling.engine import model as m
from scheduling.services.cycle.enforce import status as words
from scheduling.services.cycle.enforce.status import LastStatus, is_news, say, status_acts, words_of

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
JOB = {a.kind: a for a in ADAPTERS}


def observed(name: str, said: tuple[str, ...] = ("", "", "", "")) -> Sighting:
    return Sighting(
        uid=name, kind="Job", namespace="default", name=name, generation=1, queue_label="research",
        user="", priority_class="", gpus=1000, cpus=0, memory_mib=0, min_members=1, max_members=1,
        members=1, gpu_classes=("h100",), created=NOW, said=said,
    )  # fmt: skip


def decision(name: str, position: int, reason: m.Reason = m.Reason.NO_FREE_GPUS, **more: object):
    sentence = f"{position} before it"
    return m.Decision(name, m.Action.WAIT, reason, sentence, position=position, **more)


def told(name: str, position: int, reason: str = "no_free_gpus") -> Sighting:
    return observed(name, (reason, f"{position} before it", str(position), ""))


def tell(
    pairs: list[tuple[m.Decision, Sighting]], spoken: LastStatus, *, hurried: bool = False
) -> list[Act]:
    decisions = [d for d, _ in pairs]
    waits = Waits(
        names=[d.workload for d in decisions],
        reasons=[d.reason for d in decisions],
        positions=[d.position or 0 for d in decisions],
        spell=lambda places: [decisions[place] for place in places],
    )
    shown = {d.workload: o for d, o in pairs}
    alive = [o.uid for _, o in pairs]
    return status_acts(waits, shown.get, JOB, spoken, alive=alive, now=NOW, hurried=hurried)


def acts(pairs: list[tuple[m.Decision, Sighting]], spoken: LastStatus) -> list[str]:
    return [a.target.name for a in tell(pairs, spoken)]


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        (("a", "s", "5", ""), ("a", "s", "5", ""), False),
        (("a", "s", "5", ""), ("b", "s", "5", ""), True),
        (("a", "s", "2", ""), ("a", "t", "1", ""), True),
        (("a", "s", "11", ""), ("a", "t", "10", ""), True),
        (("a", "s", "200", ""), ("a", "t", "199", ""), False),
        (("a", "s", "200", ""), ("a", "t", "180", ""), True),
        (("a", "s", "20", ""), ("a", "t", "23", ""), True),
        (("a", "s", "", ""), ("a", "t", "", ""), True),
    ],
)
def test_small_move_in_a_long_line_is_no_news(before, after, news) -> None:
    assert is_news(before, after) is news


def test_new_reason_is_said_at_once_with_an_event() -> None:
    spoken = LastStatus()
    spoken.note(["w"], ["w"])
    pair = (decision("default/w", 3), told("w", 4, reason="at_limit"))
    (act,) = tell([pair], spoken)

    assert [e.reason for e in act.before] == ["Pending"]
    patch = act.decide({"metadata": {}})
    assert patch["metadata"]["annotations"][labels.POSITION] == "3"


def test_moved_position_waits_until_the_last_word_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = LastStatus()
    spoken.note(["w"], ["w"])
    pair = (decision("default/w", 3), told("w", 4))
    assert acts([pair], spoken) == []

    monkeypatch.setattr(words, "STATUS_EVERY_S", 0.0)
    assert acts([pair], spoken) == ["w"]


def test_bounded_rate_reaches_everybody_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "STATUS_AT_ONCE", 2)
    monkeypatch.setattr(words, "STATUS_PER_S", 1e9)
    monkeypatch.setattr(words, "WORTH_A_LOOK", 1)
    monkeypatch.setattr(words, "STATUS_EVERY_S", 0.0)
    names = [f"w{i}" for i in range(5)]
    spoken, heard = LastStatus(), []
    for round_ in range(3):
        pairs = [(decision(f"default/{n}", 1 + round_ % 2), told(n, 9)) for n in names]
        heard += acts(pairs, spoken)

    assert set(heard) == set(names)


def test_hurried_fewer_are_told_of_a_long_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "HURRIED_PER_S", 0.0)
    monkeypatch.setattr(words, "WORTH_A_LOOK", 2)
    pairs = [(decision(f"default/w{i}", i), observed(f"w{i}")) for i in range(5)]
    spoken = LastStatus()

    assert len(tell(pairs, spoken, hurried=True)) == 2
    assert tell(pairs, spoken, hurried=True) == []
    assert len(tell(pairs, spoken)) == 5


def test_eta_is_written_where_the_plan_names_one_and_removed_where_not() -> None:
    until = NOW + timedelta(minutes=7)
    assert words_of(decision("default/w", 1, until=until))[3] == "2026-05-04T12:07:00Z"
    assert say({}, decision("default/w", 1))["metadata"]["annotations"][labels.ETA] is None


def test_who_is_gone_is_forgotten() -> None:
    spoken = LastStatus()
    spoken.note(["a", "b"], ["a", "b"])
    spoken.note([], ["b"])
    assert set(spoken.at) == {"b"}
