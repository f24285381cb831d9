"""How much a request may hold. The settings hand the first two to Django."""

from typing import Final

MOST_BYTES: Final = 1024 * 1024
"""Of a body. The largest that pages send is a grid of quotas, some 100 KiB."""
MOST_FIELDS: Final = 10_000
"""Of a form: five for each class of each queue of a grid."""
LONGEST_QUERY: Final = 8192
"""Bytes of a query string."""
LONGEST_PATH: Final = 2048
