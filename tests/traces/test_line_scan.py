"""Lines of whole numbers as columns: what the scan reads, by a table, and what it leaves to the reader of the format."""

import io

import pytest

from opticcl.reading import MAX_LINE, DamageError
from opticcl.traces.line_scan import NUMBERS, OTHER, TEXT, line_blocks

DIGITS = "123456789012345678"
TAGGED = {
    "L2L;64;7;0;1;2": (NUMBERS, [64, 7, 0, 1, 2], "", 0),
    "L2L;64;7;0;1;2\r": (NUMBERS, [64, 7, 0, 1, 2], "", 0),
    f"L2L;{DIGITS};90;0;1;2|2.5": (NUMBERS, [int(DIGITS), 90, 0, 1, 2], "", 2.5),
    "L2L;1;2;3;4;59|123456789.012345": (NUMBERS, [1, 2, 3, 4, 59], "", 123456789.012345),
    "L2L;1;2;3;4;5|0.07\r": (NUMBERS, [1, 2, 3, 4, 5], "", 0.07),
    "L2L;1;2;3;4;5|0": (NUMBERS, [1, 2, 3, 4, 5], "", 0),
    "AR;4096;0,1,2,3": (TEXT, [4096], "0,1,2,3", 0),
    "AR;8;0,1\r": (TEXT, [8], "0,1", 0),
    "AR;8;any text|12.50": (TEXT, [8], "any text", 12.5),
    "AR;0;": (TEXT, [0], "", 0),
    "AR;8;|9": (TEXT, [8], "", 9),
}
PLAIN = {
    "9,1,0,7\r": (NUMBERS, [9, 1, 0, 7], "", 0),
    "0,32,33,125000": (NUMBERS, [0, 32, 33, 125000], "", 0),
}
NOT_TAGGED = ["", "\r", "L2L;", "AR;", "AR;8", "64;7;0;1;2", "M2L;1;2;3;4;5", "L3L;1;2;3;4;5", "L2M;1;2;3;4;5"]
NOT_TAGGED += ["L2L,1;2;3;4;5", "BR;8;0,1", "AS;8;0,1", "AR,8;0,1", "L2L;1;2;3;4", "L2L;1;2;3;4;", "L2L;1;2;3;4;5;"]
NOT_TAGGED += [
    "L2L;1;2;3;4;5;6",
    "L2L;1,2;3;4;5",
    "L2L;01;2;3;4;5",
    "L2L;1;2;3;4;00",
    "L2L;+1;2;3;4;5",
    "L2L; 1;2;3;4;5",
]
NOT_TAGGED += [
    f"L2L;{DIGITS}9;2;3;4;5",
    "L2L;1;2/;3;4;5",
    "L2L;1;2:;3;4;5",
    "L2L;1;;3;4;5",
    "L2L;1;2;3;4;5.0",
    "AR;;0,1",
]
NOT_TAGGED += ["AR;08;0,1", "AR;8,0;1", "AR;x;0,1"]
NOT_TAGGED += [
    f"L2L;1;2;3;4;5|{took}" for took in ("", ".5", "5.", "1.2.3", "1e3", "-1", "1/", "1:", "1|2", "1234567890123456")
]
NOT_PLAIN = [
    "",
    "# 1",
    "1,2,3",
    "1,2,3,",
    "1,2,3,4,5",
    "1,2,3,4|5",
    "1 2 3 4",
    "1,2,3,4 ",
    "\ufeff1,2,3,4",
    "AR;8;0,1",
    "01,2,3,4",
]


def lines_of(content, form):
    """Number, text, what was found, numbers, text and time of each line of a file."""
    for lines in line_blocks(io.BytesIO(content.encode()), *form):
        for i, numbers in enumerate(lines.numbers.tolist()):
            yield lines.first + i, lines.line(i), lines.found[i], numbers, lines.text(i), lines.took_ms[i]


@pytest.mark.parametrize("end", ["\n", "", "\nL2L", "\nAR", "\n1,2,3"])
@pytest.mark.parametrize(
    ("read", "left", "form"),
    [(TAGGED, NOT_TAGGED, (True, ";", 5)), (PLAIN, NOT_PLAIN, (False, ",", 4))],
    ids=["tagged", "plain"],
)
def test_lines_that_are_read_and_lines_that_are_left(monkeypatch, read, left, form, end):
    """All of them one after the other, each with what is in it; the last one with and without an end, or cut off."""
    monkeypatch.setattr("opticcl.traces.line_scan.SMALL", 0)
    text = "\n".join([*left, *read]) + end
    rows = list(lines_of(text, form))
    assert [row[:2] for row in rows] == [
        *enumerate((one.lstrip("\ufeff").strip() for one in text.removesuffix("\n").split("\n")), 1)
    ]
    assert [one for one, row in zip(left, rows, strict=False) if row[2] != OTHER] == []
    for row, (found, numbers, words, took_ms) in zip(rows[len(left) :], read.values(), strict=False):
        assert (row[2], row[3][: len(numbers)], *row[4:]) == (found, numbers, words, took_ms)
    assert all(row[2] == OTHER for row in rows[len(left) + len(read) :])


def test_a_line_may_be_long_but_not_longer():
    """Of as many bytes as a log has; the line of a longer one is named."""
    rows = ["1", "2" * 700_000, "3", "4" * MAX_LINE]
    assert [row[:2] for row in lines_of("\n".join(rows), (False, ",", 1))] == [*enumerate(rows, 1)]
    for end in ("4", "4\n5"):
        with pytest.raises(DamageError, match="a line of more than 1,048,576 bytes") as caught:
            list(lines_of("\n".join(rows) + end, (False, ",", 1)))
        assert caught.value.at == 4
