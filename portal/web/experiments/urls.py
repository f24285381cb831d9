from django.urls import path

from portal.web.experiments import views

urlpatterns = [
    path("experiments/", views.experiments, name="experiments"),
    path("experiments/new/", views.new, name="experiment_new"),
    path("experiments/<int:pk>/", views.one, name="experiment"),
    path("experiments/<int:pk>/csv/", views.as_csv, name="experiment_csv"),
    path("experiments/<int:pk>/cancel/", views.cancel, name="experiment_cancel"),
    path("experiments/<int:pk>/promote/", views.promote, name="experiment_promote"),
]
