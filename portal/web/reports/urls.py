from django.urls import path

from portal.reports.kinds import REPORTS
from portal.web.reports import budgets, saved_views, use
from portal.web.reports.views import report

app_name = "reports"
urlpatterns = [
    path("use/idle/<str:uid>/nudge", use.nudge, name="use_nudge"),
    path("use/idle/<str:uid>/keep", use.keep, name="use_keep"),
    path("use/asked/<str:uid>/tell", use.tell, name="use_tell"),
    path("views", saved_views.views, name="views"),
    path("views/save", saved_views.save, name="view_save"),
    path("views/<int:pk>", saved_views.change, name="view_change"),
    path("showback/budgets", budgets.edit, name="budgets"),
    path("showback/budgets/<int:pk>/drop", budgets.drop, name="budget_drop"),
]
urlpatterns += [
    path(address, report, {"kind": kind, "suffix": suffix}, name=f"{kind}{mark}")
    for kind in REPORTS
    for address, suffix, mark in (
        (kind, "", ""),
        (f"{kind}.csv", "csv", "_csv"),
        (f"{kind}.json", "json", "_json"),
    )
]
