"""Settings of the commands that read files alone: none of the portal's parts, no database."""

INSTALLED_APPS = ["scheduling.apps.FilesConfig"]
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
