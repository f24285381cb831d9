"""The wires to database and broker, as their addresses name them: what an address says of TLS holds."""

import json
import os
import ssl
import subprocess
import sys

import pytest
from django.conf import settings

SAID = """
import json
from portal.config import settings as s
from portal.config.celery import app
print(json.dumps({
    "databases": {n: d.get("OPTIONS", {}) for n, d in s.DATABASES.items()},
    "broker": app.connection_for_write().ssl,
}))
"""


def wires(**environment: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", SAID], cwd=settings.BASE_DIR, env={**os.environ, **environment},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_what_the_address_of_a_database_says_of_tls_holds_beside_the_pool():
    made = wires(
        DATABASE_URL="postgres://u:p@h/weir?sslmode=verify-full&sslrootcert=/ca.crt",
        WEIR_REPLICA_URL="postgres://u:p@r/copy?sslmode=require",
    )["databases"]

    assert made["default"].pop("pool") == made["replica"].pop("pool")
    assert made["default"].pop("options") == made["replica"].pop("options")
    assert made["default"] == {"sslmode": "verify-full", "sslrootcert": "/ca.crt"}
    assert made["replica"]["sslmode"] == "require"


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("rediss://:pw@h:6379/0", "required"),
        ("rediss://:pw@h:6379/0?ssl_cert_reqs=none", ssl.CERT_NONE),
    ],
)
def test_broker_over_tls_shows_its_certificate_unless_the_address_asks_for_none(address, asked):
    assert wires(WEIR_BROKER_URL=address)["broker"] == {"ssl_cert_reqs": asked}


def test_broker_without_tls_is_asked_for_none():
    assert wires(WEIR_BROKER_URL="redis://:pw@h:6379/0")["broker"] is False
