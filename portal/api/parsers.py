"""Bodies of the API: JSON of bounded size and depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser

from portal.boundary.answers import TOO_LARGE
from portal.boundary.bounds import MOST_BYTES
from portal.boundary.structure import MalformedError, from_json


class TooLarge(APIException):
    status_code = TOO_LARGE.status
    default_code = TOO_LARGE.code


class BoundedJsonParser(JSONParser):
    """The framework's reads a body of any size, and NaN, and as deep as the stack goes."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        raw = stream.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise TooLarge
        try:
            return from_json(raw)
        except MalformedError as error:
            raise UnreadableError(error) from error


class UnreadableError(ParseError):
    """At the field, where the fault is one of a value and not of the whole."""

    def __init__(self, error: MalformedError) -> None:
        super().__init__(f"This is no JSON that Weir reads. {error}")
        if "a key of" not in error.path and error.path:
            self.fields = {error.path.replace("[", ".").replace("]", ""): [str(error)]}
