from django.urls import path

from portal.web.reports.views import KINDS, report

app_name = "reports"
urlpatterns = [
    path(address, report, {"kind": kind, "suffix": suffix}, name=f"{kind}{mark}")
    for kind in KINDS
    for address, suffix, mark in (
        (kind, "", ""),
        (f"{kind}.csv", "csv", "_csv"),
        (f"{kind}.json", "json", "_json"),
    )
]
