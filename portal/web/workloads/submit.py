from django.http import HttpRequest, HttpResponse


def submit(request: HttpRequest, cluster: str) -> HttpResponse: ...


def preview(request: HttpRequest, cluster: str) -> HttpResponse: ...
