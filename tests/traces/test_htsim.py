"""Connection matrices of htsim: flows by starts and triggers, and what is refused with its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.damage import survives_damage

import opticcl
from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_workload

FILE = """# two flows, then one that both start, then one at a later start
Nodes 5
Connections 4
Triggers 1
0->1 id 1 start 0 size 1000 send_done_trigger 7
2 -> 3 id 2 msg 4 start 0 size 2000 recv_done_trigger 7 prio 1
3->0 id 3 trigger 7 size 3000
1->2 start 1.5e6 size 4000
trigger id 7 barrier count 2
failure switch_type CORE switch_id 0 link_id 1
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("htsim") / "flows.cm"


def load(path, text):
    """What the reader makes of a file with that text."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_workload(path)


def test_starts_and_triggers(path):
    """Turn after turn: a flow with a trigger is behind all that fire it; nodes without a flow are ranks too."""
    read = load(path, FILE)
    assert [(c.size_bytes, c.ranks, c.group) for c in read.calls] == [
        (1000, (0, 1), "turn 1"),
        (2000, (2, 3), "turn 1"),
        (3000, (3, 0), "turn 2"),
        (4000, (1, 2), "turn 2"),
    ]
    assert (read.num_ranks, read.ranks_source) == (5, "Nodes of flows.cm")
    assert load_job(path).num_calls == 4


def test_the_flows_of_a_plan_are_read_back(path):
    """Six steps of a ring of four nodes, with barriers between them."""
    opticcl.compile("ideal:nodes=4", "all_reduce", "1 MB", algorithm="ring").export(path)
    read = load_workload(path)
    assert [call.size_bytes for call in read.calls] == 24 * [250_000]
    assert len({call.group for call in read.calls}) == 6


def test_flows_without_an_end_are_left_out(path):
    """As htsim takes those without a size."""
    read = load(path, "Nodes 2\nConnections 2\n0->1 start 0 size 8\n1->0 start 0\n")
    assert [call.size_bytes for call in read.calls] == [8]
    assert "left out: 1 flows without a size, which do not end" in read.notes
    assert [(one.calls, one.missing) for one in read.omitted] == [(1, True)]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (FILE, "Connections 0\n", "line 1: Nodes is missing"),
        ("Connections 4", "Connections 5", "4 flows, and Connections says 5"),
        ("0->1 id 1", "0 1 id 1", "line 5: '0 1 id 1 start 0 size 1000 send_done_trigger 7' is not a flow; write 0->1"),
        ("start 1.5e6", "begin 0", "line 8: '1->2 begin 0 size 4000' is not a flow"),
        ("start 1.5e6", "start 1.5e", "line 8: .* has a size or a start that is no number"),
        ("1->2 start", "1->2 speed 5 start", "line 8: '1->2 speed 5 start 1.5e6 size 4000' is not a flow"),
        ("1->2 start", "1->2 trigger 7 start", "line 8: .* is not a flow"),
        ("start 1.5e6 ", "", "line 8: '1->2 size 4000' is not a flow"),
        ("start 1.5e6", "start", "line 8: '1->2 start size 4000' is not a flow"),
        ("Nodes 5\n", "", "line 4: node 1 of 0, numbered from 0"),
        ("1->2", "1->5", "line 8: node 5 of 5, numbered from 0"),
        ("trigger 7 size", "trigger 8 size", "line 7: no flow that has started fires trigger 8"),
        (
            "start 0 size 1000 send_done_trigger 7",
            "trigger 7 size 1 send_done_trigger 7",
            "line 5: no flow that has started",
        ),
        ("size 4000", f"size {2**61}", "line 8: the flow is .* bytes"),
    ],
)
def test_another_line_is_refused(path, old, new, said):
    """With its number."""
    assert old in FILE
    with pytest.raises(WorkloadError, match=said):
        load(path, FILE.replace(old, new))


@given(st.integers(0, len(FILE) - 1), st.integers(0, 255), st.integers(0, len(FILE)))
@examples(60)
def test_cut_and_changed_files_raise_nothing_else(path, at, byte, cut):
    """One printable line."""
    assert survives_damage(load, path, FILE, at, byte, cut)
