from django.urls import path

from portal.web.lab import adapting_views, capacity_views, views

urlpatterns = [
    path("what-if/", views.what_ifs, name="what_ifs"),
    path("what-if/<int:pk>/", views.one, name="what_if"),
    path("what-if/<int:pk>/cancel/", views.cancel, name="what_if_cancel"),
    path("what-if/<int:pk>/keep/", views.keep, name="what_if_keep"),
    path("capacity/", capacity_views.capacity, name="capacity"),
    path("capacity/slo/", capacity_views.set_slo, name="capacity_slo"),
    path("capacity/<int:pk>/cancel/", capacity_views.cancel, name="capacity_cancel"),
    path("adapting/", adapting_views.adapting, name="adapting"),
    path("adapting/switch/", adapting_views.switch, name="adapting_switch"),
    path("adapting/pin/", adapting_views.pin, name="adapting_pin"),
    path("start-forecasts/", views.start_forecasts, name="start_forecasts"),
]
