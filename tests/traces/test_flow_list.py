"""Lists of flows, in both orders of columns."""

import pytest

import opticcl
from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_workload

COMMAS = "0,32,33,125000\n0,33,34,125000\n1000,34,32,250\n"
SPACES = "32 33 125000 0\n33 34 125000 0\n34 32 250 1000\n"


def load(folder, content, name="flows.csv"):
    """What the reader makes of a file with that content."""
    (folder / name).write_text(content)
    return load_workload(folder / name)


@pytest.mark.parametrize(
    "content",
    [COMMAS, SPACES, "# start, from, to, bytes\n" + COMMAS, COMMAS.replace(",", ", "), COMMAS.replace("\n", "\n\n")],
)
@pytest.mark.parametrize("name", ["flows.csv", "flow_arrivals.txt", "flows"])
def test_both_forms(tmp_path, content, name):
    """Hosts are numbered from 0, and that is said."""
    found = load(tmp_path, content, name)
    assert [(c.collective, c.size_bytes, tuple(c.ranks)) for c in found.calls] == [
        ("send_recv", 125000, (0, 1)),
        ("send_recv", 125000, (1, 2)),
        ("send_recv", 250, (2, 0)),
    ]
    assert found.num_ranks == 3
    assert any("hosts 32 to 34 are numbered 0 to 2" in note for note in found.notes)
    assert any("flows start at 2 times" in note for note in found.notes)


def test_flows_are_sent_in_the_order_of_their_start(tmp_path):
    """Whatever the order of the lines."""
    found = load(tmp_path, "5,0,1,10\n0,1,0,20\n")
    assert [(c.name, c.size_bytes) for c in found.calls] == [("flow of line 2", 20), ("flow of line 1", 10)]
    assert load_job(tmp_path / "flows.csv").num_calls == 2


def test_the_flows_of_a_plan_are_read_back(tmp_path):
    """Starts in seconds, with exponents: six steps of a ring of four nodes."""
    plan = opticcl.compile("ideal:nodes=4", "all_reduce", "1 MB", algorithm="ring")
    plan.export(tmp_path / "plan.flows")
    assert "e-" in (tmp_path / "plan.flows").read_text()
    found = load_workload(tmp_path / "plan.flows")
    assert [call.size_bytes for call in found.calls] == 24 * [250_000]
    assert any("flows start at 6 times" in note for note in found.notes)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("0,0,1,10\n0,0,1\n", "line 2: '0,0,1' is not a flow"),
        ("0,0,1,10\nstart,of,the,end\n", "line 2"),
        (f"0,0,1,{10**18}\n", "line 1: "),
        ("0,0,1,10\n" * 4_000 + "L2L;0,0,1,10\n", "line 4,001: 'L2L;0,0,1,10' is not a flow"),
        ("0,0,1,10\n" * 4_000 + "0,0,1,10,0\n", "line 4,001: '0,0,1,10,0' is not a flow"),
    ],
)
def test_another_line_is_refused(tmp_path, content, said):
    """With its number; in a list that is scanned by columns too."""
    with pytest.raises(WorkloadError, match=said):
        load(tmp_path, content)


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([(0, 1), (2, 1)], None),
        ([(0, 1), (3, 1)], "hosts 0 to 3 are numbered 0 to 2 here"),
        ([(1, 2), (3, 2)], "hosts 1 to 3 are numbered 0 to 2 here"),
        ([(5, 90), (7, 90)], "hosts 5 to 90 are numbered 0 to 2 here"),
    ],
)
def test_hosts_with_gaps_are_numbered(tmp_path, pairs, said):
    """In their order, with a note."""
    (tmp_path / "flows.csv").write_text("".join(f"0,{src},{dst},8\n" for src, dst in pairs))
    read = load_workload(tmp_path / "flows.csv")
    order = sorted({host for pair in pairs for host in pair})
    assert [c.ranks for c in read.calls] == [tuple(map(order.index, pair)) for pair in pairs]
    assert [note for note in read.notes if note.startswith("hosts")] == ([said] if said else [])
    assert read.num_ranks == 3
