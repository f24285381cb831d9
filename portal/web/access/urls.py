from django.urls import path

from portal.web.access import views

ACCOUNTS = "teams/<str:team>/service-accounts"
ACCOUNT = f"{ACCOUNTS}/<str:account>"

urlpatterns = [
    path("groups/", views.group_rules, name="group_rules"),
    path("groups/<int:pk>/delete/", views.delete_rule, name="group_rule_delete"),
    path(f"{ACCOUNTS}/", views.service_accounts, name="service_accounts"),
    path(f"{ACCOUNT}/delete/", views.delete_account, name="service_account_delete"),
    path(f"{ACCOUNT}/tokens/", views.issue_token, name="service_token_issue"),
    path(f"{ACCOUNT}/tokens/<int:pk>/revoke/", views.revoke_token, name="service_token_revoke"),
]
