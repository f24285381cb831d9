"""A call by declaration: what it takes and gives is said once, for the handler and for the API's document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from http import HTTPStatus
from inspect import signature
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, Serializer

Kind = type[BaseSerializer[Any]]
Handler = Callable[..., Any]


def call(
    gives: Kind | None = None,
    *,
    takes: Kind | None = None,
    code: int | None = None,
    many: bool = False,
    parameters: Sequence[OpenApiParameter | type[Serializer[Any]]] = (),
) -> Callable[[Handler], Callable[..., Response]]:
    """A handler of a ``PersonView`` that returns the row which ``gives`` writes; without it the answer is
    empty. It has the steps of the address that it names, and the body, as ``takes`` reads it, in
    ``self.given``: asked for after whether the person may, so that whoever may not learns nothing of it."""
    answered = code or (HTTPStatus.OK if gives else HTTPStatus.NO_CONTENT).value

    def declare(handler: Handler) -> Callable[..., Response]:
        steps = frozenset(signature(handler).parameters)

        @wraps(handler)
        def act(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
            view.takes = takes
            row = handler(view, **{step: kwargs[step] for step in steps & kwargs.keys()})
            context = view.get_serializer_context()
            body = gives(row, many=many, context=context).data if gives else None
            return Response(body, status=answered)

        shown = gives(many=True) if gives and many else gives
        return extend_schema(
            request=takes, responses={answered: shown}, parameters=list(parameters)
        )(act)

    return declare
