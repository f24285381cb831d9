"""The ASGI application."""

import os
import warnings

from portal.boundary.asgi import bounded
from portal.config.checks import refuse_to_start
from portal.config.handler import application_of_django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")

# WhiteNoise answers with files, which are read synchronously; they are small and cached by browsers.
warnings.filterwarnings(
    "ignore", message="StreamingHttpResponse must consume synchronous iterators"
)

refuse_to_start()
django = application_of_django()

from portal.config.lifespan import living  # noqa: E402 - models, once Django is set up
from portal.config.probes import probed  # noqa: E402 - the same

application = probed(living(bounded(django)))
