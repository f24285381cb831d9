from django.urls import path

from portal.web.nodes import views

urlpatterns = [
    path("nodes/", views.nodes, name="nodes"),
    path("nodes/<str:node>/", views.node, name="node"),
]
