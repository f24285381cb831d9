"""The doors to learned run times."""

from .asked import answer, answer_of, ask
from .expecting import Expected
from .kept_promises import due
from .learning import learn
from .predicting import predict
from .serving import demote, promote, serving
from .told import Rest, not_before, rests

__all__ = [
    "Expected",
    "Rest",
    "answer",
    "answer_of",
    "ask",
    "demote",
    "due",
    "learn",
    "not_before",
    "predict",
    "promote",
    "rests",
    "serving",
]
