"""Addresses of no cluster: what a person is told."""

from django.urls import path

from portal.web.notices import views

urlpatterns = [
    path("notices/", views.notices, name="notices"),
    path("notices/read/", views.read, name="notices_read"),
    path("notices/preferences/", views.preferences, name="notice_preferences"),
]
