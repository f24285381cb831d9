"""Who sets Weir up."""

import pytest

from portal.setup import inviting
from portal.teams.shipped_personas import ensure_personas, ensure_priority_classes

PASSWORD = "a-long-enough-password"


@pytest.fixture
def admin(client, settings, tmp_path):
    ensure_priority_classes()
    ensure_personas()
    typed = {"username": "boss", "password": PASSWORD}
    answer = client.post(f"/set-up/first/{inviting.invite()}/", typed)
    assert answer.status_code == 302
    return client
