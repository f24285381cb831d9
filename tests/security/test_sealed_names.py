"""What is asked of each address to make it name what is sealed; ``tests/walk`` asks it.

An address without a row fails there.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.conf import settings

from portal.reports.kinds import REPORTS
from tests.security.sealed import GPUS, SEALED_FROM

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"

LISTS = ("?q=zebra", "?name=zebra", "?name=quokka", "?user=zebra-user", "?queue=zebra-vision",
         "?queue=quokka-products", "?state=all", "?export=csv", "?state=all&export=csv",
         "?state=all&page=2", "?ordering=name", "?limit=500", "?queue=nlp&state=all")  # fmt: skip
LEDGER = ("?workload=uid-vision", "?workload=uid-nlp", "?cycle=7", "?queue=quokka-search",
          "?for_queue=zebra-vision", "?limit=500", "?reason=reclaimed")  # fmt: skip
REPORT = ("?queue=zebra-vision", "?queue=quokka-search", "?class=quokka", "?table=matrix",
          "?user=zebra-user", "?from=2026-11-18&to=2026-11-19", "?queue=nlp",
          "?table=queues", "?compare=on")  # fmt: skip
OFFSETS = tuple(f"?limit=100&offset={at}" for at in (100, 200))

PROBE = "PROBE"
"""Stands in a payload where a name is tried."""
SUBMIT = {"name": "x", "queue": PROBE, "image": "i", "gpu_classes": GPUS}
CELL = {"gpu_class": GPUS, "field": "nominal", "value": 1}
TREE = {"name": "fresh", "parent": "nlp", "priority": 0, "stop": "none"}
WISH = {"kind": "quota", "queue": PROBE, "gpu_class": GPUS, "gpus": 1, "reason": "r"}
MANIFEST = {
    "apiVersion": "batch/v1", "kind": "Job",
    "metadata": {"name": "x", "namespace": PROBE, "labels": {"weir.dev/queue": "nlp"}},
    "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": []}}},
}  # fmt: skip


@dataclass(frozen=True)
class Address:
    """``queries`` beside none; ``probes`` are payloads in which names are tried, sent by ``by``."""

    queries: tuple[str, ...] = ()
    probes: tuple[dict[str, Any], ...] = ()
    shows: bool = False
    """It tells operators of others' work."""
    by: str = "POST"
    tries: str = "zebra-vision"
    """The name that is tried, of something that nobody below the head of research sees."""
    by_name: frozenset[str] = frozenset()
    """Who may find out that a user name is taken: they give it a persona by name."""


PLAIN, SHOWN = Address(), Address(shows=True)
GIVER = frozenset({"chief"})
MAY = ("?verb=see&on=nlp", "?verb=members&on=nlp", "?verb=submit&on=zebra-vision",
       "?verb=submit&on=quokka-search", "?verb=act&on=zebra-run")  # fmt: skip
