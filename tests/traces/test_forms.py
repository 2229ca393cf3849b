"""Which reader a file is for, by its suffix or its content."""

import gzip

import pytest

from opticcl.errors import WorkloadError
from opticcl.traces import load_workload

LOG = "AR;8;0,1\n"
LAYERS = "DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n"
SIZES = 'name = "a"\n[[calls]]\ncollective = "all_reduce"\nsize = 8\n'
ARGS = '{"Collective name": "allreduce", "In msg nelems": 2, "dtype": "Float", "Group size": 2}'
KINETO = '{"traceEvents": [{"name": "record_param_comms", "args": ' + ARGS + "}]}"


@pytest.mark.parametrize("name", ["job", "job.log", "job.txt", "job.dat.gz"])
@pytest.mark.parametrize(
    "content", [LOG, LAYERS, SIZES, KINETO, KINETO[16:-1]], ids=["log", "txt", "toml", "json", "list"]
)
def test_content_tells_the_form(tmp_path, name, content):
    """Where the suffix tells nothing, packed or not, and whatever the ends of lines are."""
    for text in (content, content.replace("\n", "\r\n"), "\n" + content):
        packed = text.encode()
        (tmp_path / name).write_bytes(gzip.compress(packed) if name.endswith("gz") else packed)
        assert load_workload(tmp_path / name).total_bytes == 8


@pytest.mark.parametrize("suffix", ["et", "json", "fbuf", "toml", "log", "txt", "json.gz", "bin"])
@pytest.mark.parametrize("content", [b"", b"\0", b"\x1f\x8b", b"\x1f\x8bgarbage", bytes(4096), b"no trace at all\n"])
def test_a_file_of_no_form_is_refused_in_one_line(tmp_path, suffix, content):
    """Empty files, zeros, damaged archives and prose, under every name."""
    (tmp_path / f"job.{suffix}").write_bytes(content)
    with pytest.raises(WorkloadError) as caught:
        load_workload(tmp_path / f"job.{suffix}")
    assert str(caught.value).isprintable()
    assert f"job.{suffix}" in str(caught.value)
