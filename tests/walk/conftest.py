"""One world for every walk of a process."""

import pytest
from django.db import transaction

from tests.walk.asking import one_connection
from tests.walk.world import build


@pytest.fixture(scope="package")
def world(django_db_setup, django_db_blocker):
    """Built once; each test runs in a transaction inside this one."""
    with django_db_blocker.unblock(), one_connection(), transaction.atomic():
        yield build()
        transaction.set_rollback(True)
