"""The doors to learned run times."""

from scheduling.services.forecasts.asked import Expected
from scheduling.services.forecasts.predicting import due

from .asked import answer, answer_of, ask
from .learning import is_due, learn
from .predicting import predict
from .serving import demote, promote, serving
from .told import HeldBack, Rest, held_back, rests

__all__ = [
    "Expected",
    "HeldBack",
    "Rest",
    "answer",
    "answer_of",
    "ask",
    "demote",
    "due",
    "held_back",
    "is_due",
    "learn",
    "predict",
    "promote",
    "rests",
    "serving",
]
