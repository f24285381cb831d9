"""How the frameworks of the API are set up. It imports neither: settings are read before apps are."""

from typing import Any

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.accounts.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "portal.api.permissions.WithinScope",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["portal.api.throttles.PersonThrottle"],
    "DEFAULT_PARSER_CLASSES": [
        "portal.api.parsers.BoundedJsonParser",
        "rest_framework.parsers.FormParser",
        "rest_framework.parsers.MultiPartParser",
    ],
    "DEFAULT_FILTER_BACKENDS": ["portal.display.filters.BoundedFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "portal.api.pagination.Pages",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "portal.api.schema.Operation",
    "EXCEPTION_HANDLER": "portal.api.errors.handle",
    "PAGE_SIZE": 100,
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Weir",
    "DESCRIPTION": "Everything a page of Weir does, by REST.",
    "VERSION": "1.0.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",  # names of operations begin after it, though SCIM lies elsewhere
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_PERMISSIONS": [
        "rest_framework.permissions.IsAuthenticated",
        "portal.api.permissions.WithinScope",
    ],
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "StateEnum": "scheduling.models.workloads.State",
        "WorkloadTypeEnum": "scheduling.models.WorkloadType",
        "StudyKindEnum": "scheduling.models.StudyKind",
        "StudyStateEnum": "scheduling.models.StudyState",
        "ReachEnum": "portal.accounts.capabilities.ANY",
        "ReachOfTeamEnum": "portal.accounts.capabilities.OF_TEAM",
        "ReachBelowEnum": "portal.accounts.capabilities.BELOW",
        "ReachInQueuesEnum": "portal.accounts.capabilities.IN_QUEUES",
        "ReachEverywhereEnum": "portal.accounts.capabilities.EVERYWHERE",
        "AlertFigureEnum": "portal.alerts.models.Figure",
        "FigureEnum": "portal.approvals.states.Figure",
        "SavedViewKindEnum": "portal.reports.kinds.REPORTS",
        "RequestKindEnum": "portal.approvals.states.Kind",
        "RequestStateEnum": "portal.approvals.states.State",
        # Of decisions: the name that it had before others had actions too.
        "ActionEnum": [
            (name, name.title())
            for name in ("admit", "evict", "grow", "shrink", "move", "reserve", "wait")
        ],
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "portal.api.schema.add_errors",
    ],
}
