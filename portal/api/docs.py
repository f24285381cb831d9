"""The schema, and the page that reads it. Both ask for a signed-in person, like everything else."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request
from rest_framework.views import APIView


class Schema(SpectacularAPIView):
    """The OpenAPI document of this API."""


@login_required
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Swagger UI from our own static files, under the same strict policy as every page."""
    return render(request, "api/docs.html")


@extend_schema(exclude=True)
class NoSuchAddress(APIView):
    """Below /api/ even an unknown address answers in the API's shape."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise Http404
