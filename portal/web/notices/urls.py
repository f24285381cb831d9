"""Addresses of no cluster: what a person is told, and what became of what was sent."""

from django.urls import path

from portal.web.notices import dead, demo_mail, hooks, views

urlpatterns = [
    path("notices/", views.notices, name="notices"),
    path("notices/read/", views.read, name="notices_read"),
    path("notices/preferences/", views.preferences, name="notice_preferences"),
    path("notices/mail/test/", hooks.test_mail, name="mail_test"),
    path("notices/webhooks/", hooks.add, name="webhook_add"),
    path("notices/webhooks/<int:pk>/remove/", hooks.remove, name="webhook_remove"),
    path("notices/webhooks/<int:pk>/test/", hooks.test, name="webhook_test"),
    path("notices/dead/", dead.letters, name="dead_letters"),
    path("notices/dead/<int:pk>/again/", dead.again, name="dead_letter_again"),
    path("notices/dead/<int:pk>/drop/", dead.drop, name="dead_letter_drop"),
    path("notices/sent/", demo_mail.sent, name="sent"),
    path("notices/sent/sink/", demo_mail.sink, name="sent_sink"),
]
