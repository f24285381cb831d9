"""Where a figure that several reasons quote stands."""

from __future__ import annotations

BOUND = 5
"""In ``out.figures``: how many searches a cycle makes of the kind that was not made any more for this one."""
