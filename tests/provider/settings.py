"""Settings of the provider; nothing of Weir's is in it."""

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

FOLDER = Path(os.environ["PROVIDER_FOLDER"])
PORT = os.environ["PROVIDER_PORT"]
SECRET_KEY = "of a provider that lives as long as a test and keeps nothing"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "oauth2_provider",
    "tests.provider",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
ROOT_URLCONF = "tests.provider.urls"
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "provider.sqlite3"}
}
AUTHENTICATION_BACKENDS = ["tests.provider.people.Backend"]
LOGIN_URL = "/login/"
# A browser has one jar for all ports of a host: Weir's session must not be lost here.
SESSION_COOKIE_NAME = "provider_session"
CSRF_COOKIE_NAME = "provider_csrf"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OAUTH2_PROVIDER = {
    "OIDC_ENABLED": True,
    "OIDC_ISS_ENDPOINT": f"http://127.0.0.1:{PORT}/o",
    "OIDC_RSA_PRIVATE_KEY": KEY.private_bytes(
        Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
    ).decode(),
    "OAUTH2_VALIDATOR_CLASS": "tests.provider.people.Validator",
    "SCOPES": {"openid": "who", "profile": "name", "email": "address"},
    "PKCE_REQUIRED": True,
}
