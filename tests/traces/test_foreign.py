"""Files that are no traces are recognised and refused with what to give instead."""

import bz2
import io
import lzma
import zipfile

import pytest
from tests.optional import shared_file


def zipped() -> bytes:
    """A zip archive of one file."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        file.writestr("a.json", "{}")
    return target.getvalue()


CASES = {
    "report.nsys-rep": (b"\0\1\2", "nsys export --type sqlite"),
    "report.qdrep": (b"\0\1\2", "nsys export --type sqlite"),
    "ring.xml": (b'<algo name="ring" proto="Simple" nchunksperloop="8"><gpu id="0"></gpu></algo>', "schedule of MSCCL"),
    "te.json": (b'{"1-Epoch_Duration": 0.1, "7-Flows": []}', "schedule of TE-CCL"),
    "plan.parquet": (b"PAR1abc", "Parquet"),
    "plan.json": (b'{"header": {"format": "opticcl-plan", "version": 1', "a plan of opticcl"),
    "plan.csv": (b'# {"format": "opticcl-plan", "version": 1', "a plan of opticcl"),
    "nccl.log": (b"host:1:2 [0] NCCL INFO Bootstrap : Using eth0\n", "NCCL_DEBUG"),
    "trace.pftrace": (b"\x0a\x05abcde", "export_chrome_trace"),
    "traces.zip": (zipped(), "unpack it"),
    "trace.json.xz": (lzma.compress(b"{}"), "gzip"),
    "trace.json.bz2": (bz2.compress(b"{}"), "gzip"),
    "trace.json.zst": (b"\x28\xb5\x2f\xfd\0", "gzip"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_foreign_file_is_named(tmp_path, opticcl, name):
    """One line, exit code 2, with advice; also under another name where the content tells."""
    content, said = CASES[name]
    (tmp_path / name).write_bytes(content)
    done = opticcl("train", "--workload", tmp_path / name, "--nodes", "4", "--fabric", "ideal")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr
    assert name in done.stderr


def test_a_real_schedule_is_refused(opticcl):
    """Of MSCCL, by its content."""
    done = opticcl(
        "train", "--workload", shared_file("msccl/ring-allreduce-8.xml"), "--nodes", "8", "--fabric", "ideal"
    )
    assert done.returncode == 2
    assert "schedule of MSCCL" in done.stderr
