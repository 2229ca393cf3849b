"""A file under a name that is not its own: every format under the suffix of every other."""

import gzip
import io
import json
import pickle
import tarfile

import pytest
from tests.traces.independent import chakra_nodes
from tests.traces.test_aicb import FILE as AICB
from tests.traces.test_chakra import attribute, coll, trace
from tests.traces.test_chakra_json import as_json
from tests.traces.test_flight_recorder import JOB
from tests.traces.test_flow_list import COMMAS, SPACES
from tests.traces.test_forms import ARGS, LAYERS, LOG, SIZES
from tests.traces.test_goal import FILE as GOAL
from tests.traces.test_htsim import FILE as CONNECTIONS
from tests.traces.test_nccl_logs import LOG as INSPECTOR
from tests.traces.test_nccl_logs import arguments, events, write_events
from tests.traces.test_nsys import training
from tests.traces.test_pytorch_et import call, text
from tests.traces.test_topoopt import GOOD
from tests.traces.test_xla import FILE as XLA

from opticcl.errors import WorkloadError
from opticcl.files import read_toml
from opticcl.traces import TRACES, load_job, load_workload

CHAKRA = trace(coll(1, 64, 0, attribute("pg_name", "0")), coll(2, 8, 0))
PROFILER = write_events(events("AllReduce", 0, arguments(99, 0, 1000), 10.0, 60.0))
RECORD = '{"ph": "X", "name": "record_param_comms", "args": ' + ARGS + "}"


