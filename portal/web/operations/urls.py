from django.urls import path

from portal.web.operations import metrics, mode, policy, views

urlpatterns = [
    path("cluster/", views.cluster, name="cluster"),
    path("cluster/metrics/", metrics.metrics, name="metrics"),
    path("policy/", policy.policy, name="policy"),
    path("cluster/mode/<slug:mode>/", mode.mode, name="cluster_mode"),
]
