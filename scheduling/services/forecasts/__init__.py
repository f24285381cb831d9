"""The doors to learned run times."""

from .expecting import Expected, expected
from .learning import learn
from .predicting import predict
from .serving import demote, promote, serving
from .told import Rest, rests

__all__ = [
    "Expected",
    "Rest",
    "demote",
    "expected",
    "learn",
    "predict",
    "promote",
    "rests",
    "serving",
]
