"""References of images by the grammar of the OCI distribution specification."""

import time

import pytest

from scheduling.services.workloads.shapes import fault_of

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "image",
    [
        "i",
        "busybox",
        "busybox:1.36",
        "library/busybox",
        "registry.example.org/team/train:1.2",
        "registry.example.org:5000/team/sub/train",
        "localhost:5000/a",
        "[2001:db8::1]:5000/a:tag",
        f"a/b@{DIGEST}",
        f"a/b:1@{DIGEST}",
        "a__b/c.d-e--f:A_1.2-3",
        "Registry.example.org/a",
    ],
)
def test_reference_is_taken(image):
    assert fault_of(image) is None


@pytest.mark.parametrize(
    "image",
    [
        "",
        "not a valid image!!",
        " a",
        "a ",
        "a\n",
        "team/Upper",
        "a//b",
        "/a",
        "a/",
        "a:",
        "a:-tag",
        f"a:{'t' * 129}",
        "a@sha256:short",
        "a..b",
        "-a",
        "a-",
        "https://registry.example.org/a",
        "a/" + "b" * 300,
    ],
)
def test_what_is_no_reference_is_refused_with_the_form_of_one(image):
    fault = fault_of(image)
    assert fault is not None
    assert (fault.code, fault.field) == ("invalid_image", "image")
    assert "[registry/]name" in fault.remedy


def test_hostile_reference_is_refused_at_once():
    began = time.thread_time()
    for text in ("a-" * 300 + "!", "a" * 600 + "!", "a." * 250 + "/" + "b_" * 50 + "!"):
        assert fault_of(text)
    assert time.thread_time() - began < 0.5
