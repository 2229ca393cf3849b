"""Files that are nested too deeply, begin with a byte order mark, or contain escape bytes in names."""

import json

import pytest
from tests.traces.test_chakra import attribute, coll, trace

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_workload

ESCAPE = "\x1b[31mred\x07"
BOM = b"\xef\xbb\xbf"
RECORD = {
    "name": "record_param_comms",
    "ts": 1,
    "args": {"Collective name": "allreduce", "In msg nelems": 2, "dtype": "Float", "Process Group Name": ESCAPE},
}
FILES = {
    "job.json": json.dumps({"distributedInfo": {"world_size": 2}, "traceEvents": [RECORD]}).encode(),
    "job.log": b"AR;8;0,1\n",
    "job.txt": b"DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n",
    "job.toml": f'name = "{ESCAPE}"\n[[calls]]\ncollective = "all_reduce"\nsize = 8\nname = "{ESCAPE}"\n'.encode()
    .replace(b"\x1b", b"\\u001b")
    .replace(b"\x07", b"\\u0007"),
    "job.et": trace(coll(1, 8, 0, attribute("pg_name", ESCAPE), name=ESCAPE)),
}
DEPTH = 200_000


@pytest.mark.parametrize("name", ["job.json", "job", "job.toml", "job.et", "job.log"])
@pytest.mark.parametrize(
    "content",
    [
        "[" * DEPTH,
        "[" * DEPTH + "]" * DEPTH,
        '{"a":' * DEPTH,
        '{"traceEvents": [' + '{"args":' * DEPTH,
        '{"traceEvents": [], "other": ' + "[" * DEPTH,
        "a = " + "[" * DEPTH,
        "a = " + "{b=" * DEPTH,
    ],
    ids=["list", "closed", "object", "event", "other", "toml", "tables"],
)
def test_a_deeply_nested_file_is_refused(tmp_path, opticcl, name, content):
    """One line, exit code 2, nothing on standard output."""
    path = tmp_path / name
    path.write_text(content)
    done = opticcl("train", "--workload", path, "--nodes", "4", "--fabric", "ideal")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert name in done.stderr


@pytest.mark.parametrize("name", sorted(FILES.keys() - {"job.et"}))
def test_a_byte_order_mark_is_accepted(tmp_path, name):
    """At the start of a text file, with and without its suffix."""
    for file in (name, "job"):
        (tmp_path / file).write_bytes(BOM + FILES[name])
        assert load_workload(tmp_path / file).total_bytes == 8


@pytest.mark.parametrize("name", sorted(FILES))
def test_names_from_a_file_are_printable(tmp_path, opticcl, name):
    """Names of calls, groups, tasks and jobs, notes and refusals contain no escape bytes."""
    path = tmp_path / (ESCAPE.replace("/", "") + name)
    path.write_bytes(FILES[name])
    read, job = load_workload(path), load_job(path, num_ranks=2)
    texts = [read.name, read.source, *read.notes, job.name, *job.notes, *job.groups]
    texts += [text for call in read.calls for text in (call.name, call.group)]
    texts += [text for task in job.tasks for text in (task.name, task.group)]
    assert all(text.isprintable() for text in texts)
    for verb in ("train", "compare"):
        done = opticcl(verb, "--workload", path, "--nodes", "2", "--fabric", "ideal")
        assert done.returncode == 0
        assert not set(done.stdout) & {"\x1b", "\x07"}
    path.write_bytes(FILES[name][:-3])
    with pytest.raises(WorkloadError) as caught:
        load_workload(path.with_name("absent" + ESCAPE))
    assert str(caught.value).isprintable()
