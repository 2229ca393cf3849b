"""Which reader a file is for, by its suffix or its content."""

import gzip

import pytest
from tests.optional import shared_file

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


@pytest.mark.parametrize("suffix", ["et", "json", "fbuf", "toml", "pkl", "bin"])
@pytest.mark.parametrize(
    "name",
    [
        "chakra/llama-dp2-tp4-pp2/w.0.et",
        "kineto/timeline-rank0.json.gz",
        "pytorch-et/resnet-2gpu.json.gz",
        "lumorph/ncf-8.log",
        "topoopt/100vgg_16.fbuf",
        "astra-sim/dlrm-hybrid-parallel.txt",
    ],
)
def test_the_content_counts_more_than_the_name(tmp_path, name, suffix):
    """A real trace under the name of another format is read as what it is."""
    source = shared_file(name)
    (tmp_path / f"job.{suffix}").write_bytes(source.read_bytes())
    right = f"job{''.join(source.suffixes[-2:])}".replace(".0.et", ".et")
    if right != f"job.{suffix}":
        (tmp_path / right).write_bytes(source.read_bytes())
    ranks = 16 if source.suffix == ".fbuf" else 128
    lies, plain = (load_workload(tmp_path / file, num_ranks=ranks) for file in (f"job.{suffix}", right))
    assert lies.calls == plain.calls
