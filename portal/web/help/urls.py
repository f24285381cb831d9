from django.urls import path

from portal.web.help import views

urlpatterns = [
    path("", views.index, name="help"),
    path("<slug:topic>/", views.page, name="help_page"),
]
