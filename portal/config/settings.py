"""Settings: embedded parts by default, production parts by the environment alone.

Every variable and its default is listed in docs/operations/install.md.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import environ

from portal.accounts import ldap
from portal.accounts.identity import providers
from portal.api import settings as of_api
from portal.boundary.bounds import MOST_BYTES, MOST_FIELDS
from portal.config.proxies import networks
from portal.config.schedule import DUTIES, beat, routes

BASE_DIR = Path(__file__).resolve().parents[2]
VAR_DIR = BASE_DIR / "var"
STATIC_ROOT = VAR_DIR / "static"
STATIC_ROOT.mkdir(parents=True, exist_ok=True)

env = environ.Env()

DEBUG = env.bool("WEIR_DEBUG", default=False)
DEMO = env.bool("WEIR_DEMO", default=False)
WEIR_DEMO_FOLDER = env.str("WEIR_DEMO_FOLDER", default="")
SECRET_KEY = env.str("WEIR_SECRET_KEY", default="")
# Keys before this one: what was signed or enciphered with them is still read, until `rotate-keys` is done.
SECRET_KEY_FALLBACKS = env.list("WEIR_SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list("WEIR_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("WEIR_CSRF_TRUSTED_ORIGINS", default=[])
# Only these peers are believed about who sent a request and whether it came over TLS.
WEIR_TRUSTED_PROXIES = networks(env.list("WEIR_TRUSTED_PROXIES", default=[]))

if not SECRET_KEY:
    # A key per checkout, made once, so that sessions survive a restart and none is in the repository.
    from portal.config.secret import local_secret_key

    SECRET_KEY = local_secret_key(VAR_DIR / "secret_key")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "django_filters",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "simple_history",
    "tree_queries",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.socialaccount.providers.saml",
    "allauth.mfa",
    "scheduling",
    "portal.config",
    "portal.accounts",
    "portal.teams",
    "portal.audit",
    "portal.approvals",
    "portal.notices",
    "portal.idempotency",
    "portal.streams",
    "portal.setup",
    "portal.reports",
    "portal.alerts",
    "portal.plans",
    "portal.api",
    "portal.web",
    *(["workshop"] if find_spec("workshop") else []),  # no part of what is deployed
]

MIDDLEWARE = [
    "portal.config.proxies.ProxyMiddleware",
    "portal.config.headers.IsolationMiddleware",
    # Outside of whatever refuses, so that every refusal carries the policy.
    "csp.middleware.CSPMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.config.headers.NoStoreMiddleware",
    "portal.boundary.middleware.BoundaryMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "portal.accounts.middleware.SessionUseMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "portal.teams.rights.RightsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "portal.audit.origin.OriginMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "portal.teams.factors.SecondFactorMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
]

if env.bool("WEIR_SERVER_TIMING", default=False):
    # What an answer cost, in a header that browsers show and benchmarks read.
    MIDDLEWARE.insert(0, "portal.config.timing.ServerTimingMiddleware")

# Where traces go, by OpenTelemetry's own name of the variable; nowhere where empty.
WEIR_TRACING_ENDPOINT = env.str("OTEL_EXPORTER_OTLP_ENDPOINT", default="").rstrip("/")
if WEIR_TRACING_ENDPOINT:
    MIDDLEWARE.insert(0, "portal.config.tracing.TracingMiddleware")

ROOT_URLCONF = "portal.config.urls"
ASGI_APPLICATION = "portal.config.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.web.frame.context.shell",
            ]
        },
    }
]

DATABASES: dict[str, dict[str, Any]] = {
    "default": env.db("DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'weir.sqlite3'}")
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
    }
    # A file database, so that threads of one test (live server, worker) see the same rows.
    DATABASES["default"]["TEST"] = {"NAME": env.str("WEIR_TEST_DATABASE", default=None)}
else:
    # A web process answers several people at once, each with a connection of its own while it does.
    # What the address says of TLS, such as `?sslmode=verify-full`, holds beside it.
    options = DATABASES["default"].setdefault("OPTIONS", {})
    options["pool"] = {"min_size": 2, "max_size": 20, "timeout": 30}
    # A pooler that gives each transaction any of its connections keeps no cursor open between two.
    pooled = env.bool("WEIR_DATABASE_POOLER", default=False)
    DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = pooled
    if not pooled:  # which takes no options of a session
        # To compile a report's statements takes longer than they run: a fifth of a second of each report.
        options.setdefault("options", "-c jit=off")
    if env.str("WEIR_REPLICA_URL", default=""):
        replica = env.db("WEIR_REPLICA_URL")
        DATABASES["replica"] = {
            **DATABASES["default"], **replica, "TEST": {"MIRROR": "default"},
            "OPTIONS": {**options, **replica.get("OPTIONS", {})},
        }  # fmt: skip
        DATABASE_ROUTERS = ["portal.config.replica.ReplicaRouter"]
        MIDDLEWARE.append("portal.config.replica.ReplicaMiddleware")

DATA_UPLOAD_MAX_MEMORY_SIZE = MOST_BYTES
DATA_UPLOAD_MAX_NUMBER_FIELDS = MOST_FIELDS
DATA_UPLOAD_MAX_NUMBER_FILES = 0
CSRF_FAILURE_VIEW = "portal.boundary.answers.cross_site"

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
# What keeps the people whose classes of service the engine's worker and the guardrails follow.
WEIR_SERVICE_CLASSES = "portal.approvals.access.service_classes"
# Whether a person may give a queue its namespace; raises a ServiceError where not.
WEIR_NAMESPACE_JUDGE = "portal.teams.namespaces.judge"
# Listeners to what happens: a function of one announcement, and the kinds it wants; "*" is all.
WEIR_SUBSCRIBERS: dict[str, tuple[str, ...]] = {
    "portal.audit.chain.append": ("*",),
    "portal.notices.outbox.hear": (
        "request.submit", "request.forward", "request.approve", "request.ask_changes",
        "request.reject", "request.revoke", "request.begin", "request.fail", "request.near_end",
        "request.expire", "request.comment", "request.withdraw",
    ),
    "portal.notices.loans.hear": (
        "loan.ask", "loan.offer", "loan.consent", "loan.decline", "loan.withdraw", "loan.recall",
        "loan.undo", "loan.give_back", "loan.near_end", "loan.end",
    ),
    "scheduling.services.studies.adapting.trials.hear": ("policy.set",),
}  # fmt: skip
# The organisation's directory, where it signs people in: docs/operations/run.md, "Signing in".
WEIR_LDAP = ldap.configured(env)
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    *(["portal.accounts.ldap_backend.DirectoryBackend"] if WEIR_LDAP else []),
]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
# The style sheet's names of a notice's tone.
MESSAGE_TAGS = {25: "ok", 30: "warn", 40: "err"}
LOGIN_URL = "accounts:sign_in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "accounts:sign_in"
# The policy lab: docs/operations/install.md, "Settings".
WEIR_LAB_TASKS = env.int("WEIR_LAB_TASKS", default=1)
WEIR_ADAPTING_REPLAYS = env.int("WEIR_ADAPTING_REPLAYS", default=10)
WEIR_LAB_TRACES = Path(traces) if (traces := env.str("WEIR_LAB_TRACES", default="")) else None
# How often a password may be guessed: docs/operations/run.md, "Signing in".
WEIR_SIGN_IN_TRIES = env.int("WEIR_SIGN_IN_TRIES", default=8)
WEIR_SIGN_IN_WAIT_S = env.int("WEIR_SIGN_IN_WAIT_S", default=900)
WEIR_SIGN_IN_TRIES_WIDE = env.int("WEIR_SIGN_IN_TRIES_WIDE", default=50)
WEIR_SIGN_IN_WAIT_WIDE_S = env.int("WEIR_SIGN_IN_WAIT_WIDE_S", default=3600)

# The second step of sign-in and the organisation's provider: docs/operations/run.md, "Signing in".
# People who must have a second factor: "everybody", or capabilities of personas.
WEIR_SECOND_FACTOR = env.list("WEIR_SECOND_FACTOR", default=[])
ACCOUNT_ADAPTER = "portal.accounts.adapters.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SIGNUP_FIELDS = ["username*"]
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 900
ACCOUNT_FORMS = {"reauthenticate": "portal.accounts.factor_forms.ConfirmPasswordForm"}
# Tries are counted in the database, as those of passwords are, whether the cache is there or not.
ACCOUNT_RATE_LIMITS = False
MFA_RATE_LIMITS = False
MFA_ADAPTER = "portal.accounts.adapters.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_TOTP_ISSUER = "Weir"
MFA_TOTP_TOLERANCE = 1
MFA_FORMS = {
    "authenticate": "portal.accounts.factor_forms.CodeForm",
    "reauthenticate": "portal.accounts.factor_forms.ConfirmCodeForm",
    "activate_totp": "portal.accounts.factor_forms.ActivateAppForm",
    "authenticate_webauthn": "portal.accounts.passkey_forms.PasskeyForm",
    "login_webauthn": "portal.accounts.passkey_forms.PasskeySignInForm",
    "reauthenticate_webauthn": "portal.accounts.passkey_forms.ConfirmPasskeyForm",
    "add_webauthn": "portal.accounts.passkey_forms.AddPasskeyForm",
}
SOCIALACCOUNT_ADAPTER = "portal.accounts.provider.ProviderAdapter"
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_PROVIDERS = providers(env)
# Which claims of the provider say a person's name, and the groups they are in.
WEIR_OIDC_USER_CLAIM = env.str("WEIR_OIDC_USER_CLAIM", default="preferred_username")
WEIR_OIDC_GROUPS_CLAIM = env.str("WEIR_OIDC_GROUPS_CLAIM", default="groups")
# Which attributes do where it speaks SAML; a name is the NameID where none is named.
WEIR_SAML_USER_ATTRIBUTE = env.str("WEIR_SAML_USER_ATTRIBUTE", default="")
WEIR_SAML_GROUPS_ATTRIBUTE = env.str("WEIR_SAML_GROUPS_ATTRIBUTE", default="groups")

# Mail and webhooks of notices: docs/operations/run.md, "Requests and notices".
WEIR_ADDRESS = env.str("WEIR_ADDRESS", default="").rstrip("/")
WEIR_MAIL_HOST = env.str("WEIR_MAIL_HOST", default="")
if DEMO:
    EMAIL_BACKEND = "portal.notices.arrivals.MailBackend"
EMAIL_HOST = WEIR_MAIL_HOST
EMAIL_PORT = env.int("WEIR_MAIL_PORT", default=587)
EMAIL_HOST_USER = env.str("WEIR_MAIL_USER", default="")
EMAIL_HOST_PASSWORD = env.str("WEIR_MAIL_PASSWORD", default="")
mail_tls = env.str("WEIR_MAIL_TLS", default="starttls")
EMAIL_USE_TLS, EMAIL_USE_SSL = mail_tls == "starttls", mail_tls == "tls"
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("WEIR_MAIL_FROM", default="weir@localhost")
# Hosts inside, as HOST or HOST:PORT, to which webhooks may go all the same; and whether over http.
WEIR_WEBHOOK_INSIDE = env.list("WEIR_WEBHOOK_INSIDE", default=[])
WEIR_WEBHOOK_HTTP = env.bool("WEIR_WEBHOOK_HTTP", default=False)

# What goes out of audit, security and usage, and where: docs/operations/run.md, "Streams out".
WEIR_STREAMS = {
    name: env.str(f"WEIR_STREAM_{name.upper()}", default="")
    for name in ("audit", "security", "usage")
}
WEIR_STREAM_AUTHORIZATION = env.str("WEIR_STREAM_AUTHORIZATION", default="")
WEIR_STREAM_CA = env.str("WEIR_STREAM_CA", default="")

SESSION_ENGINE = "portal.accounts.sessions"
WEIR_SESSION_IDLE_S = env.int("WEIR_SESSION_IDLE_S", default=12 * 3600)
SESSION_COOKIE_AGE = env.int("WEIR_SESSION_S", default=7 * 24 * 3600)
WEIR_SIGN_IN_AGE_S = env.int("WEIR_SIGN_IN_AGE_S", default=0)

WEIR_TOKEN_DAYS = env.int("WEIR_TOKEN_DAYS", default=90)
WEIR_ENDLESS_TOKENS = env.bool("WEIR_ENDLESS_TOKENS", default=False)

WEIR_METRICS_TOKEN = env.str("WEIR_METRICS_TOKEN", default="")
# Where what serves no pages answers who looks after it; 0 nowhere.
WEIR_PROBE_PORT = env.int("WEIR_PROBE_PORT", default=0)
# Requests a minute of one person, and of one address that says nobody's name; 0 is unlimited.
WEIR_API_RATE = env.int("WEIR_API_RATE", default=1200)
WEIR_API_RATE_UNKNOWN = env.int("WEIR_API_RATE_UNKNOWN", default=60)
# Seconds for which all who look at one revision of a cluster are shown what was computed once.
WEIR_REMEMBERED_S = env.float("WEIR_REMEMBERED_S", default=5.0)
# Streams one person may hold open at once: a tab in front of somebody holds one.
WEIR_LIVE_STREAMS = env.int("WEIR_LIVE_STREAMS", default=20)

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_I18N = False

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
TLS = env.bool("WEIR_TLS", default=False)
if TLS:
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    # Browsers take cookies of these names from this very host over TLS only, never from a neighbour.
    SESSION_COOKIE_NAME = "__Host-sessionid"
    CSRF_COOKIE_NAME = "__Host-csrftoken"
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 31536000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = env.bool("WEIR_HSTS_PRELOAD", default=False)
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    # Whether browsers are shipped with the domain is for its owner to say, and hard to take back.
    SILENCED_SYSTEM_CHECKS = ["security.W021"]

NOWHERE = ("default-src", "base-uri", "frame-ancestors")
CONTENT_SECURITY_POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        **{directive: ["'none'"] for directive in NOWHERE},
        **{f"{what}-src": ["'self'"] for what in ("script", "style", "font", "connect")},
        "img-src": ["'self'", "data:"],
        "form-action": ["'self'"],
    }
}

REST_FRAMEWORK = of_api.REST_FRAMEWORK
SPECTACULAR_SETTINGS = of_api.SPECTACULAR_SETTINGS

CELERY_BROKER_URL = env.str("WEIR_BROKER_URL", default=f"folder://{VAR_DIR / 'broker'}")
# Of one machine: messages are files in a folder, and `serve` runs every worker.
WEIR_BROKER_FOLDER = ""
if CELERY_BROKER_URL.startswith("folder://"):
    WEIR_BROKER_FOLDER = str(Path(CELERY_BROKER_URL.removeprefix("folder://")).absolute())
    CELERY_BROKER_URL = "folder://localhost/"
    CELERY_BROKER_TRANSPORT = "scheduling.services.worker.broker:Transport"
    CELERY_BROKER_TRANSPORT_OPTIONS = {"folder": WEIR_BROKER_FOLDER}
    # Nobody sends orders to workers, and the lane of each for them would be looked into all the time.
    CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
if CELERY_BROKER_URL.startswith("rediss://"):
    # Kombu takes any certificate unless it is asked to look; what the address says goes before.
    CELERY_BROKER_USE_SSL = {"ssl_cert_reqs": "required"}

# What processes count together, such as requests a minute: in Redis where there are several.
shared_server = CELERY_BROKER_URL if CELERY_BROKER_URL.startswith(("redis://", "rediss://")) else ""
CACHES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": env.str("WEIR_CACHE_URL", default=shared_server),
        "KEY_PREFIX": "weir",
    }
}
if not CACHES["default"]["LOCATION"]:
    CACHES["default"] = {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        # Above it entries are thrown out at random, so a crowd of addresses could wipe its own count.
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }

# Whose cycles this process runs, where it is the engine; those of all clusters where none is named.
WEIR_ENGINE_CLUSTERS = env.list("WEIR_ENGINE_CLUSTERS", default=[])

CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# KiB, where a task runs in a process of its own: after a task beyond it another process takes its place.
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 512 * 1024
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE = beat()
CELERY_TASK_ROUTES = routes()
WEIR_DUTIES = DUTIES

WEIR_ACCOUNTS_NAMESPACE = env.str("WEIR_ACCOUNTS_NAMESPACE", default="weir-system")
WEIR_TRACES = Path(env.str("WEIR_TRACES", default=str(BASE_DIR.parent / "shared" / "traces")))

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": env.str("WEIR_LOG_LEVEL", default="WARNING")},
    # Sign-ins and refusals are kept whatever the level of the rest.
    "loggers": {"weir.security": {"level": "INFO"}},
}
