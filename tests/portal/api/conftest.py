import pytest
from rest_framework.test import APIClient

from portal.accounts.models import User
from tests.factories import example_cluster
from tests.portal.kubernetes import serving


@pytest.fixture
def cluster(db):
    return example_cluster()


@pytest.fixture
def kube(cluster):
    """A client of the API server behind ``cluster``."""
    with serving(cluster) as client:
        yield client


@pytest.fixture
def api(cluster):
    """``api("lead")``: an API client signed in as that person."""

    def sign_in(name: str) -> APIClient:
        client = APIClient()
        client.force_login(User.objects.get(username=name))
        return client

    return sign_in
