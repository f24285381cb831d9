from django.urls import path

from portal.web.lab import views

urlpatterns = [path("start-forecasts/", views.start_forecasts, name="start_forecasts")]
