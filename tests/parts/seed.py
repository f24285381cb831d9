"""Program: a cluster with two queues, a lead with a password, and a token, into the settings' database."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")

NAME, PASSWORD = "lead", "correct horse battery"


def main(api_url: str) -> None:
    import django

    django.setup()
    from portal.accounts.models import ApiToken, User
    from portal.teams.models import Membership, Team
    from scheduling.models import Queue
    from tests.factories import make_persona
    from tests.scheduling.kube import policy

    cluster = policy("enforce", api_url, "research", "products", nominal_gpus=16)
    user = User.objects.create_user(NAME, password=PASSWORD)
    persona = make_persona("lead", may_submit=True, may_operate=True)
    top = Queue.objects.get(cluster=cluster, parent=None)
    Membership.objects.create(
        user=user, persona=persona, team=Team.objects.create(name="all", queue=top)
    )
    _, token = ApiToken.issue(user, "parts")
    sys.stdout.write(token)


if __name__ == "__main__":
    main(sys.argv[1])
