"""Attacks on what was deployed: guessable keys, the demo's passwords, plain HTTP, ports left open."""

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.conf import settings as django_settings

from portal.config.secret import weakness

ROOT = Path(django_settings.BASE_DIR)
COMPOSE = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())
PRODUCTION = {
    "WEIR_TLS": "1",
    "WEIR_SECRET_KEY": secrets.token_urlsafe(50),
    "WEIR_ALLOWED_HOSTS": "gpus.example.org",
    "WEIR_TRUSTED_PROXIES": "10.9.0.2",
    "WEIR_CSRF_TRUSTED_ORIGINS": "https://gpus.example.org",
    "DATABASE_URL": "postgres://weir:pw@localhost:5432/weir",
    "WEIR_BROKER_URL": "redis://localhost:6379/0",
}


def manage(*words, **environment):
    # The browser tests of this process set a variable of Django's too.
    left = ("WEIR_", "DATABASE", "DJANGO_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(left)}
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def check_deploy(**environment):
    return manage("manage.py", "check", "--deploy", "--fail-level", "WARNING", **environment)


def start(**environment):
    return manage("-c", "import portal.config.asgi", **environment)


def test_check_deploy_is_silent_in_production():
    done = check_deploy(**PRODUCTION)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout
    assert done.stderr == ""


def test_check_deploy_speaks_up_without_tls():
    done = check_deploy(**{**PRODUCTION, "WEIR_TLS": "0"})
    assert done.returncode == 1
    assert "security.W008" in done.stderr


WEAK = {
    "short": "x7Qb",
    "repeated": "weir" * 20,
    "of an example": "change-me-please-0123456789-abcdefghijklmnopqrstuvwxyz",
    "of Django's start": "django-insecure-p^2k!v8s)z7q@wm3d#0r$tq&y1u*e5b(h6n",
}


@pytest.mark.parametrize("key", WEAK.values(), ids=WEAK)
def test_weak_secret_key_is_told_and_not_shown(key):
    assert weakness(key)
    assert key not in weakness(key)


def test_weak_secret_key_is_refused_by_check_and_at_the_start():
    key = WEAK["of an example"]
    weak = {**PRODUCTION, "WEIR_SECRET_KEY": key}
    checked, started = check_deploy(**weak), start(**weak)
    assert "weir.E001" in checked.stderr
    assert checked.returncode == 1
    assert "weir.E001" in started.stderr
    assert started.returncode != 0
    assert key not in checked.stderr + started.stderr


def test_key_that_the_docs_tell_to_make_is_taken():
    for _ in range(1000):
        assert weakness(secrets.token_urlsafe(50)) == ""


def test_demo_in_production_is_refused_by_check_and_at_the_start():
    demo = {**PRODUCTION, "WEIR_DEMO": "1"}
    assert "weir.E002" in check_deploy(**demo).stderr
    started = start(**demo)
    assert "weir.E002" in started.stderr
    assert started.returncode != 0


def test_trusted_proxy_that_is_none_is_refused():
    started = start(**{**PRODUCTION, "WEIR_TRUSTED_PROXIES": "caddy"})
    assert "WEIR_TRUSTED_PROXIES" in started.stderr
    assert started.returncode != 0


def test_processes_count_together_in_production():
    done = manage(
        "-c", "import portal.config.settings as s; print(s.CACHES['default'])", **PRODUCTION
    )
    assert "RedisCache" in done.stdout
    assert "redis://localhost:6379/0" in done.stdout


# The composition


def environment(service):
    return COMPOSE["services"][service].get("environment", {})


PASSED = (
    "WEIR_TLS",
    "WEIR_CSRF_TRUSTED_ORIGINS",
    "WEIR_ALLOWED_HOSTS",
    "WEIR_TRUSTED_PROXIES",
    "WEIR_SECRET_KEY",
)
WEIR = [name for name, one in COMPOSE["services"].items() if "build" in one]


@pytest.mark.parametrize("service", WEIR)
@pytest.mark.parametrize("variable", PASSED)
def test_compose_passes_what_security_needs(service, variable):
    assert environment(service)[variable]


def test_compose_gives_no_secret_a_value_of_its_own():
    for name, value in (pair for one in COMPOSE["services"] for pair in environment(one).items()):
        if re.search("KEY|PASSWORD", name):
            assert re.fullmatch(r"\$\{\w+:\?[^}]*\}", value), name
        given = re.sub(r"\$\{[^}]*\}", "$", value)
        assert not re.search(r"://\w+:[^$@]+@", given), name


def test_compose_opens_no_port_but_the_proxys():
    opened = {name for name, one in COMPOSE["services"].items() if one.get("ports")}
    assert opened == {"proxy"}
    ports = COMPOSE["services"]["proxy"]["ports"]
    assert ports == ["80:80", "443:443", "443:443/udp"]


def test_compose_trusts_its_proxy_and_nobody_else():
    assert environment("web")["WEIR_TRUSTED_PROXIES"] == "${WEIR_TRUSTED_PROXIES:-172.30.95.2}"
    edge = COMPOSE["services"]["proxy"]["networks"]["edge"]
    assert edge["ipv4_address"] == "172.30.95.2"
    assert "edge" in COMPOSE["services"]["web"]["networks"]
    beside = set(COMPOSE["services"]) - {"proxy", "web"}
    assert all("edge" not in COMPOSE["services"][name].get("networks", []) for name in beside)


def test_compose_keeps_the_database_off_the_edge_and_weir_without_capabilities():
    for name in WEIR:
        assert COMPOSE["services"][name]["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in COMPOSE["services"][name]["security_opt"]


def test_proxy_serves_the_named_host_over_tls_and_hides_itself():
    text = (ROOT / "docker/Caddyfile").read_text()
    assert "{$WEIR_SITE" in text
    assert "reverse_proxy web:8000" in text
    assert "-Server" in text
    assert "http://" not in text
    assert text.count("{") == text.count("}")
    assert "./Caddyfile:/etc/caddy/Caddyfile:ro" in COMPOSE["services"]["proxy"]["volumes"]


def test_image_holds_no_key():
    text = (ROOT / "docker/Dockerfile").read_text()
    assert "WEIR_SECRET_KEY=build" not in text
    assert "rm -f var/secret_key" in text or "token_urlsafe" in text


def test_every_setting_is_in_the_operations_manual():
    read = set(re.findall(r'"(WEIR_[A-Z_]+)"', (ROOT / "portal/config/settings.py").read_text()))
    told = set(re.findall(r"`(WEIR_[A-Z_]+)`", (ROOT / "docs/operations/install.md").read_text()))
    assert read - {"WEIR_TEST_DATABASE", "WEIR_DEMO", "WEIR_DEMO_FOLDER"} <= told


def test_cookies_under_tls_are_bound_to_their_host():
    """A neighbour under the same domain can neither read nor plant them."""
    names = ("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME")
    asked = f"import portal.config.settings as s; print(*(getattr(s, n) for n in {names}))"
    done = manage("-c", asked, **PRODUCTION)
    assert done.stdout.split() == ["__Host-sessionid", "__Host-csrftoken"]
    assert django_settings.SESSION_COOKIE_PATH == django_settings.CSRF_COOKIE_PATH == "/"
    assert django_settings.SESSION_COOKIE_DOMAIN is None
    assert django_settings.CSRF_COOKIE_DOMAIN is None
