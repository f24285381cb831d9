import pytest
import yaml
from django.core.exceptions import ValidationError

from portal.web.workloads.manifest import lines, read, write

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"labels": {"weir.dev/queue": "search"}},
    "spec": {"suspend": True, "command": ["python", "train.py", "--lr", "0.1"]},
}


def test_what_is_written_is_read_again():
    assert read(write(JOB)) == JOB


def test_commands_stand_on_one_line():
    assert "command: [python, train.py, --lr, '0.1']" in write(JOB)


def test_weirs_lines_are_marked_and_no_others():
    own = [line.key + line.value for line in lines(write(JOB)) if line.own]
    assert own == ["weir.dev/queue: search", "suspend: true"]


def test_lines_are_the_text():
    text = write(JOB)
    assert "\n".join(li.indent + li.key + li.value for li in lines(text)) == text.rstrip("\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kind: [", "Line 1"),
        ("a: 1\n b: 2", "Line 2"),
        ("kind: Job\n---\nkind: Job", "not one object"),
        ("- a\n- b", "not one object"),
        ("", "not one object"),
        ("!!python/object/apply:os.system [id]", "Line 1"),
        ("a: &x [1]\nb: [*x, *x]", "aliases"),
        ("x" * 70_000, "64 KiB"),
        ("[" * 3000, "YAML"),
    ],
)
def test_broken_text_is_told_what_is_wrong(text, says):
    with pytest.raises(ValidationError) as refused:
        read(text)
    assert says in refused.value.message


def test_json_is_read_as_well():
    assert read('{"kind": "Job"}') == {"kind": "Job"}


def test_shared_parts_are_written_out_in_full():
    amounts = {"nvidia.com/gpu": "1"}
    text = write({"requests": amounts, "limits": amounts})
    assert "&" not in text
    assert yaml.safe_load(text)["limits"] == amounts
