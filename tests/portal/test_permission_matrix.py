"""Who may read and who may write at each address, one row each; ``tests/walk`` asks every one of them.

Whoever may not gets the same answer as for something that does not exist. An address without a row fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.urls import URLPattern, URLResolver, get_resolver

from portal.reports.kinds import REPORTS
from tests.security.sealed import GPUS, PERSONAS

ANYBODY = frozenset({"outsider", "neighbour", *PERSONAS})
HERE = ANYBODY - {"outsider"}
TEAM = HERE - {"neighbour"}
LEADS = frozenset({"lead", "admin"})
ACTORS = LEADS | {"operator"}
OPERATORS = frozenset({"operator", "admin"})
ADMINS = frozenset({"admin"})
LENDING = ACTORS | {"neighbour"}
"""Who has a page of loans: whoever leads a queue, and operators."""
SUBMITTERS = frozenset({"neighbour", "researcher", "scientist", "lead", "admin"})
AUDITORS = LEADS | {"approver", "operator", "finance"}
ALL_AUDITORS = AUDITORS - {"lead"}
"""They see all work, too."""
NOBODY: frozenset[str] = frozenset()
SIGNED_OUT = frozenset({"anonymous", "nobody"})


@dataclass(frozen=True)
class Row:
    """``read`` by GET; ``write`` by ``by`` (None: the address takes none). ``args`` name what is there."""

    read: frozenset[str] | None
    write: frozenset[str] | None = None
    args: dict[str, object] = field(default_factory=dict)
    query: str = ""
    by: str = "POST"


QUEUE = {"queue": "nlp"}
DIVIDED = {"queue": "language"}
WORK = {"uid": "uid-nlp"}
TOKEN, CHANGE, TEMPLATE = {"pk": "token"}, {"pk": "change"}, {"pk": "template"}
RULE, PASSKEY = {"pk": "rule"}, {"pk": "passkey"}
TEAM_OF = {"team": "team-nlp"}
PROGRAM = {**TEAM_OF, "account": "svc-okapi"}
PROGRAM_TOKEN = {**PROGRAM, "pk": "program_token"}
WHAT_IF = {"pk": "what_if"}
EXPERIMENT = {"pk": "experiment"}
REPLAY = {"pk": "replay"}
STUDY = {"pk": "study"}
LOAN, OFFER = {"pk": "loan"}, {"pk": "offer"}
ALERT = {"pk": "alert"}
CONSOLIDATION = {"pk": "consolidation"}
VIEW = {"pk": "view"}

REQUEST = {"pk": "request"}
WEBHOOK, LETTER = {"pk": "webhook"}, {"pk": "letter"}
ASKERS = frozenset({"neighbour", "researcher", "scientist", "lead", "admin"})
DECIDERS = frozenset({"lead", "approver", "admin"})


ROWS = {
    "accounts:sign_out": Row(None, ANYBODY),
    "accounts:account": Row(ANYBODY),
    "accounts:issue_token": Row(None, ANYBODY),
    "accounts:revoke_token": Row(None, NOBODY, TOKEN),
    "accounts:set_time_zone": Row(None, ANYBODY),
    "accounts:confirm_provider": Row(ANYBODY),
    "accounts:go_on": Row(ANYBODY, ANYBODY),
    "accounts:password": Row(ANYBODY, ANYBODY),
    "accounts:end_sessions": Row(None, ANYBODY),
    "accounts:end_session": Row(None, NOBODY, {"key": "okapi-session"}),
    "mfa_index": Row(ANYBODY),
    "mfa_list_webauthn": Row(ANYBODY),
    "mfa_activate_totp": Row(ANYBODY, ANYBODY),
    "mfa_deactivate_totp": Row(NOBODY, NOBODY),
    "mfa_view_recovery_codes": Row(NOBODY),
    "mfa_generate_recovery_codes": Row(ANYBODY, ANYBODY),
    "mfa_add_webauthn": Row(ANYBODY, ANYBODY),
    "mfa_remove_webauthn": Row(NOBODY, NOBODY, PASSKEY),
    "account_reauthenticate": Row(ANYBODY, ANYBODY),
    "mfa_reauthenticate": Row(ANYBODY, ANYBODY),
    "mfa_reauthenticate_webauthn": Row(ANYBODY, ANYBODY),
    "web:group_rules": Row(ADMINS, ADMINS),
    "web:group_rule_delete": Row(None, ADMINS, RULE),
    "web:service_accounts": Row(LEADS, LEADS, TEAM_OF),
    "web:service_account_delete": Row(None, LEADS, PROGRAM),
    "web:service_token_issue": Row(None, LEADS, PROGRAM),
    "web:service_token_revoke": Row(None, LEADS, PROGRAM_TOKEN),
    "web:home": Row(ANYBODY),
    "web:overview": Row(HERE),
    "web:queues": Row(HERE),
    "web:queue": Row(TEAM, args=QUEUE),
    "web:live": Row(HERE),
    "web:search": Row(HERE, query="?q=okapi"),
    "web:my_work": Row(HERE),
    "web:own_workloads": Row(HERE),
    "web:help": Row(ANYBODY),
    "web:help_page": Row(ANYBODY, args={"topic": "share"}),
    "web:workloads": Row(HERE, query="?q=okapi"),
    "web:submit": Row(SUBMITTERS, SUBMITTERS),
    "web:submit_preview": Row(None, SUBMITTERS),
    "web:template_keep": Row(None, SUBMITTERS),
    "web:template_drop": Row(None, NOBODY, TEMPLATE),
    "web:workload": Row(TEAM, args=WORK),
    "web:sooner": Row(TEAM, args=WORK),
    "web:log": Row(TEAM, args=WORK),
    "web:events": Row(TEAM, args=WORK),
    "web:cancel": Row(ACTORS, ACTORS, WORK),
    "web:change": Row(ACTORS, ACTORS, WORK),
    "web:hold": Row(None, ACTORS, WORK),
    "web:release": Row(None, ACTORS, WORK),
    "web:workloads_act": Row(None, HERE),
    "web:quotas_index": Row(HERE),
    "web:quotas": Row(TEAM, LEADS, DIVIDED),
    "web:quota_changes": Row(TEAM, args=DIVIDED),
    "web:quota_preview": Row(None, LEADS, DIVIDED),
    "web:quota_replay": Row(None, LEADS, DIVIDED),
    "web:quota_replay_state": Row(frozenset({"lead"}), args={**DIVIDED, **REPLAY}),
    "web:quota_replay_cancel": Row(None, frozenset({"lead"}), {**DIVIDED, **REPLAY}),
    "web:quota_change": Row(TEAM, args={**DIVIDED, **CHANGE}),
    "web:quota_revert": Row(LEADS, LEADS, {**DIVIDED, **CHANGE}),
    "web:queue_add": Row(LEADS, LEADS, DIVIDED),
    "web:queue_edit": Row(LEADS, LEADS, QUEUE),
    "web:requests": Row(HERE),
    "web:request_new": Row(ASKERS, ASKERS),
    "web:request_preview": Row(ASKERS),
    "web:request_rules": Row(LEADS, LEADS),
    "web:request": Row(TEAM, args=REQUEST),
    "web:request_edit": Row(NOBODY, NOBODY, REQUEST),
    **{f"web:request_{verb}": Row(None, NOBODY, REQUEST) for verb in ("submit", "withdraw")},
    **{
        f"web:request_{verb}": Row(None, DECIDERS, REQUEST)
        for verb in ("forward", "approve", "ask_changes", "reject", "revoke", "replay")
    },
    "web:request_renew": Row(None, ASKERS - {"neighbour"}, REQUEST),
    "web:request_comment": Row(None, TEAM, REQUEST),
    "web:nodes": Row(HERE),
    "web:node": Row(HERE, args={"node": "node-1"}),
    "web:consolidation": Row(OPERATORS, OPERATORS),
    "web:consolidation_cancel": Row(None, OPERATORS, CONSOLIDATION),
    "web:cluster": Row(OPERATORS),
    "web:cycle": Row(HERE, args={"number": 7}),
    "web:cycle_candidates": Row(HERE, args={"number": 7}),
    "web:cycle_snapshot": Row(ALL_AUDITORS, args={"number": 7}),
    "web:outside": Row(OPERATORS, OPERATORS),
    "web:cluster_mode": Row(OPERATORS, OPERATORS, {"mode": "paused"}),
    "web:queue_future": Row(TEAM, args=QUEUE),
    "web:loans": Row(LENDING),
    "web:loan_new": Row(LENDING - {"operator"}, LENDING - {"operator"}),
    "web:loan": Row(ACTORS, args=LOAN),
    "web:loan_act": Row(None, LEADS, {**LOAN, "verb": "decline"}),
    "web:loan_offer_withdraw": Row(None, LEADS, OFFER),
    "web:studies": Row(OPERATORS),
    "web:experiment_new": Row(OPERATORS, OPERATORS),
    "web:study": Row(OPERATORS, args=STUDY),
    "web:study_csv": Row(OPERATORS, args=EXPERIMENT),
    "web:study_cancel": Row(None, OPERATORS, STUDY),
    "web:study_keep": Row(None, OPERATORS, WHAT_IF),
    "web:study_promote": Row(None, OPERATORS, EXPERIMENT),
    "web:what_ifs": Row(OPERATORS, OPERATORS),
    "web:capacity": Row(OPERATORS, OPERATORS),
    "web:capacity_slo": Row(None, ADMINS),
    "web:start_forecasts": Row(HERE),
    "web:adapting": Row(OPERATORS),
    "web:adapting_switch": Row(None, ADMINS),
    "web:adapting_pin": Row(None, ADMINS),
    "web:queue_delete": Row(None, LEADS, QUEUE),
    "web:people": Row(ANYBODY, LEADS),
    "web:person": Row(TEAM, args={"username": "okapi-user"}),
    "web:person_active": Row(None, ADMINS, {"username": "okapi-user"}),
    "web:teams": Row(ANYBODY, ADMINS),
    "web:team": Row(TEAM, LEADS, {"team": "team-nlp"}),
    "web:team_delete": Row(None, ADMINS, {"team": "team-nlp"}),
    "web:member_remove": Row(None, LEADS, {"team": "team-nlp", "username": "okapi-user"}),
    "web:personas": Row(ANYBODY),
    "web:persona_add": Row(ADMINS, ADMINS),
    "web:persona": Row(ADMINS, ADMINS, {"persona": "researcher"}),
    "web:persona_delete": Row(None, ADMINS, {"persona": "researcher"}),
    "web:set_up": Row(ADMINS),
    "web:set_up_step": Row(ADMINS, ADMINS, {"step": "connect"}),
    "web:policy": Row(OPERATORS, ADMINS),
    "web:notices": Row(ANYBODY),
    "web:notices_read": Row(None, ANYBODY),
    "web:notice_preferences": Row(None, ANYBODY),
    "web:mail_test": Row(None, ANYBODY),
    "web:webhook_add": Row(None, ANYBODY),
    "web:webhook_remove": Row(None, NOBODY, WEBHOOK),
    "web:webhook_test": Row(None, NOBODY, WEBHOOK),
    "web:dead_letters": Row(OPERATORS),
    "web:dead_letter_again": Row(None, OPERATORS, LETTER),
    "web:dead_letter_drop": Row(None, OPERATORS, LETTER),
    "web:sent": Row(NOBODY),
    "web:audit": Row(AUDITORS),
    "web:audit_csv": Row(AUDITORS),
    "web:metrics": Row(OPERATORS, ADMINS),
    "web:alerts": Row(LENDING, LENDING),
    "web:alert_preview": Row(LENDING),
    "web:alert_rule": Row(ACTORS, ACTORS, ALERT),
    "web:alert_acknowledge": Row(None, ACTORS, ALERT),
    "web:alert_delete": Row(None, ACTORS, ALERT),
    "web:alert_test": Row(None, ACTORS, ALERT),
    "web:alert_past": Row(LENDING),
    "web:alert_past_csv": Row(LENDING),
    "api:alerts": Row(LENDING, LENDING),
    "api:alert_past": Row(LENDING),
    "api:alert": Row(ACTORS, ACTORS, ALERT, by="PUT"),
    "api:alert_test": Row(None, ACTORS, ALERT),
    "api:alert_acknowledge": Row(None, ACTORS, ALERT),
    "api:budgets": Row(HERE, LENDING - {"operator"}),
    "api:budget": Row(DECIDERS | {"finance"}, LEADS, {"pk": "budget"}, by="DELETE"),
    "reports:use_nudge": Row(None, ACTORS, WORK),
    "reports:use_keep": Row(None, NOBODY, WORK),
    "reports:use_tell": Row(None, ACTORS, WORK),
    "reports:budgets": Row(LENDING - {"operator"}, LENDING - {"operator"}),
    "reports:budget_drop": Row(None, LEADS, {"pk": "budget"}),
    "reports:views": Row(HERE),
    "reports:view_save": Row(None, HERE),
    "reports:view_change": Row(None, NOBODY, VIEW),
    "api:report_views": Row(HERE, HERE),
    "api:report_view": Row(NOBODY, args=VIEW),
    **{
        f"reports:{name}{ending}": Row(HERE) for name in REPORTS for ending in ("", "_csv", "_json")
    },
    "api:me": Row(ANYBODY),
    "api:tokens": Row(ANYBODY, ANYBODY),
    "api:sessions": Row(ANYBODY),
    "api:session": Row(None, NOBODY, {"key": "okapi-session"}, by="DELETE"),
    "api:group_rules": Row(ADMINS, ADMINS),
    "api:group_rule": Row(ADMINS, ADMINS, RULE, by="DELETE"),
    "api:service_accounts": Row(LEADS, LEADS, TEAM_OF),
    "api:service_account": Row(LEADS, LEADS, PROGRAM, by="DELETE"),
    "api:service_tokens": Row(None, LEADS, PROGRAM),
    "api:service_token": Row(None, LEADS, PROGRAM_TOKEN, by="DELETE"),
    "api:token": Row(None, NOBODY, TOKEN, by="DELETE"),
    "api:people": Row(ANYBODY, LEADS),
    "api:person": Row(TEAM, ADMINS, {"username": "okapi-user"}, by="PUT"),
    "api:person_may": Row(TEAM, args={"username": "okapi-user"}),
    "api:teams": Row(ANYBODY, ADMINS),
    "api:team": Row(TEAM, ADMINS, {"name": "team-nlp"}, by="PUT"),
    "api:team_member": Row(
        LEADS, LEADS, {"name": "team-nlp", "username": "okapi-user"}, by="DELETE"
    ),
    "api:personas": Row(ANYBODY, ADMINS),
    "api:persona": Row(ADMINS, ADMINS, {"name": "researcher"}, by="PUT"),
    "api:persona_preview": Row(None, ADMINS, {"name": "researcher"}),
    "api:priority_class": Row(ANYBODY, ADMINS, {"name": "normal"}, by="PUT"),
    "api:gpu_class": Row(HERE, ADMINS, {"name": GPUS}, by="PUT"),
    "api:policy": Row(OPERATORS, ADMINS, by="PUT"),
    "api:outside": Row(OPERATORS, OPERATORS),
    "api:tree": Row(ADMINS, ADMINS, by="PUT"),
    "api:processes": Row(OPERATORS),
    "api:streams": Row(OPERATORS),
    # By tokens of the directory alone: tests/portal/scim.
    "scim:config": Row(NOBODY),
    "scim:types": Row(NOBODY),
    "scim:type": Row(NOBODY, args={"name": "User"}),
    "scim:schemas": Row(NOBODY),
    "scim:schema": Row(NOBODY, args={"name": "User"}),
    "scim:users": Row(NOBODY, NOBODY),
    "scim:user": Row(NOBODY, NOBODY, {"pk": "token"}, by="PUT"),
    "scim:groups": Row(NOBODY, NOBODY),
    "scim:group": Row(NOBODY, NOBODY, {"pk": "token"}, by="PUT"),
    "api:notices": Row(ANYBODY),
    "api:notices_read": Row(None, ANYBODY),
    "api:notice_preferences": Row(ANYBODY, ANYBODY, by="PUT"),
    "api:webhooks": Row(ANYBODY, ANYBODY),
    "api:webhook": Row(None, NOBODY, WEBHOOK, by="DELETE"),
    "api:webhook_test": Row(None, NOBODY, WEBHOOK),
    "api:dead_letters": Row(OPERATORS),
    "api:dead_letter_again": Row(None, OPERATORS, LETTER),
    "api:dead_letter_drop": Row(None, OPERATORS, LETTER),
    "api:audit": Row(AUDITORS),
    "api:audit_verdict": Row(ALL_AUDITORS),
    "api:priority_classes": Row(ANYBODY, ADMINS),
    "api:clusters": Row(ANYBODY, ADMINS),
    "api:cluster": Row(HERE),
    "api:cluster_mode": Row(None, OPERATORS),
    "api:gpu_classes": Row(HERE, ADMINS),
    "api:nodes": Row(HERE),
    "api:guardrails": Row(OPERATORS),
    "api:queues": Row(HERE, LEADS | {"neighbour"}),
    "api:queue": Row(TEAM, LEADS, {"name": "nlp"}, by="DELETE"),
    "api:quotas": Row(HERE, HERE),
    "api:quota_preview": Row(None, HERE),
    "api:quota_changes": Row(HERE),
    "api:quota_revert": Row(None, LEADS, CHANGE),
    "api:workloads": Row(HERE, HERE),
    "api:workload": Row(TEAM, args=WORK),
    "api:workload_sooner": Row(TEAM, args=WORK),
    "api:workload_log": Row(TEAM, args=WORK),
    "api:workload_events": Row(TEAM, args=WORK),
    "api:workload_cancel": Row(None, ACTORS, WORK),
    "api:workload_priority": Row(None, ACTORS, WORK),
    "api:workload_actions": Row(None, HERE),
    "api:workload_change": Row(None, ACTORS, WORK),
    "api:workload_change_preview": Row(None, ACTORS, WORK),
    "api:workload_hold": Row(None, ACTORS, WORK),
    "api:workload_release": Row(None, ACTORS, WORK),
    "api:requests": Row(HERE, HERE),
    "api:loans": Row(HERE, HERE),
    "api:loan": Row(ACTORS, args=LOAN),
    "api:loan_act": Row(None, LEADS, {**LOAN, "verb": "decline"}),
    "api:loan_offers": Row(HERE, HERE),
    "api:loan_offer": Row(LENDING, LEADS, OFFER, by="DELETE"),
    "api:request": Row(TEAM, NOBODY, REQUEST, by="PUT"),
    "api:request_preview": Row(TEAM, args=REQUEST),
    **{f"api:request_{verb}": Row(None, NOBODY, REQUEST) for verb in ("submit", "withdraw")},
    **{
        f"api:request_{verb}": Row(None, DECIDERS, REQUEST)
        for verb in ("forward", "approve", "ask_changes", "reject", "revoke")
    },
    "api:request_renew": Row(None, ASKERS - {"neighbour"}, REQUEST),
    "api:request_comments": Row(None, TEAM, REQUEST),
    "api:request_rules": Row(HERE),
    "api:request_rule": Row(TEAM, LEADS, DIVIDED, by="PUT"),
    "api:cycles": Row(HERE),
    "api:cycle": Row(HERE, args={"number": 7}),
    "api:decisions": Row(HERE),
    "api:evictions": Row(HERE),
    "api:reports": Row(HERE),
    **{f"api:{name}": Row(HERE) for name in REPORTS},
    "api:studies": Row(OPERATORS, OPERATORS),
    "api:study": Row(OPERATORS, OPERATORS, STUDY, by="DELETE"),
    "api:study_cancel": Row(None, OPERATORS, EXPERIMENT),
    "api:study_promote": Row(None, OPERATORS, EXPERIMENT),
    "api:forecast_score": Row(HERE),
    "api:adaptation": Row(OPERATORS, ADMINS, by="PUT"),
    "api:adapting_parameter": Row(OPERATORS, ADMINS, {"name": "charge"}, by="PUT"),
    "api:consolidations": Row(OPERATORS, OPERATORS),
    "api:consolidation": Row(OPERATORS, OPERATORS, CONSOLIDATION, by="DELETE"),
    "api:schema": Row(ANYBODY),
    "api:docs": Row(ANYBODY),
    "api:nothing": Row(NOBODY),
    "no_such_api": Row(NOBODY),
}
OPEN = {
    "accounts:sign_in", "web:first_admin", "accounts:provider", "account_login", "account_inactive",
    "account_signup", "web:sent_sink",
    "mfa_authenticate", "mfa_login_webauthn", "openid_connect_callback", "socialaccount_signup",
    "socialaccount_login_cancelled", "saml_acs", "saml_finish_acs", "saml_metadata", "saml_sls",
}  # fmt: skip
"""Addresses for people who are not signed in."""

ABSENT = {
    "cluster": "nowhere", "queue": "nowhere", "name": "nowhere", "uid": "uid-nowhere",
    "mode": "nowhere", "node": "nowhere", "topic": "nowhere",
    "team": "nowhere", "account": "svc-nowhere", "key": "nowhere",
    "verb": "nowhere", "step": "nowhere", "persona": "nowhere", "username": "nobody",
    "pk": 999_999, "number": 999_999,
}  # fmt: skip


def addresses(resolver: URLResolver, namespace: str = "") -> Iterator[tuple[str, set[str]]]:
    """(name, names of its arguments) of every address."""
    for entry in resolver.url_patterns:
        arguments = set(entry.pattern.converters)
        if isinstance(entry, URLPattern):
            yield f"{namespace}{entry.name}", arguments
        else:
            below = f"{entry.namespace}:" if entry.namespace else namespace
            for name, more in addresses(entry, below):
                yield name, arguments | more


ADDRESSES = dict(addresses(get_resolver()))


NO_ADDRESS = {"api:nothing": "/api/v1/no-such-address", "no_such_api": "/api/v0/clusters/"}
"""What answers where nothing is."""


def test_every_address_has_a_row():
    assert set(ADDRESSES) == set(ROWS) | OPEN
