"""Files whose names are no UTF-8: written and opened as any other."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux")

PLAN = ("-f", "terarack:nodes=5,wavelengths=4", "-s", "1kB", "-a", "ring")


@pytest.fixture
def folder(tmp_path):
    """A directory of such a name."""
    made = tmp_path / os.fsdecode(b"odd\xff\xfe")
    made.mkdir()
    return made


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".json"])
def test_plans(opticcl, folder, suffix):
    """Written, judged, timed, executed, converted and opened as a start."""
    path = folder / os.fsdecode(b"plan\xff" + suffix.encode())
    for words in (
        ("compile", *PLAN, "-o", path),
        ("verify", path),
        ("simulate", path),
        ("execute", path, "-s", "1kB"),
        ("compile", path, "-o", folder / os.fsdecode(b"again\xff.json")),
    ):
        done = opticcl(*words)
        assert done.returncode == 0, done.stderr
    assert sorted(folder.iterdir()) == sorted([path, folder / os.fsdecode(b"again\xff.json")])


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".json"])
def test_programmes(opticcl, folder, suffix):
    """Written and judged; as CSV a directory."""
    path = folder / os.fsdecode(b"times\xff" + suffix.encode())
    done = opticcl("simulate", *PLAN, "--programme", path)
    assert done.returncode == 0, done.stderr
    done = opticcl("verify", *PLAN, "--time", path)
    assert done.returncode == 0, done.stderr


def test_tables_pictures_pages_and_records(opticcl, folder):
    """All that a comparison and a compiled plan write, and the tables that are judged."""
    files = [folder / os.fsdecode(b"\xff" + suffix) for suffix in (b".html", b".svg", b".csv", b".parquet", b".json")]
    done = opticcl("compare", "-f", "ideal", "-n", "4", "-s", "1kB", *(word for file in files for word in ("-o", file)))
    assert done.returncode == 0, done.stderr
    assert all(map(Path.is_file, files))
    tables = folder / os.fsdecode(b"tables\xff")
    done = opticcl("compile", *PLAN, "-o", tables)
    assert done.returncode == 0, done.stderr
    assert opticcl("verify", "--tables", tables).returncode == 0


def test_what_is_read(opticcl, folder):
    """Arrays, lists of sizes, logs, studies with their folder."""
    np.save(folder / os.fsdecode(b"a\xff.npy"), np.arange(8).reshape(4, 2))
    sizes = folder / os.fsdecode(b"sizes\xff.toml")
    sizes.write_text('name = "x"\n[[calls]]\ncollective = "all_reduce"\nsize = "1kB"\n')
    study = folder / os.fsdecode(b"study\xff.toml")
    study.write_text('[axes]\nfabric = ["ideal"]\nnodes = [4]\ncollective = ["all_reduce"]\nsize = ["1kB"]\n')
    for words in (
        ("execute", "-f", "ideal:nodes=4", "--input", folder / os.fsdecode(b"a\xff.npy")),
        ("compare", "-f", "ideal", "-n", "4", "-w", sizes),
        ("study", "run", study, "--folder", folder / os.fsdecode(b"out\xff"), "--jobs", "1"),
        ("study", "run", study, "--folder", folder / os.fsdecode(b"out\xff"), "--dry-run"),
    ):
        done = opticcl(*words)
        assert done.returncode == 0, done.stderr
