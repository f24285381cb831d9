from django.urls import path

from portal.web.cycles import views

urlpatterns = [
    path("cycles/<int:number>/", views.cycle, name="cycle"),
    path("cycles/<int:number>/candidates/", views.candidates, name="cycle_candidates"),
    path("cycles/<int:number>/snapshot", views.snapshot, name="cycle_snapshot"),
]
