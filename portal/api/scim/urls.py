"""Addresses below /scim/v2/."""

from django.urls import path

from portal.api.scim import discovery, groups, users

app_name = "scim"
urlpatterns = [
    path("ServiceProviderConfig", discovery.Config.as_view(), name="config"),
    path("ResourceTypes", discovery.Types.as_view(), name="types"),
    path("ResourceTypes/<str:name>", discovery.Types.as_view(), name="type"),
    path("Schemas", discovery.Schemas.as_view(), name="schemas"),
    path("Schemas/<str:name>", discovery.Schemas.as_view(), name="schema"),
    path("Users", users.Users.as_view(), name="users"),
    path("Users/<int:pk>", users.OneUser.as_view(), name="user"),
    path("Groups", groups.Groups.as_view(), name="groups"),
    path("Groups/<int:pk>", groups.OneGroup.as_view(), name="group"),
]
