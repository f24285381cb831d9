"""What a person sends of a webhook: by page and by API."""

from __future__ import annotations

from django import forms

from portal.boundary.forms import WeirForm
from portal.boundary.reading import one_line


class WebhookForm(WeirForm):
    name = forms.CharField(
        max_length=63,
        validators=[one_line],
        label="Name of a new webhook",
        error_messages={"required": "It needs a name."},
    )
    address = forms.CharField(
        max_length=500,
        widget=forms.TextInput(attrs={"inputmode": "url"}),
        help_text="https, such as a Slack incoming webhook. It gets JSON with text and fields.",
        error_messages={"required": "Write where it goes."},
    )
