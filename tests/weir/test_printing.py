import pytest

from weir.printing import duration, number, safe, table


def test_name_with_escapes_moves_no_cursor():
    assert safe("a\x1b[2Jb\u202e") == "a�[2Jb�"


def test_table_has_figures_to_the_right_and_wide_letters_in_step(capsys):
    rows = [{"n": "研究", "g": 8}, {"n": "speech", "g": 12}]
    table(rows, [("NAME", lambda row: row["n"]), ("GPUS", lambda row: row["g"])], "none")
    assert capsys.readouterr().out == "NAME    GPUS\n研究       8\nspeech    12\n"


def test_table_without_rows_says_so(capsys):
    table([], [("NAME", lambda row: row["n"])], "There is none.")
    assert capsys.readouterr().out == "There is none.\n"


@pytest.mark.parametrize(
    ("value", "told"), [(4.0, "4"), (6.66667, "6.7"), (None, "–"), (1234.5, "1,234.5")]
)
def test_number_is_told_to_a_tenth(value, told):
    assert number(value) == told


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, "0 s"), (59, "59 s"), (7800, "2 h 10 min"), (90000, "1 d 1 h")]
)
def test_duration_is_told_in_its_two_largest_units(seconds, told):
    assert duration(seconds) == told
