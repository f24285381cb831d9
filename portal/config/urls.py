"""Addresses. Pages of a cluster live below /c/CLUSTER/, the API below /api/v1/."""

from django.urls import include, path

urlpatterns = [
    path("", include("portal.accounts.urls")),
    path("api/v1/", include("portal.api.urls")),
    path("c/<slug:cluster>/reports/", include("portal.reports.urls")),
    path("", include("portal.web.urls")),
]
