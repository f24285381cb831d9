"""One place where errors become answers: a code, a sentence and a remedy."""

from typing import Any

from rest_framework.response import Response
from rest_framework.views import exception_handler


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    return exception_handler(error, context)
