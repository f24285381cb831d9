"""Production parts: PostgreSQL and Redis from Debian's packages, and Weir as separate processes on them.

Everything listens on loopback, lives in a folder of its own and ends with the tests.
"""
