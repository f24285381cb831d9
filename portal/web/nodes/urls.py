from django.urls import path

from portal.web.nodes import consolidation, views

urlpatterns = [
    path("nodes/", views.nodes, name="nodes"),
    path("consolidation/", consolidation.consolidation, name="consolidation"),
    path("nodes/<str:node>/", views.node, name="node"),
]
