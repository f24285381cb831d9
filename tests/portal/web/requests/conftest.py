from tests.portal.approvals.conftest import cluster, people, wish

__all__ = ["cluster", "people", "wish"]
