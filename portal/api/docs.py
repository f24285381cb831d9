"""The schema, and the page that reads it. Both ask for a signed-in person, like everything else."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import Scope


class Schema(SpectacularAPIView):
    """The OpenAPI document of this API."""

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """A refusal has the common shape, whatever format the document was asked for in."""
        if getattr(response, "exception", False):
            request.accepted_renderer = JSONRenderer()
            request.accepted_media_type = JSONRenderer.media_type
        return super().finalize_response(request, response, *args, **kwargs)


@login_required
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Swagger UI from our own static files, under the same strict policy as every page."""
    return render(request, "api/docs.html")


@extend_schema(exclude=True)
class NoSuchAddress(APIView):
    """Below /api/ even an unknown address answers in the API's shape."""

    write_scope = Scope.READ
    """Nothing is written, whatever is sent."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise Http404
