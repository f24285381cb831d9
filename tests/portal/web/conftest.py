import pytest

from tests.portal.web.example import overview_cluster


@pytest.fixture
def cluster(db):
    """The example organisation with nodes that hold what its workloads hold."""
    return overview_cluster()


@pytest.fixture
def as_user(client, django_user_model):
    """``as_user("lead")``: the test client signed in as that person."""

    def sign_in(name: str):
        client.force_login(django_user_model.objects.get(username=name))
        return client

    return sign_in
