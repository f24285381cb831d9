"""Sign-in and the person's own page."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from portal.accounts import entry, views

app_name = "accounts"
urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign_in"),
    path("sign-in/provider/", entry.begin, name="provider"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("account/", views.account, name="account"),
    path("account/password/", views.password, name="password"),
    path("account/sessions/end/", views.end_sessions, name="end_sessions"),
    path("account/sessions/<str:key>/end/", views.end_session, name="end_session"),
    path("account/tokens/", views.issue_token, name="issue_token"),
    path("account/tokens/<int:pk>/revoke/", views.revoke_token, name="revoke_token"),
    path("account/confirm/provider/", entry.confirm_by_provider, name="confirm_provider"),
    path("account/go-on/", entry.go_on, name="go_on"),
    path("account/time-zone/", views.set_time_zone, name="set_time_zone"),
]
