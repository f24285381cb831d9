"""Addresses of the API, below /api/v1/. No address ends in a slash."""

from django.urls import path, re_path

from portal.api import (
    access,
    audit,
    clusters,
    consolidations,
    docs,
    foresight,
    ledger,
    members,
    notices,
    people,
    previews,
    processes,
    quotas,
    reports,
    requests,
    setting_up,
    workloads,
)

app_name = "api"

CLUSTER = "clusters/<slug:cluster>"
WORKLOAD = f"{CLUSTER}/workloads/<str:uid>"
REQUEST = f"{CLUSTER}/requests/<int:pk>"
ACCOUNTS = "teams/<str:team>/service-accounts"
ACCOUNT = f"{ACCOUNTS}/<str:account>"

urlpatterns = [
    path("me", people.Me.as_view(), name="me"),
    path("tokens", people.TokenList.as_view(), name="tokens"),
    path("tokens/<int:pk>", people.TokenDetail.as_view(), name="token"),
    path("sessions", access.SessionList.as_view(), name="sessions"),
    path("sessions/<str:key>", access.SessionDetail.as_view(), name="session"),
    path("group-rules", access.GroupRuleList.as_view(), name="group_rules"),
    path("group-rules/<int:pk>", access.GroupRuleDetail.as_view(), name="group_rule"),
    path(ACCOUNTS, access.ServiceAccountList.as_view(), name="service_accounts"),
    path(ACCOUNT, access.ServiceAccountDetail.as_view(), name="service_account"),
    path(f"{ACCOUNT}/tokens", access.ServiceTokenList.as_view(), name="service_tokens"),
    path(f"{ACCOUNT}/tokens/<int:pk>", access.ServiceTokenDetail.as_view(), name="service_token"),
    path("people", members.PersonList.as_view(), name="people"),
    path("people/<str:username>", members.PersonDetail.as_view(), name="person"),
    path("people/<str:username>/may", members.PersonMay.as_view(), name="person_may"),
    path("teams", members.Teams.as_view(), name="teams"),
    path("teams/<str:name>", members.OneTeam.as_view(), name="team"),
    path(
        "teams/<str:name>/members/<str:username>", members.TeamMember.as_view(), name="team_member"
    ),
    path("personas", members.Personas.as_view(), name="personas"),
    path("personas/<str:name>", members.PersonaDetail.as_view(), name="persona"),
    path("processes", processes.ProcessList.as_view(), name="processes"),
    path("notices", notices.NoticeList.as_view(), name="notices"),
    path("notices/read", notices.NoticesRead.as_view(), name="notices_read"),
    path("notices/preferences", notices.NoticePreferences.as_view(), name="notice_preferences"),
    path("audit", audit.AuditList.as_view(), name="audit"),
    path("audit/verdict", audit.AuditVerdict.as_view(), name="audit_verdict"),
    path("priority-classes", setting_up.PriorityClasses.as_view(), name="priority_classes"),
    path(
        "priority-classes/<str:name>",
        setting_up.OnePriorityClass.as_view(),
        name="priority_class",
    ),
    path("clusters", setting_up.Clusters.as_view(), name="clusters"),
    path(CLUSTER, clusters.ClusterDetail.as_view(), name="cluster"),
    path(f"{CLUSTER}/mode", clusters.ClusterModeView.as_view(), name="cluster_mode"),
    path(f"{CLUSTER}/gpu-classes", setting_up.GpuClasses.as_view(), name="gpu_classes"),
    path(f"{CLUSTER}/gpu-classes/<str:name>", setting_up.OneGpuClass.as_view(), name="gpu_class"),
    path(f"{CLUSTER}/policy", setting_up.PolicyView.as_view(), name="policy"),
    path(f"{CLUSTER}/tree", setting_up.Tree.as_view(), name="tree"),
    path(f"{CLUSTER}/nodes", clusters.NodeList.as_view(), name="nodes"),
    path(f"{CLUSTER}/guardrails", clusters.GuardrailList.as_view(), name="guardrails"),
    path(f"{CLUSTER}/queues", setting_up.Queues.as_view(), name="queues"),
    path(f"{CLUSTER}/queues/<str:name>", setting_up.OneQueue.as_view(), name="queue"),
    path(f"{CLUSTER}/quotas", quotas.QuotaList.as_view(), name="quotas"),
    path(f"{CLUSTER}/quotas/preview", previews.QuotaPreview.as_view(), name="quota_preview"),
    path(f"{CLUSTER}/quota-changes", quotas.QuotaChangeList.as_view(), name="quota_changes"),
    path(f"{CLUSTER}/requests", requests.RequestList.as_view(), name="requests"),
    path(REQUEST, requests.RequestDetail.as_view(), name="request"),
    path(f"{REQUEST}/preview", requests.RequestPreview.as_view(), name="request_preview"),
    path(f"{REQUEST}/submit", requests.RequestSubmit.as_view(), name="request_submit"),
    path(f"{REQUEST}/forward", requests.RequestForward.as_view(), name="request_forward"),
    path(f"{REQUEST}/approve", requests.RequestApprove.as_view(), name="request_approve"),
    path(
        f"{REQUEST}/ask-changes", requests.RequestAskChanges.as_view(), name="request_ask_changes"
    ),
    path(f"{REQUEST}/reject", requests.RequestReject.as_view(), name="request_reject"),
    path(f"{REQUEST}/revoke", requests.RequestRevoke.as_view(), name="request_revoke"),
    path(f"{REQUEST}/withdraw", requests.RequestWithdraw.as_view(), name="request_withdraw"),
    path(f"{REQUEST}/renew", requests.RequestRenew.as_view(), name="request_renew"),
    path(f"{REQUEST}/comments", requests.RequestComments.as_view(), name="request_comments"),
    path(f"{CLUSTER}/request-rules", requests.RuleList.as_view(), name="request_rules"),
    path(
        f"{CLUSTER}/request-rules/<str:queue>", requests.RuleDetail.as_view(), name="request_rule"
    ),
    path(f"{CLUSTER}/workloads", workloads.WorkloadList.as_view(), name="workloads"),
    path(WORKLOAD, workloads.WorkloadDetail.as_view(), name="workload"),
    path(f"{WORKLOAD}/sooner", previews.WorkloadSooner.as_view(), name="workload_sooner"),
    path(f"{WORKLOAD}/cancel", workloads.WorkloadCancel.as_view(), name="workload_cancel"),
    path(f"{WORKLOAD}/hold", workloads.WorkloadHold.as_view(), name="workload_hold"),
    path(f"{WORKLOAD}/release", workloads.WorkloadRelease.as_view(), name="workload_release"),
    path(f"{CLUSTER}/cycles", ledger.CycleList.as_view(), name="cycles"),
    path(f"{CLUSTER}/cycles/<int:number>", ledger.CycleDetail.as_view(), name="cycle"),
    path(f"{CLUSTER}/decisions", ledger.DecisionList.as_view(), name="decisions"),
    path(f"{CLUSTER}/evictions", ledger.EvictionList.as_view(), name="evictions"),
    path(f"{CLUSTER}/reports/utilization", reports.Utilization.as_view(), name="utilization"),
    path(f"{CLUSTER}/reports/waits", reports.Waits.as_view(), name="waits"),
    path(f"{CLUSTER}/reports/fairness", reports.Fairness.as_view(), name="fairness"),
    path(f"{CLUSTER}/reports/preemptions", reports.Preemptions.as_view(), name="preemptions"),
    path(f"{CLUSTER}/what-ifs", foresight.WhatIfList.as_view(), name="what_ifs"),
    path(f"{CLUSTER}/what-ifs/<int:pk>", foresight.WhatIfDetail.as_view(), name="what_if"),
    path(
        f"{CLUSTER}/consolidations",
        consolidations.ConsolidationList.as_view(),
        name="consolidations",
    ),
    path(
        f"{CLUSTER}/consolidations/<int:pk>",
        consolidations.ConsolidationDetail.as_view(),
        name="consolidation",
    ),
    path(f"{CLUSTER}/forecasts/score", foresight.ForecastScore.as_view(), name="forecast_score"),
    path("schema", docs.Schema.as_view(), name="schema"),
    path("docs", docs.docs, name="docs"),
    re_path(r"^.*$", docs.NoSuchAddress.as_view(), name="nothing"),
]
