from django.urls import path

from portal.web.nodes import consolidation, ordering, views

urlpatterns = [
    path("nodes/", views.nodes, name="nodes"),
    path("consolidation/", consolidation.consolidation, name="consolidation"),
    path("consolidation/<int:pk>/cancel/", ordering.cancel, name="consolidation_cancel"),
    path("nodes/<str:node>/", views.node, name="node"),
]
