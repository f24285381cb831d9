"""Headers that every answer carries, and the one that keeps answers about people out of caches."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import patch_vary_headers

Answer = Callable[[HttpRequest], HttpResponseBase]

UNUSED = (
    "accelerometer",
    "autoplay",
    "browsing-topics",
    "camera",
    "display-capture",
    "geolocation",
    "gyroscope",
    "hid",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "serial",
    "usb",
    "xr-spatial-tracking",
)
"""What browsers could do for a page and no page of Weir asks for."""
PERMISSIONS = ", ".join(f"{feature}=()" for feature in UNUSED)


class IsolationMiddleware:
    """No feature of the browser and no other site gets at an answer, be it a page or a file."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response["Permissions-Policy"] = PERMISSIONS
        response["Cross-Origin-Resource-Policy"] = "same-origin"
        return response


class NoStoreMiddleware:
    """Nothing is kept by browsers or proxies. It stands inside WhiteNoise, so files are exempt.

    All answers, because each page depends on who asks: the sign-in page holds a CSRF token, and
    what a person may not see tells something too.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response["Cache-Control"] = "no-store"
        patch_vary_headers(response, ["Cookie", "Authorization"])
        return response