MAY_API = tuple(query.replace("verb", "capability") for query in MAY)
QUESTION = {"kind": "quota", "queue": PROBE, "gpu_class": GPUS, "nominal_gpus": 3}
TERMS = {
    "gpu_class": GPUS,
    "gpus": "1",
    "until": "2030-01-01T00:00:00Z",
    "notice_h": "24",
    "reason": "r",
}
PERSONA = {"name": "fresh", "grants": {"see": "team"}, "gpu_classes": [PROBE]}
QUIET = (
    "energy", "reservations", "waits", "starts", "longest", "fairness", "fragmentation", "forecast",
)  # fmt: skip
"""Reports that the organisation has nothing for, or whose figures are of no queue."""
ADDRESSES = {
    "accounts:sign_in": Address(
        ("?next=/c/fra1/w/uid-vision/",), ({"username": PROBE, "password": "wrong"},)
    ),
    "accounts:sign_out": PLAIN,
    "accounts:account": PLAIN,
    "accounts:issue_token": PLAIN,
    "accounts:revoke_token": PLAIN,
    "accounts:end_sessions": PLAIN,
    "accounts:end_session": PLAIN,
    "accounts:provider": PLAIN,
    "accounts:confirm_provider": PLAIN,
    "accounts:go_on": PLAIN,
    **dict.fromkeys(
        (
            "account_login", "account_inactive", "account_signup", "account_reauthenticate",
            "mfa_authenticate", "mfa_login_webauthn", "mfa_index", "mfa_list_webauthn",
            "mfa_activate_totp", "mfa_deactivate_totp", "mfa_view_recovery_codes",
            "mfa_generate_recovery_codes", "mfa_add_webauthn", "mfa_remove_webauthn",
            "mfa_reauthenticate", "mfa_reauthenticate_webauthn", "openid_connect_callback",
            "socialaccount_signup", "socialaccount_login_cancelled",
            "saml_acs", "saml_finish_acs", "saml_metadata", "saml_sls",
        ),
        PLAIN,
    ),
    "web:group_rules": Address(probes=({"group": "g", "team": PROBE, "persona": PROBE},)),
    "web:group_rule_delete": PLAIN,
    "web:service_accounts": Address(probes=({"name": "n", "persona": PROBE},)),
    "web:service_account_delete": PLAIN,
    "web:service_token_issue": Address(probes=({"name": PROBE},)),
    "web:service_token_revoke": PLAIN,
    "api:sessions": PLAIN,
    "api:session": PLAIN,
    "api:group_rules": Address(probes=({"group": "g", "team": PROBE, "persona": PROBE},)),
    "api:group_rule": PLAIN,
    "api:service_accounts": Address(probes=({"name": "n", "persona": PROBE},)),
    "api:service_account": PLAIN,
    "api:service_tokens": Address(probes=({"name": PROBE},)),
    "api:service_token": PLAIN,
    **dict.fromkeys(
        (
            "web:first_admin", "web:set_up", "web:person_active", "web:team_delete",
            "web:member_remove", "web:personas", "web:persona_delete", "web:audit_csv",
            "web:queue_future", "web:study_cancel", "web:study_keep",
            "web:start_forecasts", "api:audit_verdict", "api:forecast_score", "api:processes", "api:streams",
            "web:adapting", "web:adapting_switch", "scim:config", "scim:types", "scim:type",
            "scim:schemas", "scim:schema", "scim:users", "scim:user", "scim:groups", "scim:group",
        ),
        PLAIN,
    ),
    "web:set_up_step": Address(probes=({"name": PROBE}, {"text": PROBE}, {"queue": PROBE})),
    "web:policy": Address(probes=({"cycle_interval_s": PROBE, "reason": "r"}, {"reason": PROBE})),
    "web:people": Address(
        probes=({"username": PROBE},), tries="zebra-user", by_name=GIVER, shows=True
    ),
    "web:person": Address(MAY, shows=True),
    "web:teams": Address(probes=({"name": PROBE, "queue": PROBE},), tries="zebra-team", shows=True),
    "web:team": Address(
        probes=({"user": PROBE, "persona": "elsewhere"},), tries="zebra-user", by_name=GIVER, shows=True
    ),
    "web:persona": Address(probes=(PERSONA,)),
    "web:persona_add": Address(probes=(PERSONA,)),
    "web:audit": Address(("?q=zebra", "?who=quokka-user", "?q=okapi", "?what=people"), shows=True),
    "web:what_ifs": Address(
        ("?add=quota&queue=zebra-vision", f"?{urlencode({'change': json.dumps(QUESTION)})}"),
        ({"change": json.dumps(QUESTION), "days": "now"}, {"change": PROBE}),
        shows=True,
    ),
    "web:capacity": Address(
        ("?class=quokka", f"?class={GPUS}", "?format=json"), ({"days": PROBE},)
    ),
    "web:capacity_slo": Address(probes=({"gpu_class": PROBE}, {"gpu_class": GPUS, "minutes": PROBE})),
    "web:studies": Address(("?of=what-ifs", "?of=adaptation"), shows=True),
    "web:experiment_new": Address(
        probes=(
            {"name": PROBE}, {"variant": PROBE},
            {"add": "quota", "quota-queue": PROBE, "quota-nominal_gpus": "1"},
        ),
        shows=True,
    ),
    "web:study": SHOWN,
    "web:study_csv": SHOWN,
    "web:study_promote": Address(probes=({"letter": "B", "reason": PROBE}, {"letter": PROBE})),
    "api:studies": Address(
        ("?limit=500", "?kind=capacity"),
        (
            {"kind": "experiment", "name": PROBE}, {"kind": "capacity", "days": PROBE}, {"kind": PROBE},
            {"kind": "experiment", "name": "n", "variants": [{"name": "n", "changes": [QUESTION]}]},
            {"kind": "replay", "changes": [QUESTION]}, {"kind": "now", "changes": [QUESTION]},
            {"kind": "replay", "changes": [{**QUESTION, "queue": "nlp", "gpu_class": PROBE}]},
        ),
        shows=True,
    ),
    "api:study": SHOWN,
    "api:study_cancel": Address(probes=({"letter": PROBE},)),
    "api:study_promote": Address(probes=({"letter": "B", "reason": PROBE},)),
    "api:audit": Address(("?q=zebra", "?who=quokka-user", "?limit=500"), shows=True),
    "api:people": Address(
        ("?limit=500",), ({"username": PROBE},), tries="zebra-user", by_name=GIVER, shows=True
    ),
    "api:person": Address(probes=({"is_active": PROBE},), by="PUT", shows=True),
    "api:person_may": Address(MAY_API, shows=True),
    "api:team_member": Address(
        probes=({"persona": PROBE}, {"persona": "elsewhere", "until": PROBE}), by="PUT"
    ),
    "api:persona": Address(probes=(PERSONA,), by="PUT"),
    "api:persona_preview": Address(probes=(PERSONA,)),
    "api:priority_class": Address(probes=({"name": PROBE}, {"type": PROBE}), by="PUT"),
    "api:gpu_class": Address(probes=({"name": PROBE},), by="PUT"),
    "api:policy": Address(
        probes=({"values": {PROBE: 1}, "reason": "r"}, {"values": {"order": PROBE}, "reason": "r"}),
        by="PUT",
    ),
    "api:tree": Address(
        probes=(
            {"queues": [{"name": PROBE}]}, {"queues": [{"name": "x", "children": [{"name": PROBE}]}]},
            {"queues": [{"name": "x", "quotas": {PROBE: 1}}]},
        ),
        by="PUT",
    ),
    "web:adapting_pin": Address(probes=({"name": PROBE},)),
    "api:adaptation": Address(probes=({"is_on": PROBE},), by="PUT"),
    "api:adapting_parameter": Address(probes=({"is_pinned": PROBE},), by="PUT"),
    "accounts:password": Address(probes=({"old_password": PROBE},)),
    "accounts:set_time_zone": Address(probes=({"display_time_zone": PROBE},)),
    "web:home": PLAIN,
    "web:overview": Address((f"?class={GPUS}", "?class=quokka"), shows=True),
    "web:queues": Address((f"?class={GPUS}", "?class=quokka", "?sort=-held"), shows=True),
    "web:queue": Address((f"?class={GPUS}",), shows=True),
    "web:nodes": Address((f"?class={GPUS}", "?domain=zebra", "?class=quokka"), shows=True),
    "web:node": SHOWN,
    "web:consolidation": PLAIN,
    "web:consolidation_cancel": PLAIN,
    "api:outside": Address(probes=({"workloads": [PROBE], "owner": PROBE},)),
    "api:consolidations": Address(probes=({"gpu_class": PROBE, "nodes": 1},)),
    "api:consolidation": PLAIN,
    "web:live": Address(("?once=1",)),
    "web:search": Address(
        ("?q=zebra", "?q=quokka", "?q=okapi", "?q=team", "?q=run", "?q=/", "?q=user"), shows=True
    ),
    "web:my_work": Address((f"?class={GPUS}", "?class=quokka")),
    "web:own_workloads": Address(LISTS),
    "web:help": PLAIN,
    "web:help_page": PLAIN,
    "web:workloads": Address(LISTS, shows=True),
    "web:submit": Address(
        ("?queue=zebra-vision",), (SUBMIT, {"manifest": PROBE}, {**SUBMIT, "queue": "nlp", "name": PROBE})
    ),
    "web:submit_preview": Address(probes=(SUBMIT, {**SUBMIT, "queue": "nlp", "name": PROBE})),
    "web:template_keep": Address(probes=({"template_name": "t", "template_team": PROBE},)),
    "web:template_drop": PLAIN,
    "web:workload": SHOWN,
    "web:sooner": PLAIN,
    "web:log": PLAIN,
    "web:events": PLAIN,
    "web:cancel": SHOWN,
    "web:change": Address(
        probes=({"after": PROBE, "gpus_per_pod": "1", "pods_min": "1", "pods_max": "1"},)
    ),
    "web:hold": PLAIN,
    "web:release": PLAIN,
    "web:workloads_act": Address(
        probes=(
            {"uid": PROBE, "action": "hold"},
            {"uid": PROBE, "action": "cancel"},
            {"uid": PROBE, "action": "priority", "priority_class": PROBE},
        )
    ),
    "web:quotas_index": PLAIN,
    "web:quotas": Address(("?class=quokka",), ({f"nominal:{PROBE}:{GPUS}": "3", "reason": "r"},), shows=True),
    "web:quota_changes": SHOWN,
    "web:quota_preview": Address(probes=({f"nominal:{PROBE}:{GPUS}": "3"},)),
    "web:quota_replay": Address(probes=({f"nominal:{PROBE}:{GPUS}": "3"},)),
    "web:quota_replay_state": PLAIN,
    "web:quota_replay_cancel": PLAIN,
    "web:quota_change": PLAIN,
    "web:quota_revert": Address(probes=({"reason": "r"},)),
    "web:queue_add": Address(
        probes=({**TREE, "parent": PROBE}, {**TREE, "namespace": PROBE}), shows=True
    ),
    "web:queue_edit": Address(probes=({**TREE, "parent": PROBE}, {**TREE, "namespace": PROBE}), shows=True),
    "web:queue_delete": PLAIN,
    "web:cluster": SHOWN,
    "web:cycle": SHOWN,
    "web:cycle_candidates": SHOWN,
    "web:cycle_snapshot": SHOWN,
    "web:cluster_mode": PLAIN,
    "web:outside": Address(probes=({"work": PROBE, "owner": PROBE},)),
    "web:metrics": Address(probes=({"url": "http://127.0.0.1:9", "activity": PROBE},)),
    "web:alerts": Address(
        ("?new=1", "?show=mine"),
        ({"figure": "longest_wait", "queue": PROBE, "over": "60", "tell": "leads"},),
        shows=True,
    ),
    "web:alert_preview": Address(
        (
            "?figure=longest_wait&queue=zebra-vision&over=60&tell=leads",
            "?figure=longest_wait&queue=&over=1&tell=operators",
            "?figure=idle_gpus&queue=&over=1&tell=operators",
        ),
    ),
    "web:alert_rule": PLAIN,
    "web:alert_acknowledge": PLAIN,
    "web:alert_delete": PLAIN,
    "web:alert_test": PLAIN,
    "web:alert_past": Address(("?show=mine",), shows=True),
    "web:alert_past_csv": PLAIN,
    "api:alerts": Address(
        probes=(
            {"figure": "longest_wait", "over": 60, "queue": PROBE},
            {"figure": "longest_wait", "over": 60, "gpu_class": PROBE},
            {"figure": "longest_wait", "over": 60, "escalate_s": 60, "escalate_team": PROBE},
        ),
        shows=True,
    ),
    "api:alert_past": PLAIN,
    "api:alert": PLAIN,
    "api:alert_test": PLAIN,
    "api:alert_acknowledge": PLAIN,
    "api:budgets": Address(
        probes=({"queue": PROBE, "amount": "5", "begin": "2026-11-01", "end": "2026-11-30"},)
    ),
    "api:budget": PLAIN,
    "reports:use_nudge": PLAIN,
    "reports:use_keep": PLAIN,
    "reports:use_tell": PLAIN,
    "reports:budgets": Address(
        probes=({"queue": PROBE, "amount": "5", "begin": "2026-11-01", "end": "2026-11-30"},)
    ),
    "reports:budget_drop": PLAIN,
    "reports:views": PLAIN,
    "reports:view_save": Address(
        probes=(
            {"name": PROBE, "kind": "use", "query": ""},
            {"name": "n", "kind": "use", "query": f"queue={PROBE}"},
        )
    ),
    "reports:view_change": PLAIN,
    "api:report_views": Address(
        probes=(
            {"name": PROBE, "kind": "use", "query": ""},
            {"name": "n", "kind": "use", "query": f"queue={PROBE}"},
        )
    ),
    "api:report_view": PLAIN,
    **{
        f"reports:{name}{ending}": Address(REPORT, shows=name not in QUIET)
        for name in REPORTS
        for ending in ("", "_csv", "_json")
    },
    **{
        f"web:request_{verb}": Address(probes=({"note": "n", "giver": PROBE},))
        for verb in ("forward", "approve")
    },
    **{
        f"{part}:request_{verb}": PLAIN
        for part in ("web", "api")
        for verb in ("submit", "ask_changes", "reject", "withdraw", "revoke", "renew")
    },
    **{
        f"api:request_{verb}": Address(probes=({"note": "n", "giver": PROBE},))
        for verb in ("forward", "approve")
    },
    "web:loans": PLAIN,
    "web:loan_new": Address(
        ("?kind=lend&borrower=zebra-vision", "?offer=1"),
        (
            {"kind": "ask", "borrower": "nlp", "lender": PROBE, **TERMS},
            {"kind": "lend", "lender": PROBE, "borrower": "nlp", **TERMS},
        ),
    ),
    "web:loan": PLAIN,
    "web:loan_act": PLAIN,
    "web:loan_offer_withdraw": PLAIN,
    "api:loans": Address(
        probes=(
            {"kind": "ask", "borrower": "nlp", "lender": PROBE, **TERMS},
            {"kind": "lend", "lender": "nlp", "borrower": PROBE, **TERMS},
        )
    ),
    "api:loan": PLAIN,
    "api:loan_act": PLAIN,
    "api:loan_offers": Address(probes=({"lender": PROBE, **TERMS},)),
    "api:loan_offer": PLAIN,
    "web:requests": Address(("?state=all", "?state=decide")),
    "web:request": SHOWN,
    "web:request_new": Address(("?queue=zebra-vision",), (WISH, {**WISH, "queue": "nlp", "giver": PROBE})),
    "web:request_preview": Address(probes=(WISH, {**WISH, "queue": "nlp", "giver": PROBE})),
    "web:request_edit": PLAIN,
    "web:request_comment": PLAIN,
    "web:request_replay": PLAIN,
    "web:request_rules": PLAIN,
    "web:notices": PLAIN,
    "web:notices_read": PLAIN,
    "web:notice_preferences": PLAIN,
    "web:mail_test": PLAIN,
    "web:webhook_add": Address(probes=({"name": PROBE, "address": "https://192.0.2.1/"},)),
    "web:webhook_remove": PLAIN,
    "web:webhook_test": PLAIN,
    "web:dead_letters": SHOWN,
    "web:dead_letter_again": PLAIN,
    "web:dead_letter_drop": PLAIN,
    "web:sent": PLAIN,
    "web:sent_sink": PLAIN,
    "api:requests": Address(
        ("?state=all", "?state=decide"), (WISH, {**WISH, "queue": "nlp", "giver": PROBE}), shows=True
    ),
    "api:request": Address(probes=(WISH,), by="PUT", shows=True),
    "api:request_preview": PLAIN,
    "api:request_comments": PLAIN,
    "api:request_rules": PLAIN,
    "api:request_rule": Address(by="PUT"),
    "api:notices": PLAIN,
    "api:notices_read": PLAIN,
    "api:notice_preferences": Address(by="PUT"),
    "api:webhooks": Address(probes=({"name": PROBE, "address": "https://192.0.2.1/"},)),
    "api:webhook": PLAIN,
    "api:webhook_test": PLAIN,
    "api:dead_letters": SHOWN,
    "api:dead_letter_again": PLAIN,
    "api:dead_letter_drop": PLAIN,
    "api:quota_preview": Address(probes=({"cells": [{**CELL, "queue": PROBE}]},)),
    "api:workload_sooner": PLAIN,
    "api:workload_log": PLAIN,
    "api:workload_events": PLAIN,
    "api:me": PLAIN,
    "api:tokens": Address(probes=({"name": PROBE},)),
    "api:token": PLAIN,
    "api:teams": Address(
        probes=({"name": PROBE, "cluster": "fra1", "queue": PROBE},), tries="zebra-team", shows=True
    ),
    "api:team": Address(
        probes=({"name": PROBE, "cluster": "fra1", "queue": "nlp"},), tries="zebra-team", shows=True, by="PUT"
    ),
    "api:personas": Address(probes=(PERSONA,)),
    "api:priority_classes": Address(probes=({"name": PROBE},)),
    "api:clusters": Address(probes=({"name": PROBE, "api_url": PROBE},)),
    "api:cluster": PLAIN,
    "api:cluster_mode": Address(probes=({"mode": PROBE},)),
    "api:gpu_classes": Address(probes=({"name": PROBE},)),
    "api:nodes": Address(("?gpu_class__name=quokka",)),
    "api:guardrails": Address(("?namespace=zebra-vision", "?kind=Namespace"), shows=True),
    "api:queues": Address(
        probes=({**TREE, "parent": PROBE}, {**TREE, "namespace": PROBE}), shows=True
    ),
    "api:queue": PLAIN,
    "api:quotas": Address(
        ("?all=true", "?queue=quokka-search", "?at=2026-11-19T09:00:00Z"),
        (
            {"queue": PROBE, "cells": [{**CELL, "queue": "nlp"}], "reason": "r"},
            {"queue": "nlp", "cells": [{**CELL, "queue": PROBE}], "reason": "r"},
        ),
        shows=True,
    ),
    "api:quota_changes": SHOWN,
    "api:quota_revert": Address(probes=({"reason": "r"},)),
    "api:workloads": Address((*LISTS, *OFFSETS), (
        {**SUBMIT, "gpu_classes": [GPUS]}, {"manifest": MANIFEST},
        {**SUBMIT, "queue": "nlp", "gpu_classes": [PROBE]},
    ), shows=True),
    "api:workload": SHOWN,
    "api:workload_cancel": PLAIN,
    "api:workload_change": Address(probes=({"after": [PROBE]}, {"gpu_classes": [PROBE]})),
    "api:workload_change_preview": Address(probes=({"after": [PROBE]}, {"priority_class": PROBE})),
    "api:workload_hold": PLAIN,
    "api:workload_release": PLAIN,
    "api:workload_priority": Address(probes=({"priority_class": PROBE},)),
    "api:workload_actions": Address(
        probes=(
            {"uids": [PROBE], "action": "hold"},
            {"uids": [PROBE], "action": "priority", "priority_class": "normal"},
        )
    ),
    "api:cycles": PLAIN,
    "api:cycle": PLAIN,
    "api:decisions": Address((*LEDGER, *OFFSETS), shows=True),
    "api:evictions": Address((*LEDGER, *OFFSETS), shows=True),
    "api:reports": PLAIN,
    **{
        f"api:{name}": Address(REPORT, shows=name not in QUIET)
        for name in REPORTS
    },
    "api:schema": PLAIN,
    "api:docs": PLAIN,
    "api:nothing": PLAIN,
    "no_such_api": PLAIN,
}  # fmt: skip
VARIANTS: tuple[dict[str, str], ...] = (
    {},
    {"HTTP_HX_REQUEST": "true"},
    {"HTTP_X_WEIR_LIVE": "1"},
    {"HTTP_ACCEPT": "text/html"},
)
"""Headers that change a page; the other addresses know only whether somebody wants HTML."""
PLAINLY = (VARIANTS[0], VARIANTS[-1])


