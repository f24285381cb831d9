from django.urls import path

from portal.web.operations import metrics, mode, outside, policy, views

urlpatterns = [
    path("cluster/", views.cluster, name="cluster"),
    path("cluster/outside/", outside.outside, name="outside"),
    path("cluster/metrics/", metrics.metrics, name="metrics"),
    path("policy/", policy.policy, name="policy"),
    path("cluster/mode/<slug:mode>/", mode.mode, name="cluster_mode"),
]
