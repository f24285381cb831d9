"""Pages by cluster. Each area keeps its own addresses."""

from django.urls import include, path

from portal.web.frame import shell

app_name = "web"
urlpatterns = [
    path("", shell.home, name="home"),
    path("access/", include("portal.web.access.urls")),
    path("help/", include("portal.web.help.urls")),
    path("", include("portal.web.people.urls")),
    path("", include("portal.web.audit.urls")),
    path("", include("portal.web.notices.urls")),
    path("", include("portal.web.setup.urls")),
    path("c/<slug:cluster>/", include("portal.web.overview.urls")),
    path("c/<slug:cluster>/", include("portal.web.workloads.urls")),
    path("c/<slug:cluster>/", include("portal.web.quotas.urls")),
    path("c/<slug:cluster>/", include("portal.web.requests.urls")),
    path("c/<slug:cluster>/", include("portal.web.loans.urls")),
    path("c/<slug:cluster>/", include("portal.web.nodes.urls")),
    path("c/<slug:cluster>/", include("portal.web.cycles.urls")),
    path("c/<slug:cluster>/", include("portal.web.operations.urls")),
    path("c/<slug:cluster>/", include("portal.web.alerts.urls")),
    path("c/<slug:cluster>/", include("portal.web.lab.urls")),
    path("c/<slug:cluster>/", include("portal.web.studies.urls")),
    path("c/<slug:cluster>/", include("portal.web.future.urls")),
]
