"""The shipped engine run forward from a moment: many futures of one present.

Apart from the event loop, so that a change here compiles nothing anew.
"""
