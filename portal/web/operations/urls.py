from django.urls import path

from portal.web.operations import mode, views

urlpatterns = [
    path("cluster/", views.cluster, name="cluster"),
    path("cluster/mode/<slug:mode>/", mode.mode, name="cluster_mode"),
]
