"""Addresses of no cluster: people, teams and personas."""

from django.urls import path

from portal.web.people import personas, teams, views

urlpatterns = [
    path("people/", views.people, name="people"),
    path("people/<str:username>/", views.person, name="person"),
    path("people/<str:username>/active/", views.set_active, name="person_active"),
    path("teams/", teams.teams, name="teams"),
    path("teams/<str:team>/", teams.team, name="team"),
    path("teams/<str:team>/delete/", teams.delete, name="team_delete"),
    path("teams/<str:team>/remove/<str:username>/", teams.remove, name="member_remove"),
    path("personas/", personas.personas, name="personas"),
    path("personas/new/", personas.add, name="persona_add"),
    path("personas/<str:persona>/", personas.edit, name="persona"),
    path("personas/<str:persona>/delete/", personas.delete, name="persona_delete"),
]
