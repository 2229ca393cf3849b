"""Streams that are closed, disks that are full, arrays that are damaged: one line and code 2, and no file that is not whole."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.process import COMMAND
from tests.profiles import examples

from opticcl.errors import OutputError, ParameterError
from opticcl.execute.reference import load_arrays
from opticcl.files import all_or_none, write_whole, write_whole_folder

linux = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is a device of Linux")
PLAN = ("-f", "terarack:nodes=8", "-s", "1kB", "-a", "ring")
SMALL = ("-f", "ideal", "-n", "4", "-s", "1kB")


COMMANDS = [
    (("list",), 0), (("machine", "cost", "-n", "16"), 0), (("compare", *SMALL, "--json"), 0), (("compare", *SMALL), 0),
    (("simulate", *PLAN), 0), (("verify", *PLAN), 0), (("verify", "nothere.csv"), 2), (("compile", "--wrong"), 2),
    (("--help",), 0), (("machine", "budget", "-f", "ramp"), 1),
]  # fmt: skip
CLOSED = [">&-", "2>&-", "<&-", ">&- 2>&-", ">&- 2>&- <&-", "2>/dev/full", "> /dev/full"]


@linux
@pytest.mark.parametrize(
    ("words", "due", "closed"),
    [
        pytest.param(
            *command, closed, id=f"{' '.join(command[0])} {closed}", marks=() if at % 7 == way else pytest.mark.deep
        )
        for at, command in enumerate(COMMANDS)
        for way, closed in enumerate(CLOSED)
    ],
)
def test_closed_streams(words, due, closed, tmp_path):
    """The answer is what it is; where it cannot be printed, there is none."""
    where = tmp_path / "error"
    shown = "" if "2>" in closed else f"2> {where}"
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed} {shown}', "sh", *COMMAND, *words], cwd=tmp_path, check=False, timeout=120,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == (2 if due < 2 and closed == "> /dev/full" else due)
    if shown:
        lines = [line for line in where.read_text().splitlines() if line.startswith("opticcl: ")]
        assert len(lines) == (done.returncode == 2)
        assert "Traceback" not in where.read_text()


@linux
@pytest.mark.parametrize(
    "words",
    [
        ("compile", *PLAN, "-o", "{}/p.parquet"),
        ("compile", *PLAN, "-o", "{}/p.csv"),
        ("compile", *PLAN, "-o", "{}/p.json"),
        ("compile", *PLAN, "-o", "{}/p.svg"),
        ("compile", *PLAN, "-o", "{}/tables"),
        ("compile", *PLAN, "-o", "p.csv", "-o", "{}/p.parquet"),
        ("simulate", *PLAN, "--programme", "{}/t.parquet"),
        ("simulate", *PLAN, "--programme", "{}/t.json"),
        ("simulate", *PLAN, "--programme", "{}/t.csv"),
        ("simulate", *PLAN, "--engine", "flow", "-o", "{}/r.json", "--trace", "t.json"),
        ("compare", *SMALL, "-o", "{}/c.html"),
        ("compare", *SMALL, "-o", "{}/c.parquet"),
        ("compare", *SMALL, "-o", "c.csv", "-o", "{}/c.json"),
        ("execute", "-f", "ideal:nodes=4", "-s", "64kB", "-o", "{}/a.npy"),
        ("synthesize", "-f", "lightpath:shape=2x2", "-o", "{}/s.parquet"),
        ("machine", "netlist", "-f", "ramp:groups=2,racks=2,wavelengths=4", "-o", "{}/n.svg"),
    ],
    ids=lambda words: " ".join(words),
)
def test_a_full_disk(opticcl, words, tmp_path, monkeypatch):
    """One line that names the file, and none of the files of the command."""
    full = tmp_path / "full"
    full.mkdir()
    monkeypatch.chdir(tmp_path)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", full], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        (full / "first").write_bytes(b"x" * 4096)  # a page, which is all that there is
        done = opticcl(*(word.format(full) for word in words))
        assert done.returncode == 2
        assert re.fullmatch(r"opticcl: .*cannot write .*: No space left on device\n", done.stderr), done.stderr
        assert [path.name for path in full.iterdir()] == ["first"]
        assert [path.name for path in tmp_path.iterdir()] == ["full"]
    finally:
        subprocess.run(["umount", full], check=True)


@pytest.mark.parametrize(
    "words",
    [
        ("compile", "-f", "torus:shape=4x4", "-s", "1MB", "-a", "ring", "-o", "p.csv", "-o", "p.json", "-o", "q.svg"),
        ("compile", "-f", "torus:shape=4x4", "-s", "1MB", "-a", "ring", "-o", "p.parquet", "-o", "folder"),
        ("compile", *PLAN, "-o", "p.csv", "-o", "p.xml", "-o", "nowhere/p.json"),
        ("simulate", "-f", "ideal:nodes=4", "-o", "r.json", "--programme", "p.json"),
    ],
    ids=lambda words: " ".join(words),
)
def test_a_refused_output_leaves_none(opticcl, words, tmp_path, monkeypatch):
    """Neither those before it nor those behind it."""
    monkeypatch.chdir(tmp_path)
    done = opticcl(*words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert not list(tmp_path.iterdir())


def test_all_files_or_none(tmp_path):
    """Files and directories appear together at the end; a state appears at once; after an error all is as it was."""
    (tmp_path / "old").write_bytes(b"old")
    with all_or_none():
        with write_whole(tmp_path / "old") as file:
            file.write(b"new")
        with write_whole(tmp_path / "state", at_once=True) as file:
            file.write(b"1")
        with write_whole_folder(tmp_path / "made", ("a",)) as folder, write_whole(folder / "a") as file:
            file.write(b"a")
        assert (tmp_path / "old").read_bytes() == b"old"
        assert (tmp_path / "state").read_bytes() == b"1"
        assert not (tmp_path / "made").exists()
    assert (tmp_path / "old").read_bytes() == b"new"
    assert (tmp_path / "made/a").read_bytes() == b"a"
    before = sorted(os.listdir(tmp_path))

    def fails():
        with all_or_none():
            with write_whole_folder(tmp_path / "made", ("a",)) as folder:
                (folder / "a").write_bytes(b"b")
            with write_whole(tmp_path / "old") as file:
                file.write(b"newer")
            raise OutputError("no")

    with pytest.raises(OutputError, match="no"):
        fails()
    assert (tmp_path / "old").read_bytes() == b"new"
    assert (tmp_path / "made/a").read_bytes() == b"a"
    assert sorted(os.listdir(tmp_path)) == before == ["made", "old", "state"]


@pytest.fixture(scope="module")
def array(tmp_path_factory):
    """A file with an array, and its content."""
    path = tmp_path_factory.mktemp("npy") / "a.npy"
    np.save(path, np.arange(8.0).reshape(4, 2))
    return path, path.read_bytes()


HEADERS = st.one_of(
    st.sampled_from(["", "(", "{", "{'descr': '<f8'}", "{'descr': [('a', '<f8'], }", "'''", "\\", "\x00", "1_0", "ﬀ"]),
    st.sampled_from(["<f8", "|O", "<M8[s]", "<U4", "V8", ">i3", "<f9999999999"]).flatmap(
        lambda kind: st.sampled_from(
            ["(4, 2)", "(4, -2)", "(4000000000000,)", "4", "(4.0,)", "(True, 2)", "(2,) * 9"]
        ).map(lambda shape: f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}")
    ),
    st.text(max_size=80),
)


@pytest.mark.filterwarnings("ignore")
@examples(100)
@given(data=st.data())
def test_a_damaged_array(array, data):
    """Bytes that are changed or cut, and headers of every kind: an array or one line."""
    path, whole = array
    content = bytearray(whole)
    if data.draw(st.booleans()):
        for at, value in data.draw(
            st.lists(st.tuples(st.integers(0, 127), st.integers(0, 255)), min_size=1, max_size=4)
        ):
            content[at] = value
        content = content[: data.draw(st.integers(0, len(whole)))]
    else:
        header = data.draw(HEADERS).encode("latin-1", "replace") + b"\n"
        content = bytearray(whole[:8]) + len(header).to_bytes(2, "little") + header + whole[128:]
    damaged = path.with_name("damaged.npy")
    damaged.write_bytes(content)
    refused = ""
    try:
        assert load_arrays(damaged).ndim
    except ParameterError as error:
        refused = str(error)
    except MemoryError:
        pass  # the command line says so
    assert not refused or (refused.startswith("--input: ") and refused.isprintable())


def test_a_header_that_is_cut(opticcl, tmp_path):
    """By the command line: one line."""
    path = Path(tmp_path / "cut.npy")
    np.save(path, np.arange(8).reshape(4, 2))
    content = path.read_bytes()
    path.write_bytes(content[:10] + b"{'descr': (" + b"\x00" * 107 + content[128:])
    done = opticcl("execute", "-f", "ideal:nodes=4", "--input", path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
