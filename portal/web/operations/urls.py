from django.urls import path

from portal.web.operations import mode, policy, views

urlpatterns = [
    path("cluster/", views.cluster, name="cluster"),
    path("policy/", policy.policy, name="policy"),
    path("cluster/mode/<slug:mode>/", mode.mode, name="cluster_mode"),
]
