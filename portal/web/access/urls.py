from django.urls import path

from portal.web.access import accounts, groups

ACCOUNTS = "teams/<str:team>/service-accounts"
ACCOUNT = f"{ACCOUNTS}/<str:account>"

urlpatterns = [
    path("groups/", groups.group_rules, name="group_rules"),
    path("groups/<int:pk>/delete/", groups.delete_rule, name="group_rule_delete"),
    path(f"{ACCOUNTS}/", accounts.service_accounts, name="service_accounts"),
    path(f"{ACCOUNT}/delete/", accounts.delete_account, name="service_account_delete"),
    path(f"{ACCOUNT}/tokens/", accounts.issue_token, name="service_token_issue"),
    path(f"{ACCOUNT}/tokens/<int:pk>/revoke/", accounts.revoke_token, name="service_token_revoke"),
]
