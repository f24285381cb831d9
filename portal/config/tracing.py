"""A span for each request, where traces are wanted: by the route as the code has it, never by the address."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from scheduling.services import tracing


class TracingMiddleware:
    """Only where the settings name an endpoint."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        method = str(request.method)
        with tracing.span(
            f"{method} request", {"http.request.method": method}, of="server"
        ) as note:
            response = self.get_response(request)
            # A stranger may ask for any address; what no view answers shares one route.
            match = request.resolver_match
            route = str(match.route) if match else "none"
            note({"http.route": route, "http.response.status_code": response.status_code})
        return response
