"""Whether a rule that was found is better than what people can set by hand, on work that it never saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from scheduling.simulation.replications import Difference, Verdict, compare
from workshop.training.environment import KNOBS, PolicyEnv
from workshop.training.train import Rule, Tell, constant, waited_h
from workshop.training.windows import Window, keep_apart

SEEDS = range(101, 106)
"""Of the lives that are judged; none was trained on."""


def by_hand() -> Iterator[tuple[str, Rule]]:
    """Every way to share with every order, the rest as shipped."""
    sharing, order = KNOBS[0].values, KNOBS[1].values
    rest = [0] * (len(KNOBS) - 2)
    for (i, share), (j, one) in product(enumerate(sharing), enumerate(order)):
        yield f"{share}, {one}".replace("_", " "), constant([i, j, *rest])


def judge(
    rule: Rule,
    trained: Sequence[Window],
    window: Window,
    seeds: Sequence[int] = SEEDS,
    tell: Tell = lambda line: None,
) -> tuple[list[float], dict[str, tuple[list[float], Difference]]]:
    """Hours waited in each life under ``rule``; and of each setting by hand the same and how far the rule is
    from it, all intervals together at 95 %. Raises SharedWindowError for work that was trained on.
    """
    keep_apart(trained, [window])
    env, settings = PolicyEnv(window), list(by_hand())
    mine = [waited_h(rule, env, seed) for seed in seeds]
    found = {}
    for name, other in settings:
        tell(f"{window.name}: {name}")
        hours = [waited_h(other, env, seed) for seed in seeds]
        found[name] = hours, compare(hours, mine, len(settings))
    return mine, found


def is_better(found: dict[str, tuple[list[float], Difference]]) -> bool:
    """The rule of promotion: better than every setting by hand, beyond chance."""
    return all(gap.verdict is Verdict.BETTER for _, gap in found.values())
