"""The provider's process: its tables, the one client, and a server."""

import os

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.provider.settings"


def main() -> None:
    django.setup()
    from django.core.handlers.asgi import ASGIHandler
    from django.core.management import call_command
    from oauth2_provider.models import Application

    from tests.provider import CLIENT_ID, CLIENT_SECRET

    call_command("migrate", verbosity=0)
    Application.objects.create(
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        redirect_uris=os.environ["PROVIDER_REDIRECTS"],
        algorithm=Application.RS256_ALGORITHM,
        skip_authorization=True,
    )
    import uvicorn

    port = int(os.environ["PROVIDER_PORT"])
    uvicorn.run(ASGIHandler(), host="127.0.0.1", port=port, lifespan="off", log_level="warning")


if __name__ == "__main__":
    main()
