"""What every test may lean on."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
