from django.urls import path

from portal.web.studies import adapting_views, capacity_views, new_views, views

urlpatterns = [
    path("studies/", views.studies, name="studies"),
    path("studies/new/", new_views.experiment, name="experiment_new"),
    path("studies/<int:pk>/", views.study, name="study"),
    path("studies/<int:pk>/csv/", views.as_csv, name="study_csv"),
    path("studies/<int:pk>/cancel/", views.cancel, name="study_cancel"),
    path("studies/<int:pk>/keep/", views.keep, name="study_keep"),
    path("studies/<int:pk>/promote/", views.promote, name="study_promote"),
    path("what-if/", new_views.what_if, name="what_ifs"),
    path("capacity/", capacity_views.capacity, name="capacity"),
    path("capacity/slo/", capacity_views.set_slo, name="capacity_slo"),
    path("adapting/", adapting_views.adapting, name="adapting"),
    path("adapting/switch/", adapting_views.switch, name="adapting_switch"),
    path("adapting/pin/", adapting_views.pin, name="adapting_pin"),
]
