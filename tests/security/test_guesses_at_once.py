"""Guesses sent at the same moment: the database, not luck, decides how many passwords are looked at."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.conf import settings as django_settings
from django.core.exceptions import ValidationError
from django.db import connection

from portal.accounts import tries
from portal.accounts.models import SignInTry
from tests import postgresql

GUESSES = 24


@pytest.mark.django_db(transaction=True)
def test_guesses_at_once_look_at_no_more_passwords_than_one_after_the_other(settings):
    together, looked_at = Barrier(GUESSES), []

    def guess(number):
        together.wait()
        try:
            with tries.one_try("lead", "192.0.2.7"):
                looked_at.append(number)
                raise ValidationError("wrong")
        except ValidationError:
            pass
        finally:
            connection.close()

    with ThreadPoolExecutor(GUESSES) as crowd:
        list(crowd.map(guess, range(GUESSES)))

    assert len(looked_at) <= settings.WEIR_SIGN_IN_TRIES
    assert SignInTry.objects.count() == len(looked_at)


@pytest.mark.skipif(bool(postgresql.missing()), reason=postgresql.missing() or "-")
def test_sign_in_and_sessions_hold_on_postgresql():
    if os.environ.get("DATABASE_URL", "").startswith("postgres"):
        pytest.skip("this is that run")
    names = ("guesses_at_once", "sign_in", "sessions", "tokens")
    with postgresql.server() as url:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *(f"tests/security/test_{name}.py" for name in names)],
            cwd=django_settings.BASE_DIR,
            env={**os.environ, "DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stdout[-4000:]
