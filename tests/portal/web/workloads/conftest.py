import pytest

from tests.portal.kubernetes import serving


@pytest.fixture
def kube(cluster):
    """A client of the API server behind ``cluster``."""
    with serving(cluster) as client:
        yield client
