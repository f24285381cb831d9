"""Addresses. Pages of a cluster live below /c/CLUSTER/, the API below /api/v1/."""

from django.urls import include, path, re_path

from portal.api.docs import NoSuchAddress

urlpatterns = [
    path("", include("portal.accounts.urls")),
    path("", include("portal.accounts.entry_urls")),
    path("api/v1/", include("portal.api.urls")),
    path("scim/v2/", include("portal.api.scim.urls")),
    re_path(r"^api(?:/.*)?$", NoSuchAddress.as_view(), name="no_such_api"),
    path("c/<slug:cluster>/reports/", include("portal.web.reports.urls")),
    path("", include("portal.web.urls")),
]
handler400 = "portal.boundary.answers.bad_request"
handler403 = "portal.boundary.answers.forbidden"
handler404 = "portal.boundary.answers.not_found"
handler500 = "portal.boundary.answers.failure"
