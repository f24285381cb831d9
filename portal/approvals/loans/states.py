"""The life of a loan.

offered ──┐                    ┌─ undo ─┐
          ├── consent ──▶ running ─ recall ─▶ recalled
asked ────┘                    └──────┬─────────┘
   └─ decline, withdraw               └─ give back, end ─▶ ended
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import models


class LoanState(models.TextChoices):
    OFFERED = "offered", "Offered"
    ASKED = "asked", "Asked for"
    RUNNING = "running", "Running"
    RECALLED = "recalled", "Recalled"
    ENDED = "ended", "Ended"
    DECLINED = "declined", "Declined"
    WITHDRAWN = "withdrawn", "Withdrawn"


WAITING = (LoanState.OFFERED, LoanState.ASKED)
RUNNING = (LoanState.RUNNING, LoanState.RECALLED)
OVER = (LoanState.ENDED, LoanState.DECLINED, LoanState.WITHDRAWN)


class LoanVerb(models.TextChoices):
    OFFER = "offer", "Offered"
    ASK = "ask", "Asked for"
    CONSENT = "consent", "Consented to"
    DECLINE = "decline", "Declined"
    WITHDRAW = "withdraw", "Withdrawn"
    RECALL = "recall", "Recalled"
    UNDO = "undo", "Recall undone"
    GIVE_BACK = "give_back", "Given back"
    NEAR_END = "near_end", "Ends soon"
    END = "end", "Ended"


MOVES: Mapping[LoanVerb, tuple[tuple[LoanState, ...], LoanState]] = {
    LoanVerb.CONSENT: (WAITING, LoanState.RUNNING),
    LoanVerb.DECLINE: (WAITING, LoanState.DECLINED),
    LoanVerb.WITHDRAW: (WAITING, LoanState.WITHDRAWN),
    LoanVerb.RECALL: ((LoanState.RUNNING,), LoanState.RECALLED),
    LoanVerb.UNDO: ((LoanState.RECALLED,), LoanState.RUNNING),
    LoanVerb.GIVE_BACK: (RUNNING, LoanState.ENDED),
    LoanVerb.END: (RUNNING, LoanState.ENDED),
}
"""Verb -> (from which states, to which)."""
