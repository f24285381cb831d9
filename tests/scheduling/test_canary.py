from scheduling.cluster.connection.client import Client
from scheduling.models import Cluster
from tests.scheduling.canary import ADMISSION, wait_until_taken_up
from workshop.testbed.server import EmbeddedServer


def test_wait_ends_by_policies_in_force_and_leaves_none_behind():
    with EmbeddedServer(port=0, controllers=False) as server:
        client = Client.connect(Cluster(name="x", api_url=server.url))
        wait_until_taken_up(client)
        kinds = [
            f"{kind}admissionpolic{end}"
            for kind in ("validating", "mutating")
            for end in ("ies", "ybindings")
        ]
        assert [client.get(f"{ADMISSION}/{kind}")["items"] for kind in kinds] == [[], [], [], []]
        client.close()
