"""Models as bytes and back: compressed JSON of numbers and names.

Not pickle: whoever can write the row could then run code in every worker that reads it. What is read here
can be wrong, never more than that; it is bounded before it is unpacked, and anything odd is a ValueError.
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from typing import Any

import numpy as np

from . import history, paces
from .calibration import Calibrator
from .features import NAMES, Submissions
from .gradient_boosting import Forest
from .history import History, PastRun
from .learner import Models
from .quantiles import LEVELS

FORMAT = 1
MOST_BYTES = 256 * 2**20
"""Unpacked."""


def dump(models: Models) -> bytes:
    """Equal models give equal bytes."""
    document = {
        "format": FORMAT,
        "serving": models.serving,
        "calibrators": {name: c.moved for name, c in models.calibrators.items()},
        "past": [
            [list(key), [list(run) for run in runs]] for key, runs in models.history.past.items()
        ],
        "paces": [
            [list(group), {name: list(values) for name, values in by_class.items()}]
            for group, by_class in models.history.paces.seen.items()
        ],
        "last": [[list(key), at] for key, at in models.submissions.last.items()],
        "open": [[list(key), at] for key, at in models.submissions.open.items()],
        "forest": _forest_document(models.forest) if models.forest else None,
    }
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 6)


def load(stored: bytes) -> Models:
    """Raises ValueError where ``stored`` is not what ``dump`` writes."""
    try:
        return _models(json.loads(_unpacked(stored)))
    except (zlib.error, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"no stored model: {error}") from error


def _unpacked(stored: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(stored, MOST_BYTES)
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ValueError("no stored model: it is cut off or too large")
    return text


def _models(document: dict[str, Any]) -> Models:
    if document["format"] != FORMAT:
        raise ValueError(f"no stored model: its format is {document['format']!r}")
    past = {
        tuple(map(str, key)): tuple(
            PastRun(float(log2_s), float(ended), bool(cut), str(gpu_class))
            for log2_s, ended, cut, gpu_class in runs[-history.KEPT :]
        )
        for key, runs in document["past"]
    }
    seen = {
        (str(group[0]), str(group[1])): {
            str(name): deque(map(float, values), maxlen=paces.KEPT)
            for name, values in by_class.items()
        }
        for group, by_class in document["paces"]
    }
    return Models(
        history=History(past, paces.Paces(seen)),
        submissions=Submissions(
            {tuple(key): float(at) for key, at in document["last"]},
            {tuple(key): [float(one) for one in at] for key, at in document["open"]},
        ),
        forest=_forest(document["forest"]) if document["forest"] else None,
        calibrators={
            name: Calibrator([float(value) for value in document["calibrators"][name]])
            for name in ("history", "boosted")
        },
        serving="boosted" if document["serving"] == "boosted" else "history",
    )


def _forest_document(forest: Forest) -> dict[str, Any]:
    arrays = ("base", "value", "feature", "threshold", "missing_left", "left", "right", "of_level")
    return {name: getattr(forest, name).tolist() for name in arrays} | {"depth": forest.depth}


def _forest(document: dict[str, Any]) -> Forest:
    whole = {
        name: np.array(document[name], dtype=np.int32)
        for name in ("feature", "left", "right", "of_level")
    }
    real = {
        name: np.array(document[name], dtype=np.float64) for name in ("base", "value", "threshold")
    }
    missing = np.array(document["missing_left"], dtype=np.bool_)
    shape = real["value"].shape
    tables = (real["threshold"], missing, whole["feature"], whole["left"], whole["right"])
    _check(len(shape) == 2 and all(table.shape == shape for table in tables))
    _check(whole["of_level"].shape == shape[:1] and real["base"].shape == (len(LEVELS),))
    _check(_within(whole["feature"], len(NAMES)) and _within(whole["of_level"], len(LEVELS)))
    _check(_within(whole["left"], shape[1]) and _within(whole["right"], shape[1]))
    depth = int(document["depth"])
    _check(0 <= depth <= shape[1])
    return Forest(
        base=real["base"],
        value=real["value"],
        feature=whole["feature"],
        threshold=real["threshold"],
        missing_left=missing,
        left=whole["left"],
        right=whole["right"],
        depth=depth,
        of_level=whole["of_level"],
    )


def _within(table: np.ndarray[Any, np.dtype[np.int32]], most: int) -> bool:
    return bool(((table >= 0) & (table < most)).all())


def _check(is_right: bool) -> None:
    if not is_right:
        raise ValueError("no stored model: its trees contradict themselves")