def archive():
    """Two ranks in a .tar.gz."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as file:
        for rank in range(2):
            info = tarfile.TarInfo(f"w.{rank}.et")
            info.size = len(CHAKRA)
            file.addfile(info, io.BytesIO(CHAKRA))
    return out.getvalue()


def calls():
    """A table of calls."""
    import polars  # a process that runs it cannot be divided

    out = io.BytesIO()
    polars.DataFrame({"rank": [0, 1], "collective": ["all_reduce"] * 2, "size_bytes": [64, 64]}).write_parquet(out)
    return out.getvalue()


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """A job of each format, by format and its own suffix."""
    folder = tmp_path_factory.mktemp("contents")
    (folder / "a.et").write_bytes(CHAKRA)
    return {
        ("chakra", ".et"): CHAKRA,
        ("chakra_json", ".json"): as_json(chakra_nodes(folder / "a.et")).encode(),
        ("kineto", ".json"): ('{"schemaVersion": 1, "traceEvents": [' + RECORD + "]}").encode(),
        ("pytorch_et", ".json"): text(call("allreduce", 4, 4, pg_name="0", pg_size=4)).encode(),
        ("flight_recorder", ".json"): json.dumps(JOB).encode(),
        ("flight_recorder", ".pkl"): pickle.dumps(JOB),
        ("nsys", ".sqlite"): training().write(folder / "a.sqlite").read_bytes(),
        ("lumorph", ".log"): LOG.encode(),
        ("flow_list", ".csv"): COMMAS.encode(),
        ("flow_list", ".txt"): SPACES.encode(),
        ("goal", ".goal"): GOAL.encode(),
        ("htsim", ".cm"): CONNECTIONS.encode(),
        ("aicb", ".csv"): AICB.encode(),
        ("xla", ".json"): XLA.encode(),
        ("nccl_inspector", ".log"): INSPECTOR.encode(),
        ("nccl_profiler", ".json"): PROFILER.encode(),
        ("topoopt", ".fbuf"): GOOD,
        ("astra", ".txt"): LAYERS.encode(),
        ("sizes", ".toml"): SIZES.encode(),
        ("calls", ".parquet"): calls(),
    }


FORMATS = [
    "chakra",
    "chakra_json",
    "kineto",
    "pytorch_et",
    "flight_recorder",
    "nsys",
    "lumorph",
    "flow_list",
    "topoopt",
]
FORMATS += ["astra", "sizes", "goal", "aicb", "nccl_inspector", "nccl_profiler", "xla", "calls", "htsim"]
# Suffixes that a format claims, those of files that are no traces among them.
CLAIMED = {
    ".et": "chakra",
    ".json": "kineto",
    ".fbuf": "topoopt",
    ".toml": "sizes",
    ".log": "lumorph",
    ".sqlite": "nsys",
}
CLAIMED |= {".sqlite3": "nsys", ".pkl": "flight_recorder", ".pickle": "flight_recorder", ".nsys-rep": "nsys_report"}
CLAIMED |= {".qdrep": "nsys_report", ".qdstrm": "nsys_report", ".parquet": "calls", ".pftrace": "perfetto"}
CLAIMED |= {".perfetto-trace": "perfetto", ".zst": "packed", ".pb": "xplane", ".ncu-rep": "nsight_compute"}
CLAIMED |= {".otf2": "otf2", ".goal": "goal", ".cm": "htsim"}
SHARED = {(".log", "nccl_inspector")}
PLAIN = ["", ".txt", ".csv", ".dat", ".tar", ".tgz", ".tar.gz", ".zip", ".xz", ".bz2"]
JSON = {"xla", "nccl_inspector", "nccl_profiler", "chakra_json", "kineto", "pytorch_et", "flight_recorder"}


def test_no_format_is_missing_above():
    """A new format or suffix needs a row."""
    found = {(suffix, name) for name in TRACES.names() for suffix in TRACES.get(name).suffixes}
    assert found == {*CLAIMED.items(), *SHARED}
    refused = read_toml("opticcl.traces", "foreign.toml")
    assert set(TRACES.names()) == {*FORMATS, *refused}


def lies(form, content, suffix):
    """Whether the suffix is that of another format; all forms of JSON share theirs."""
    is_json = form in JSON and content.lstrip()[:1] in (b"{", b"[")
    is_own = (suffix, form) in SHARED or CLAIMED.get(suffix) == form
    return suffix in CLAIMED and not is_own and not (suffix == ".json" and is_json)


@pytest.mark.parametrize("packed_as", [[".json", ".toml"], pytest.param([*CLAIMED], marks=pytest.mark.deep)])
@pytest.mark.parametrize("form", FORMATS)
def test_the_content_decides(tmp_path, contents, form, packed_as):
    """The same calls and tasks as under its own name, packed or not, and a note that says what the name says."""
    for (name, own), content in contents.items():
        if name != form:
            continue
        own_path = tmp_path / f"right{own}"
        own_path.write_bytes(content)
        right = load_workload(own_path)
        ranks = right.num_ranks or 4
        tasks = load_job(own_path, num_ranks=ranks).tasks
        for suffix in (*CLAIMED, *PLAIN, *(f"{one}.gz" for one in {*packed_as, own})):
            plain = suffix.removesuffix(".gz") if suffix != ".tar.gz" else suffix
            path = tmp_path / f"job{suffix}"
            due = f"format: {form} by content; 1 file, such as {path.name}, named as if {CLAIMED.get(plain)}"
            for packed in {False, plain != suffix}:
                path.write_bytes(gzip.compress(content) if packed else content)
                found, job = load_workload(path), load_job(path, num_ranks=ranks)
                assert found.calls == right.calls, suffix
                assert job.tasks == tasks, suffix
                for read in (found, job):
                    notes = [note for note in read.notes if note.startswith("format: ")]
                    assert notes == ([due] if lies(form, content, plain) else []), suffix


@pytest.mark.parametrize("suffix", [*CLAIMED, *PLAIN])
def test_an_archive_under_another_name(tmp_path, suffix):
    """Packed or not, it is the job of its files."""
    for content in (archive(), gzip.decompress(archive())):
        (tmp_path / f"job{suffix}").write_bytes(content)
        found = load_workload(tmp_path / f"job{suffix}")
        assert (found.num_ranks, [call.size_bytes for call in found.calls]) == (2, [64, 8])


def test_wrong_names_in_a_folder_are_counted(tmp_path):
    """Two of three ranks."""
    for name in ("w.0.et", "w.1.log", "w.2.toml"):
        (tmp_path / name).write_bytes(CHAKRA)
    found = load_workload(tmp_path)
    assert found.num_ranks == 3
    assert "format: chakra by content; 2 files, such as w.1.log, named as if lumorph" in found.notes


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(gzip.compress(LOG.encode())), "packed twice"),
        (LOG.encode("utf-16"), "UTF-16"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "git lfs pull"),
        (b"\n<!DOCTYPE html>\n<html></html>", "a web page"),
        (b'[{"node_id": "a", "event_time": 3.5, "event_type": "fault_start", "fault_type": {}}]', "list of faults"),
    ],
    ids=["twice", "utf-16", "lfs", "html", "faults"],
)
def test_what_is_no_trace_is_named_under_every_suffix(tmp_path, content, said):
    """One line."""
    for suffix in CLAIMED:
        (tmp_path / f"job{suffix}").write_bytes(content)
        with pytest.raises(WorkloadError, match=said) as caught:
            load_workload(tmp_path / f"job{suffix}")
        assert str(caught.value).isprintable(), suffix
