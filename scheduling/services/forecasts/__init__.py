"""The doors to learned run times."""

from .learning import learn
from .predicting import predict
from .serving import demote, promote, serving
from .told import Rest, rests

__all__ = ["Rest", "demote", "learn", "predict", "promote", "rests", "serving"]
