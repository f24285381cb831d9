"""What each reader is told of one sentence: all of it, the sealed one, or what the reason says by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine import model as m
from scheduling.engine.reasons import catalogue as reasons
from scheduling.engine.reasons.facts import OTHERS_QUEUE, OTHERS_WORK, Facts
from scheduling.services.words.sentences import Sentence, answers, sealed_of, tell
from tests.said import figures

OWN, THEIRS = "research/nlp", "research/zebra"


@dataclass
class Reader:
    """Who is in the teams of the queues at ``tops``."""

    tops: tuple[str, ...]
    user: str = "me"

    def sees_work(self, cluster_id: int, path: str) -> bool:
        return any(not top or path == top or path.startswith(f"{top}/") for top in self.tops)

    def sees_queue(self, cluster_id: int, path: str) -> bool:
        return self.sees_work(cluster_id, path) or any(
            not path or top.startswith(f"{path}/") for top in self.tops
        )


MEMBER, HEAD, NOBODY = Reader((OWN,)), Reader(("research",)), Reader(("products",))


def facts(reason: m.Reason, **fields) -> Facts:
    blamed = (m.Reason.VICTIMS_PROTECTED, m.Reason.BUDGET_SPENT, m.Reason.EVICTION_CAP)
    return Facts(
        **{
            "reason": reason,
            "queue": OWN,
            "blame": THEIRS if reason in blamed else OWN,
            "gpu_class": "h100",
            "figures": figures(reason),
            "rival": "zebra/run",
            "rival_queue": THEIRS,
            "until": datetime(2026, 1, 5, 12, tzinfo=UTC),
            **fields,
        }
    )


def said(of: Facts, **fields) -> Sentence:
    """As the engine decides and the ledger keeps it."""
    decision = m.Decision(
        "nlp/mine", m.Action.WAIT, of.reason, reasons.sentence(of), reasons.sealed_sentence(of),
        reasons.numbers(of),
    )  # fmt: skip
    kept = Sentence(
        cluster_id=1, queue=of.queue, user="me", reason=of.reason.value, sentence=decision.sentence,
        sealed=sealed_of(decision), numbers=dict(decision.numbers),
    )  # fmt: skip
    return replace(kept, **fields)


@pytest.mark.parametrize("reason", m.Reason)
def test_who_sees_both_sides_reads_the_whole_sentence(reason):
    of = facts(reason)

    assert tell(said(of), HEAD).sentence == reasons.sentence(of)


@pytest.mark.parametrize("reason", m.Reason)
def test_who_sees_one_side_reads_no_name_of_the_other(reason):
    may = tell(said(facts(reason)), MEMBER)

    assert may.sentence
    assert "zebra" not in f"{may.sentence} {may.numbers}"


def test_own_figures_stay_in_the_sealed_sentence():
    may = tell(said(facts(m.Reason.RECLAIMED)), MEMBER)

    assert may.sentence == (
        "research/nlp held 3 h100, 1 above its fair share of 2; a workload of another team is entitled to"
        " them. Work lost: 0.0 GPU-hours. research/nlp keeps 4."
    )
    assert may.numbers["held"] == 3


def test_figures_of_a_queue_out_of_sight_are_neither_said_nor_listed():
    may = tell(
        said(
            facts(
                m.Reason.VICTIMS_PROTECTED,
                figures=figures(m.Reason.VICTIMS_PROTECTED, (77e3, 66e3, 4e3, 5e3, 0, 0)),
            )
        ),
        MEMBER,
    )

    assert may.sentence == (
        "Min run time protects the 5 h100 of a queue of another team that would leave for this workload until"
        " 2026-01-05 12:00 UTC."
    )
    assert may.numbers == {
        "needs": 4, "would_leave": 5, "gpu_class": "h100", "queue": OTHERS_QUEUE, "workload": OTHERS_WORK,
        "workload_queue": OTHERS_QUEUE,
    }  # fmt: skip


def test_rest_of_a_budget_out_of_sight_is_not_said():
    of = facts(
        m.Reason.BUDGET_SPENT, figures=figures(m.Reason.BUDGET_SPENT, (8e3, 4e3, 4e3, 8e3, 2e3))
    )

    assert "only 2 are left" in tell(said(of), HEAD).sentence
    assert "its eviction budget is too small" in tell(said(of), MEMBER).sentence


def test_sentence_begins_with_a_capital_where_the_first_name_is_sealed():
    may = tell(said(facts(m.Reason.WAITS_FOR_TURN)), MEMBER)

    assert may.sentence.startswith("A workload of another team goes first in research/nlp")


def test_rival_of_the_same_queue_is_named():
    of = facts(m.Reason.WAITS_FOR_TURN, rival="nlp/first", rival_queue=OWN)

    assert tell(said(of), MEMBER).sentence == reasons.sentence(of)


def test_queue_above_is_named():
    of = facts(m.Reason.AT_LIMIT, blame="research", rival="", rival_queue="")

    assert tell(said(of), MEMBER).sentence == reasons.sentence(of)
    assert tell(said(of), MEMBER).numbers["holds"] == 3


def test_queue_whose_name_only_begins_alike_is_not_on_the_line():
    of = facts(m.Reason.AT_LIMIT, queue="research/nlp2", rival="", rival_queue="")

    assert of.sealed().blame == ""


def test_owner_whose_queue_is_out_of_sight_reads_neither_name_nor_figure():
    may = tell(said(facts(m.Reason.AT_LIMIT), user="me"), Reader(("products",), user="me"))

    assert may.sentence == "The details are for those who see its queue."
    assert may.numbers == {}


def test_owner_reads_what_his_misrouted_label_says():
    of = facts(m.Reason.MISROUTED, wanted="nlpp", rival="", rival_queue="")

    assert "'nlpp'" in tell(said(of, queue=None), Reader(("products",), user="me")).sentence


@pytest.mark.parametrize("reason", [m.Reason.RECLAIMED, m.Reason.RESERVED_FOR_OTHER])
def test_sentence_of_which_nobody_kept_whom_it_names_is_withheld(reason):
    old = said(facts(reason), sealed=None, numbers={})

    assert OTHERS_WORK in tell(old, MEMBER).sentence
    assert "zebra" not in tell(old, HEAD).sentence
    assert tell(old, Reader(("",))).sentence == old.sentence


def test_old_sentence_goes_by_the_queues_among_its_numbers():
    old = said(facts(m.Reason.RECLAIMED), sealed=None)

    assert "zebra" not in tell(old, MEMBER).sentence
    assert tell(old, HEAD).sentence == old.sentence


def test_limit_of_a_queue_out_of_sight_is_no_answer():
    class Work:
        cluster_id = 1

        class queue:  # noqa: N801 - stands for a row
            path = OWN

    found = [{"queue": name} for name in ("", "nlp", "research", "zebra")]

    assert [one["queue"] for one in answers(found, Work, MEMBER)] == ["", "nlp", "research"]
    assert [one["queue"] for one in answers(found, Work, NOBODY)] == [""]


paths = st.sampled_from(["research", OWN, THEIRS, "zebra", "zebra/zebra", "research/nlpzebra"])
rows = st.lists(st.integers(0, 10**6).map(float), min_size=6, max_size=6).map(tuple)


@given(
    reason=st.sampled_from(list(m.Reason)),
    blame=st.sampled_from(["", "research", OWN, THEIRS, "zebra", "research/nlpzebra"]),
    rival=st.sampled_from(["", "zebra/zebra"]),
    rival_queue=st.sampled_from([THEIRS, "zebra", "research/nlpzebra"]),
    row=rows,
    lost=st.floats(0, 1e6),
    kept=st.booleans(),
)
def test_no_sentence_and_no_number_names_what_is_sealed(
    reason, blame, rival, rival_queue, row, lost, kept
):
    """Whatever the engine says of work in ``OWN`` to who sees nothing but it and what is above."""
    of = facts(
        reason, blame=blame, rival=rival, rival_queue=rival_queue if rival else "",
        figures=figures(reason, row),
        lost_gpu_s=lost, gpus=8000, least=2, members=4,
    )  # fmt: skip
    whole = said(of) if kept else said(of, sealed=None)
    may = tell(whole, MEMBER)

    assert "zebra" not in f"{may.sentence} {may.numbers}"
    assert tell(whole, Reader(("",))).sentence == whole.sentence
