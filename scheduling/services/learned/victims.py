"""Weights of who may leave, searched on the same days beside the order that was found, which stays.

They are taken only where lives of these days under other draws say that work waits less with them, beyond
noise and with fairness kept; otherwise the rule that is shipped chooses victims. What is taken is judged on
later days together with the order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduling.engine import model as m
from scheduling.engine.features import VICTIM_NAMES
from scheduling.models import LearnedLife, LearnedOrder
from scheduling.services.learned import searching
from scheduling.services.learned.figures import WAIT, passed
from scheduling.services.learned.searching import Cost, Keep
from scheduling.simulation.learning.search import Training, search
from scheduling.simulation.replications import Difference, Verdict, compare

WINDOW = "victims"
"""Of the lives that tell whether they are better than noise."""
WITH, WITHOUT = "with", "without"
SEEDS = (11, 12, 13, 14, 15)
"""Of these; no candidate was tried on them."""
FEWER = 2
"""So many times fewer generations than for the order."""
SHIPPED = "The rule that is shipped chooses victims: "
NOBODY_LEAVES = f"{SHIPPED}nobody was evicted in the days that it was trained on."
NOTHING_BETTER = f"{SHIPPED}nothing that was tried costs less."


def go_on(order: LearnedOrder, cost: Cost, keep: Keep) -> None:
    """Search to the end. ``keep`` is called when ``order.victim_tried`` has grown, and may raise
    StoppedError."""
    costs = searching.remembering(order.victim_tried, cost, keep)
    training = Training(
        sharing=m.Sharing(order.sharing),
        features=(),
        victim_features=VICTIM_NAMES,
        fixed=order.weights,
        seed=order.seed,
        generations=max(1, order.generations // FEWER),
        population=order.population,
    )
    search(training, lambda one: costs(one.victim_weights), lambda line: None)


def most_tries(order: LearnedOrder) -> int:
    return 1 + max(1, order.generations // FEWER) * order.population


def found(order: LearnedOrder) -> dict[str, float]:
    """What costs least; none where that is the rule that is shipped, whose weights are all 0."""
    best = searching.best(order.victim_tried)
    return best if any(best.values()) else {}


def lacking(order: LearnedOrder) -> list[int]:
    """Draws that were not lived yet."""
    rows = LearnedLife.objects.filter(order=order, window=WINDOW, under=WITH)
    lived = set(rows.values_list("seed", flat=True))
    return [seed for seed in SEEDS if seed not in lived]


def keep_life(
    order: LearnedOrder, seed: int, mine: Mapping[str, float], without: Mapping[str, float]
) -> None:
    """Whoever took it up while this one was thought dead has lived the same."""
    rows = [
        LearnedLife(order=order, window=WINDOW, under=under, seed=seed, figures=dict(figures))
        for under, figures in ((WITHOUT, without), (WITH, mine))
    ]
    LearnedLife.objects.bulk_create(rows, ignore_conflicts=True)


def judged(order: LearnedOrder) -> tuple[bool, str]:
    """Whether they are taken, and why in one sentence."""
    lives: dict[str, list[Mapping[str, float]]] = {WITH: [], WITHOUT: []}
    for row in LearnedLife.objects.filter(order=order, window=WINDOW).order_by("seed"):
        lives[row.under].append(row.figures)
    return said(lives[WITH], lives[WITHOUT])


def said(
    mine: Sequence[Mapping[str, float]], without: Sequence[Mapping[str, float]]
) -> tuple[bool, str]:
    """Of paired lives with the weights and without."""
    told = compare([life[WAIT] for life in without], [life[WAIT] for life in mine])
    figures = f"{_minutes(told)} over {len(mine)} lives of its training days"
    if told.verdict is not Verdict.BETTER:
        return (
            False,
            f"{SHIPPED}learned weights differ by {figures}, which is no better than noise.",
        )
    broken = passed(mine, without, 1)
    if broken:
        return False, f"{SHIPPED}learned weights wait less ({figures}), but fairness is not kept."
    return True, f"Weights choose victims: the wait differs by {figures}."


def _minutes(told: Difference) -> str:
    half = 0.0 if told.half is None else told.half
    return f"{told.mean / 60:+.1f} ± {half / 60:.1f} min".replace("-", "−")
