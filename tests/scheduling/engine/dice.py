"""Worlds by dice: one recipe, thrown by a seed, or drawn by Hypothesis, which makes what fails smaller."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Concatenate, Generic, ParamSpec, TypeVar

from hypothesis import strategies as st

Asked = ParamSpec("Asked")
Made = TypeVar("Made")


class Drawn(Generic[Asked, Made]):
    """``lent()`` is the strategy, ``lent.by(Random(7))`` the same world in every run."""

    def __init__(self, by: Callable[Concatenate[Random, Asked], Made]) -> None:
        self.by = by
        self.__doc__ = by.__doc__

    def __call__(self, *args: Asked.args, **named: Asked.kwargs) -> st.SearchStrategy[Made]:
        dice = st.randoms(use_true_random=False)
        return dice.map(lambda one: self.by(one, *args, **named))


def drawn(by: Callable[Concatenate[Random, Asked], Made]) -> Drawn[Asked, Made]:
    return Drawn(by)


def flag(dice: Random) -> bool:
    return dice.choice((False, True))


def some(dice: Random, names: list[str] | tuple[str, ...]) -> list[str]:
    """Any of them, in their order."""
    return [name for name in names if flag(dice)]
