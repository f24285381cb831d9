"""Addresses of the API, below /api/v1/. No address ends in a slash."""

from django.urls import path, re_path

from portal.api import (
    access,
    acting,
    adapting,
    alerts,
    audit,
    changing,
    clusters,
    consolidations,
    docs,
    foresight,
    ledger,
    letters,
    loans,
    logs,
    members,
    notices,
    people,
    persona_previews,
    previews,
    processes,
    quotas,
    report_views,
    reports,
    request_rules,
    requests,
    setting_up,
    streams,
    studies,
    workloads,
)
from portal.reports.kinds import REPORTS

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
    path(
        "personas/<str:name>/preview",
        persona_previews.PersonaPreview.as_view(),
        name="persona_preview",
    ),
    path("processes", processes.ProcessList.as_view(), name="processes"),
    path("streams", streams.StreamList.as_view(), name="streams"),
    path("notices", notices.NoticeList.as_view(), name="notices"),
    path("notices/read", notices.NoticesRead.as_view(), name="notices_read"),
    path("notices/preferences", notices.NoticePreferences.as_view(), name="notice_preferences"),
    path("notices/webhooks", letters.WebhookList.as_view(), name="webhooks"),
    path("notices/webhooks/<int:pk>", letters.WebhookDetail.as_view(), name="webhook"),
    path("notices/webhooks/<int:pk>/test", letters.WebhookTest.as_view(), name="webhook_test"),
    path("dead-letters", letters.DeadLetters.as_view(), name="dead_letters"),
    path(
        "dead-letters/<int:pk>/again", letters.DeadLetterAgain.as_view(), name="dead_letter_again"
    ),
    path("dead-letters/<int:pk>/drop", letters.DeadLetterDrop.as_view(), name="dead_letter_drop"),
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
    path(f"{CLUSTER}/adaptation", adapting.AdaptationView.as_view(), name="adaptation"),
    path(
        f"{CLUSTER}/adaptation/parameters/<str:name>",
        adapting.AdaptingParameterView.as_view(),
        name="adapting_parameter",
    ),
    path(f"{CLUSTER}/tree", setting_up.Tree.as_view(), name="tree"),
    path(f"{CLUSTER}/nodes", clusters.NodeList.as_view(), name="nodes"),
    path(f"{CLUSTER}/guardrails", clusters.GuardrailList.as_view(), name="guardrails"),
    path(f"{CLUSTER}/queues", setting_up.Queues.as_view(), name="queues"),
    path(f"{CLUSTER}/queues/<str:name>", setting_up.OneQueue.as_view(), name="queue"),
    path(f"{CLUSTER}/quotas", quotas.QuotaList.as_view(), name="quotas"),
    path(f"{CLUSTER}/quotas/preview", previews.QuotaPreview.as_view(), name="quota_preview"),
    path(f"{CLUSTER}/quota-changes", quotas.QuotaChangeList.as_view(), name="quota_changes"),
    path(
        f"{CLUSTER}/quota-changes/<int:pk>/revert",
        quotas.QuotaRevert.as_view(),
        name="quota_revert",
    ),
    path(f"{CLUSTER}/requests", requests.RequestList.as_view(), name="requests"),
    path(REQUEST, requests.RequestDetail.as_view(), name="request"),
    path(f"{REQUEST}/preview", requests.RequestPreview.as_view(), name="request_preview"),
    *(
        path(f"{REQUEST}/{name}", view.as_view(), name=f"request_{name.replace('-', '_')}")
        for name, view in requests.VERBS.items()
    ),
    path(f"{REQUEST}/comments", requests.RequestComments.as_view(), name="request_comments"),
    path(f"{CLUSTER}/loans", loans.LoanList.as_view(), name="loans"),
    path(f"{CLUSTER}/loans/<int:pk>", loans.LoanDetail.as_view(), name="loan"),
    path(f"{CLUSTER}/loans/<int:pk>/<slug:verb>", loans.LoanAct.as_view(), name="loan_act"),
    path(f"{CLUSTER}/loan-offers", loans.OfferList.as_view(), name="loan_offers"),
    path(f"{CLUSTER}/loan-offers/<int:pk>", loans.OfferDetail.as_view(), name="loan_offer"),
    path(f"{CLUSTER}/request-rules", request_rules.RuleList.as_view(), name="request_rules"),
    path(
        f"{CLUSTER}/request-rules/<str:queue>",
        request_rules.RuleDetail.as_view(),
        name="request_rule",
    ),
    path(f"{CLUSTER}/workloads", workloads.WorkloadList.as_view(), name="workloads"),
    path(f"{CLUSTER}/workload-actions", acting.WorkloadActions.as_view(), name="workload_actions"),
    path(WORKLOAD, workloads.WorkloadDetail.as_view(), name="workload"),
    path(f"{WORKLOAD}/sooner", previews.WorkloadSooner.as_view(), name="workload_sooner"),
    path(f"{WORKLOAD}/log", logs.WorkloadLog.as_view(), name="workload_log"),
    path(f"{WORKLOAD}/events", logs.WorkloadEvents.as_view(), name="workload_events"),
    path(f"{WORKLOAD}/cancel", workloads.WorkloadCancel.as_view(), name="workload_cancel"),
    path(f"{WORKLOAD}/hold", workloads.WorkloadHold.as_view(), name="workload_hold"),
    path(f"{WORKLOAD}/release", workloads.WorkloadRelease.as_view(), name="workload_release"),
    path(f"{WORKLOAD}/change", changing.WorkloadChange.as_view(), name="workload_change"),
    path(
        f"{WORKLOAD}/change/preview",
        changing.WorkloadChangePreview.as_view(),
        name="workload_change_preview",
    ),
    path(f"{WORKLOAD}/priority", acting.WorkloadPriority.as_view(), name="workload_priority"),
    path(f"{CLUSTER}/cycles", ledger.CycleList.as_view(), name="cycles"),
    path(f"{CLUSTER}/cycles/<int:number>", ledger.CycleDetail.as_view(), name="cycle"),
    path(f"{CLUSTER}/decisions", ledger.DecisionList.as_view(), name="decisions"),
    path(f"{CLUSTER}/evictions", ledger.EvictionList.as_view(), name="evictions"),
    path(f"{CLUSTER}/alerts", alerts.Alerts.as_view(), name="alerts"),
    path(f"{CLUSTER}/alerts/past", alerts.AlertPast.as_view(), name="alert_past"),
    path(f"{CLUSTER}/alerts/<int:pk>", alerts.AlertDetail.as_view(), name="alert"),
    path(f"{CLUSTER}/alerts/<int:pk>/test", alerts.AlertTest.as_view(), name="alert_test"),
    path(f"{CLUSTER}/reports", reports.ReportList.as_view(), name="reports"),
    *(
        path(f"{CLUSTER}/reports/{name}", reports.view_of(report).as_view(), name=name)
        for name, report in REPORTS.items()
    ),
    path(f"{CLUSTER}/reports/views", report_views.SavedViews.as_view(), name="report_views"),
    path(
        f"{CLUSTER}/reports/views/<int:pk>",
        report_views.SavedViewDetail.as_view(),
        name="report_view",
    ),
    path(f"{CLUSTER}/studies", studies.StudyList.as_view(), name="studies"),
    path(f"{CLUSTER}/studies/<int:pk>", studies.StudyDetail.as_view(), name="study"),
    path(f"{CLUSTER}/studies/<int:pk>/cancel", studies.StudyCancel.as_view(), name="study_cancel"),
    path(
        f"{CLUSTER}/studies/<int:pk>/promote", studies.StudyPromote.as_view(), name="study_promote"
    ),
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
