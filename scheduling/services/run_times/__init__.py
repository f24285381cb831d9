"""The doors to learned run times."""

from scheduling.services.run_times.predicting import hits
from scheduling.services.run_times.questions import ExpectedRunTime

from .learning import is_due, learn
from .predicting import predict
from .questions import answer, expected_of, question_of
from .rests import HeldBack, Rest, held_back, rests
from .serving import demote, promote, serving

__all__ = [
    "ExpectedRunTime",
    "HeldBack",
    "Rest",
    "answer",
    "demote",
    "expected_of",
    "held_back",
    "hits",
    "is_due",
    "learn",
    "predict",
    "promote",
    "question_of",
    "rests",
    "serving",
]
