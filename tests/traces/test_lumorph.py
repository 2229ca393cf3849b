"""The reader of LUMORPH's logs, on lines written here and on a real log where it is at hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optional import shared_file
from tests.profiles import examples
from tests.traces.damage import survives_damage

from opticcl.errors import WorkloadError
from opticcl.traces import load_workload

LOG = "AR;4096;0,1,2,3\nAR;9;2\nL2L;64;7;0;1;2\nL2L;5;7;1;3;3\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("lumorph") / "comms_4.log"


def load(path, text):
    """What the reader makes of a log with that text."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_workload(path)


def test_a_log_reads_as_written(path):
    """Groups, directions and what stays on one GPU, which is counted with its bytes."""
    read = load(path, LOG)
    assert [(c.name, c.collective, c.size_bytes, c.ranks) for c in read.calls] == [
        ("line 1", "all_reduce", 4096, (0, 1, 2, 3)),
        ("layer 7 forward", "send_recv", 64, (1, 2)),
    ]
    assert (read.name, read.num_ranks, read.sizes("all_reduce"), read.total_bytes) == ("comms_4", 4, (4096,), 4160)
    assert "left out: 1 all_reduce in a group of one rank, 9 bytes in all" in read.notes
    assert "left out: 1 send from a rank to itself, 5 bytes in all" in read.notes


def test_times_and_subgroups(path):
    """After | stand milliseconds; a group of two of four GPUs is noted."""
    read = load(path, "AR;8;1,0|2.5\r\n\r\nL2L;1;0;1;3;0|1e-3")
    assert [c.measured_s for c in read.calls] == [pytest.approx(2.5e-3), pytest.approx(1e-6)]
    assert "groups smaller than all 4 ranks: 1 of 2 calls" in read.notes


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("AR;8", "not a record"),
        ("AR;x;0,1", "not a whole number"),
        ("AR;-1;0,1", "-1 bytes"),
        (f"AR;{2**60 + 1};0,1", r"2\*\*60"),
        ("AR;" + "9" * 39 + ";0,1", "more than 20 digits"),
        ("AR;8;0,0", "not a list of distinct GPUs"),
        ("AR;8;", "not a list of distinct GPUs"),
        ("AR;8;0,1|soon", "not a time"),
        ("AR;8;0,1|nan", "not a time"),
        ("L2L;8;1;2;0;1", "not a record"),
        ("L2L;8;1;0;0;-1", "not a pair of GPUs"),
        ("L2L;8;1;0;0;1000000000", "not a pair of GPUs"),
        ("L2L;8;1;0;1000000000;0", "not a pair of GPUs"),
        ("L2L;8;1;0;3;4,5", "'3' to '4,5' is not a pair of GPUs"),
        ("L2L;8;1;0;0", "not a record"),
        ("3;2,2;0,1", "not a record"),
        ("8;1;0;0;1", "not a record"),
        ("XX;8;1;0;0;1", "not a record"),
        (f"AR;{'x' * 60};0,1", f"'{'x' * 60}' is not a whole number"),
        (f"AR;{'x' * 61};0,1", f"'{'x' * 60}\\.\\.\\.' is not a whole number"),
        ("AR;" + "1" * 2**23, "a line of more than"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number(path, line, said):
    """One printable line: the file, the line and the form that is requested; in a log that is scanned by columns too."""
    for times, number in ((1, "5"), (900, "3,601")):
        with pytest.raises(WorkloadError, match=said) as caught:
            load(path, f"{LOG * times}{line}\n")
        assert f"line {number}: " in str(caught.value)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize("lines", [1, 4_000])
@pytest.mark.parametrize("group", ["0", " 0", "0,1,2,3,4"])
def test_the_number_of_ranks_is_that_of_the_highest(path, lines, group):
    """Of a transfer behind others, or of a group; also in a log that is scanned by columns."""
    read = load(path, f"AR;8;{group}\nL2L;8;0;0;0;0\nL2L;8;0;0;0;1\nL2L;8;0;0;1;0\n" * lines)
    assert read.num_ranks == (5 if "4" in group else 2)


@pytest.mark.parametrize("lines", [1, 400])
def test_large_numbers_of_layers_and_long_lines(path, lines):
    """Layers of any number have a name, and lines may have spaces; also in a log that is scanned by columns."""
    layers = [0, 10**9 - 1, 10**9, 10**9 + 1, 10**18]
    rows = [f"L2L;8;{layer};{way};0;1\n" for layer in layers for way in (0, 1)] * lines
    read = load(path, "".join(rows) + "AR;8;0,1".ljust(2**20))
    names = [f"layer {layer} {way}" for layer in layers for way in ("forward", "backward")] * lines
    assert [call.name for call in read.calls] == [*names, f"line {len(rows) + 1}"]
    with pytest.raises(WorkloadError, match="a line of more than 1,048,576 bytes"):
        load(path, "".join(rows) + "AR;8;0,1".ljust(2**20 + 1))


def test_a_log_that_stays_on_its_gpus_is_refused(path):
    """The counts say why."""
    with pytest.raises(WorkloadError, match="1 all_reduce in a group of one rank, 9 bytes"):
        load(path, "AR;9;2\n")
    with pytest.raises(WorkloadError, match="no collective with a size"):
        load(path, "\n\n")


@examples(60)
@given(cut=st.integers(0, len(LOG)), at=st.integers(0, len(LOG) - 1), byte=st.integers(0, 255))
def test_cut_and_flipped_logs_raise_nothing_else(path, cut, at, byte):
    """A workload or one line."""
    assert survives_damage(load, path, LOG, at, byte, cut)


def test_the_real_log_to_the_byte():
    """NCF on 8 GPUs: what is kept and what is left out is all that the file holds."""
    path = shared_file("lumorph/ncf-8.log")
    read = load_workload(path)
    rows = [line.split(";") for line in path.read_text("utf-8").splitlines()]
    reduced = [int(row[1]) for row in rows if row[0] == "AR" and "," in row[2]]
    moved = [int(row[1]) for row in rows if row[0] == "L2L" and row[4] != row[5]]
    assert read.sizes("all_reduce") == tuple(reduced)
    assert (len(reduced), sum(reduced)) == (17, 537_010_184)
    assert read.total_bytes == sum(reduced) + sum(moved)
    assert read.num_ranks == 8
    assert any(note.startswith("left out: 128 all_reduce in a group of one rank") for note in read.notes)
    assert any(note.startswith(f"left out: {2256 - len(moved)} send from a rank to itself") for note in read.notes)
