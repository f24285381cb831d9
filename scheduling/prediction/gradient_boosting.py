"""Quantile gradient boosting over what history says: trees that correct its median.

scikit-learn fits them; what is kept are the numbers of their nodes, and walking them is done here. So a
stored model is data, never code that runs when it is read, and one row costs no call into scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .quantiles import LEVELS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

TREES = 60
LEAVES = 15
RATE = 0.1
LEAST_IN_LEAF = 20
SEED = 7


@dataclass(frozen=True, slots=True)
class Forest:
    """The trees of every level, one row a tree: ``value``, ``feature``, ``threshold``, ``missing_left``,
    ``left`` and ``right`` by node. ``left`` of a leaf is the leaf itself."""

    base: Floats
    value: Floats
    feature: Ints
    threshold: Floats
    missing_left: npt.NDArray[np.bool_]
    left: Ints
    right: Ints
    depth: int
    of_level: Ints

    def predict(self, row: Sequence[float]) -> Floats:
        """The correction of history's median at each of ``LEVELS``."""
        values = self._values(np.asarray(row, dtype=np.float64)[np.newaxis])[0]
        return self.base + np.bincount(self.of_level, weights=values, minlength=len(LEVELS))

    def predict_all(self, rows: Floats) -> Floats:
        """The same of many rows, a line each."""
        is_of = self.of_level[:, np.newaxis] == np.arange(len(LEVELS))
        return self.base + self._values(rows) @ is_of.astype(np.float64)

    def _values(self, rows: Floats) -> Floats:
        """What each tree says of each row."""
        line = np.arange(len(rows))[:, np.newaxis]
        tree = np.arange(len(self.value))
        node = np.zeros((len(rows), len(self.value)), dtype=np.int32)
        for _ in range(self.depth):
            seen = rows[line, self.feature[tree, node]]
            goes_left = np.where(
                np.isnan(seen), self.missing_left[tree, node], seen <= self.threshold[tree, node]
            )
            node = np.where(goes_left, self.left[tree, node], self.right[tree, node])
        return self.value[tree, node]


def fit(rows: Floats, targets: Floats) -> Forest:
    """One model for each of ``LEVELS``; the same rows give the same trees."""
    # Its import takes a second that only who learns should pay.
    from sklearn.ensemble import HistGradientBoostingRegressor

    models = [
        HistGradientBoostingRegressor(
            loss="quantile",
            quantile=level,
            max_iter=TREES,
            max_leaf_nodes=LEAVES,
            learning_rate=RATE,
            min_samples_leaf=LEAST_IN_LEAF,
            early_stopping=False,
            random_state=SEED,
        ).fit(rows, targets)
        for level in LEVELS
    ]
    return forest_of([[stage[0].nodes for stage in model._predictors] for model in models], models)


def forest_of(trees: Sequence[Sequence[npt.NDArray[np.void]]], models: Sequence[object]) -> Forest:
    """The numbers of fitted ``trees``, by level; ``models`` know where each level begins."""
    nodes = [tree for level in trees for tree in level]
    most = max(len(tree) for tree in nodes)
    shape = (len(nodes), most)
    forest = Forest(
        base=np.array([float(np.ravel(model._baseline_prediction)[0]) for model in models]),  # type: ignore[attr-defined]
        value=np.zeros(shape),
        feature=np.zeros(shape, dtype=np.int32),
        threshold=np.zeros(shape),
        missing_left=np.zeros(shape, dtype=np.bool_),
        left=np.tile(np.arange(most, dtype=np.int32), (len(nodes), 1)),
        right=np.tile(np.arange(most, dtype=np.int32), (len(nodes), 1)),
        depth=max(int(tree["depth"].max()) for tree in nodes),
        of_level=np.repeat(np.arange(len(trees), dtype=np.int32), [len(level) for level in trees]),
    )
    for place, tree in enumerate(nodes):
        _copy(forest, place, tree)
    return forest


def _copy(forest: Forest, place: int, tree: npt.NDArray[np.void]) -> None:
    inner = tree["is_leaf"] == 0
    at = np.flatnonzero(inner)
    forest.value[place, : len(tree)] = np.where(inner, 0.0, tree["value"])
    forest.feature[place, at] = tree["feature_idx"][at]
    forest.threshold[place, at] = tree["num_threshold"][at]
    forest.missing_left[place, at] = tree["missing_go_to_left"][at]
    forest.left[place, at], forest.right[place, at] = tree["left"][at], tree["right"][at]
