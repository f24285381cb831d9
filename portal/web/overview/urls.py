from django.urls import path

from portal.web.live import live
from portal.web.overview import views
from portal.web.search import search

urlpatterns = [
    path("", views.overview, name="overview"),
    path("queues/", views.queues, name="queues"),
    path("queues/<str:queue>/", views.queue, name="queue"),
    path("live", live, name="live"),
    path("search", search, name="search"),
]
