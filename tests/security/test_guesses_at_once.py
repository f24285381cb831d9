"""Guesses sent at the same moment: the database, not luck, decides how many passwords are looked at."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.core.exceptions import ValidationError
from django.db import connection

from portal.accounts import tries
from portal.accounts.models import SignInTry

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
