"""Several names in a sentence."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice


def few(names: Collection[str], most: int) -> str:
    """The first ``most``, and how many others there are: ``vision, speech and 3 more``."""
    more = len(names) - most
    return ", ".join(islice(names, most)) + (f" and {more:,} more" if more > 0 else "")
