"""Files that people give: read within bounds, and what is wrong with them said by file and line.

Whatever stands in a file costs time and memory in proportion to its size, and no more.
"""

from .bounds import MOST_BYTES, read_text
from .faults import BrokenFileError, Fault, plain
from .lines import lines_of
from .structured import read

__all__ = ["MOST_BYTES", "BrokenFileError", "Fault", "lines_of", "plain", "read", "read_text"]