RAW = re.compile(
    r"\{[{%][^}]*\b(?:work|workload|decision|eviction|row|step)\.(?:sentence|numbers|for_workload|for_queue)\b"
    r"(?!_id)[^}]*\}"
)
ASKS = re.compile(r"\{% (?:if|elif) [^}]*\}|\{% name_of_\w+ [^}]*\}")


def test_templates_take_what_rows_say_through_the_door():
    found = [
        (path.name, match[0])
        for path in (Path(settings.BASE_DIR) / "templates").rglob("*.html")
        for match in RAW.finditer(path.read_text())
        if not ASKS.fullmatch(match[0])
    ]
    assert found == []


def variants(name: str, who: str) -> tuple[dict[str, str], ...]:
    """None, and another one for the next person and the next page; at night all."""
    if name.startswith("api:"):
        return PLAINLY
    plain, *others = VARIANTS
    turn = [*ADDRESSES].index(name) + sorted(SEALED_FROM).index(who)
    return VARIANTS if NIGHTLY else (plain, others[turn % len(others)])


def tried(payload: Any, name: str) -> Any:
    """``payload`` with ``name`` where one is tried."""
    if isinstance(payload, dict):
        return {tried(key, name): tried(value, name) for key, value in payload.items()}
    if isinstance(payload, list):
        return [tried(value, name) for value in payload]
    return payload.replace(PROBE, name) if isinstance(payload, str) else payload
