"""What a trace is said to leave out, and the remarks that every list of calls has."""

import pytest

from opticcl.ir.task_graph import CollectiveCall, Omission
from opticcl.traces import load_workload
from opticcl.traces.notes import MAX_REASONS, Omissions, measured, notes_on

LOG = """AR;8;0,1,2,3|2.5
AR;8;0,1
AR;0;2,0,1
L2L;64;7;0;1;2|0.5
L2L;0;7;0;2;1
L2L;36;7;0;0;1
"""
NOTES = [
    "measured: 3 ms in all for 2 of 6 calls",
    "transfers from one rank to another: 3 of 100 bytes in all",
    "groups smaller than all 4 ranks: 2 of 6 calls",
    "size of 0 bytes: 2 of 6 calls",
]


def test_omissions_add_up():
    """Calls, bytes where they are known, and whether one of a kind takes time on the network."""
    found, more = Omissions(), Omissions()
    found.add("unknown", 8)
    found.add("unknown", 4, 2, missing=True)
    found.add("repeated")
    found.add("none", 5, 0)
    assert found.records() == (Omission("unknown", 3, 12, True), Omission("repeated", 1, 0, False))
    assert list(found.notes()) == ["left out: 3 unknown, 12 bytes in all", "left out: 1 repeated"]
    more.add("repeated", 7, missing=True)
    more.add("late", calls=2)
    found.add_all(more)
    assert found.records()[1:] == (Omission("repeated", 2, 7, True), Omission("late", 2, 0, False))


def test_reasons_are_bounded():
    """What is of a kind behind the last is of other kinds; those that are known go on being counted."""
    found = Omissions()
    for number in range(MAX_REASONS + 2):
        found.add(f"kind {number}", 1)
    found.add("kind 0", 1)
    assert [one.calls for one in found.records()] == [2, *[1] * (MAX_REASONS - 1), 2]
    assert found.records()[-1].what == "of other kinds"


@pytest.mark.parametrize("form", [lambda calls: calls, list], ids=["columns", "list"])
def test_remarks_on_a_list_of_calls(tmp_path, form):
    """On times, transfers, small groups and empty messages, whether the calls are columns or a list."""
    (tmp_path / "a.log").write_text(LOG)
    calls = form(load_workload(tmp_path / "a.log").calls)
    assert list(notes_on(calls, 4)) == NOTES
    assert list(notes_on(calls)) == [*NOTES[:2], NOTES[3]]
    assert measured(calls) == (pytest.approx(3e-3), 2, 2)


def test_calls_on_which_there_is_nothing_to_remark():
    """Of all ranks, or of ranks that are not recorded, without times."""
    for ranks in ((), (0, 1)):
        assert list(notes_on([CollectiveCall("a", "all_reduce", 8, ranks=ranks)], 2)) == []
