"""Lists come in pages: ``?page=2&page_size=100``."""

from rest_framework.pagination import PageNumberPagination


class Pages(PageNumberPagination):
    page_size_query_param = "page_size"
    max_page_size = 1000
