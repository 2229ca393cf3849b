"""Dumps of the NCCL flight recorder; a pickle is data here and never code."""

import json
import os
import pickle
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_workload


def entry(name="nccl:all_reduce", sizes=((3, 4),), out=None, **more):
    """A call of float32."""
    out = sizes if out is None else out
    found = {"profiling_name": name, "process_group": ("0", "default_pg"), "state": "completed"}
    found |= {"input_sizes": sizes, "input_dtypes": ["Float"] * len(sizes)}
    return found | {"output_sizes": out, "output_dtypes": ["Float"] * len(out), **more}


def dump(*entries, **more):
    """A whole dump of four ranks."""
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}, "1": {"name": "1", "ranks": "[1, 3]"}}
    return {"version": "2.5", "pg_config": config, "entries": list(entries), **more}


JOB = dump(
    entry(time_discovered_started_ns=10_000, time_discovered_completed_ns=30_000, duration_ms=0.02),
    entry("nccl:_all_gather_base", ((10,),), ((40,),)),
    entry("nccl:_reduce_scatter_base", ((40,),), ((10,),)),
    entry("nccl:all_reduce", ((2,),), process_group=("1", "pair")),
    entry("nccl:send 0->1", ((5,),), process_group=("1", "pair")),
    entry("nccl:recv 0<-1", ((6,),), process_group=("1", "pair")),
    entry("nccl:coalesced", ()),
)


@pytest.mark.parametrize("form", ["json", "pickle"])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_calls_groups_and_ends(tmp_path, form, protocol):
    """Sizes of all ranks, groups by name, ends of transfers as ranks of the job; JSON and pickle say the same."""
    path = tmp_path / "nccl_trace_rank_1"
    path.write_bytes(pickle.dumps(JOB, protocol) if form == "pickle" else json.dumps(JOB).encode())
    found = load_workload(path)
    assert [(c.collective, c.size_bytes, len(c.ranks)) for c in found.calls[:4]] == [
        ("all_reduce", 48, 4),
        ("all_gather", 160, 4),
        ("reduce_scatter", 160, 4),
        ("all_reduce", 8, 2),
    ]
    transfers = {(c.collective, c.size_bytes, tuple(c.ranks)) for c in found.calls[4:]}
    assert transfers == {("send_recv", 20, (1, 3)), ("send_recv", 24, (3, 1))}
    assert found.num_ranks == 4
    assert any("nccl:coalesced" in note for note in found.notes)
    assert load_job(path).num_calls == len(found.calls)


def test_states_of_calls_are_counted_where_all_have_one(tmp_path):
    """Completed and scheduled ones; with a call without a state there is no such note."""
    calls = [entry(), entry(), entry(state="scheduled")]
    for entries, noted in ((calls, True), ([*calls, entry(state=None)], False)):
        (tmp_path / "rank_0.json").write_text(json.dumps(dump(*entries)))
        notes = load_workload(tmp_path / "rank_0.json").notes
        assert ("state of the calls: 2 completed, 1 scheduled" in notes) == noted
        assert any(note.startswith("state of the calls") for note in notes) == noted


class Evil:
    """Runs a command when it is loaded by pickle itself."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return os.system, (f"touch {self._path}",)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_that_executes_is_refused(tmp_path, protocol, opticcl):
    """Nothing is run; the answer is one line that says how to dump JSON."""
    path = tmp_path / "dump.pkl"
    path.write_bytes(pickle.dumps(dump(entry(), extra=Evil(tmp_path / "executed")), protocol))
    done = opticcl("train", "--workload", path, "--fabric", "ideal")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "more than plain data" in done.stderr
    assert "_dump_nccl_trace_json" in done.stderr
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02cos\nsystem\n(S'true'\ntR.",  # GLOBAL, REDUCE
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",  # STACK_GLOBAL
        b"\x80\x02(ios\nsystem\n.",  # INST
        b"\x80\x02\x82\x01.",  # EXT1
        b"\x80\x02Pexternal\n.",  # PERSID
        b"\x80\x02}b.",  # BUILD
        b"\x80\x05\x97.",  # NEXT_BUFFER
    ],
)
def test_every_opcode_that_finds_or_calls_is_unknown(tmp_path, content):
    """By its byte, before it is executed."""
    (tmp_path / "dump.pkl").write_bytes(content)
    with pytest.raises(WorkloadError, match="more than plain data"):
        load_workload(tmp_path / "dump.pkl")


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02]r\xff\xff\xff\x7f.",  # an index of two thousand million in the memo
        b"\x80\x02B\xff\xff\xff\x7fabc.",  # two thousand million bytes
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x0fabc.",
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x0fabc.",
        b"\x80\x02" + b"(" * 100_000 + b"l" * 100_000 + b".",
        b"\x80\x02]q\0" + b"h\0a" * 10 + b".",  # a list within itself
        b"\x80\x02)q\0" + b"h\0h\0h\0\x87q\0" * 40 + b".",  # three times the tuple before, forty times
        b"\x80\x02}X\7\0\0\0entries](" + b"\x8b\xe8\3\0\0" + b"\xff" * 999 + b"\x7fes.",  # a long number
    ],
)
def test_a_pickle_cannot_take_memory(tmp_path, content):
    """What a length or an index claims is not allocated."""
    (tmp_path / "dump.pkl").write_bytes(content)
    tracemalloc.start()
    with pytest.raises(WorkloadError) as caught:
        load_workload(tmp_path / "dump.pkl")
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"entries": 5}, "no list of entries"),
        ([1, 2], "it is a list"),
        (dump(7), "entry 0: is not a record"),
        (dump(entry(sizes=((2**60, 2**60),))), "entry 0"),
        (dump(), "no collective with a size"),
        (dump(entry(sizes=(), input_sizes=3)), "no collective with a size"),
    ],
)
def test_another_form_is_refused(tmp_path, value, said):
    """In one line."""
    (tmp_path / "dump.pkl").write_bytes(pickle.dumps(value))
    with pytest.raises(WorkloadError, match=said):
        load_workload(tmp_path / "dump.pkl")


@pytest.mark.parametrize("form", [json, pickle])
@pytest.mark.parametrize("key", ["duration_ms", "time_discovered_started_ns", "state", "pg_id"])
@pytest.mark.parametrize("value", [1e999, -5, None, [1], 2**65, "\x1b[31m"], ids=repr)
def test_values_without_sense_do_no_harm(tmp_path, form, key, value):
    """The call is read, without what makes no sense."""
    content = form.dumps(dump(entry(**{key: value})))
    (tmp_path / "dump.pkl").write_bytes(content if isinstance(content, bytes) else content.encode())
    found = load_workload(tmp_path / "dump.pkl")
    assert found.calls[0].measured_s == 0
    assert all(note.isprintable() for note in found.notes)


@given(st.data())
@examples(60)
def test_damage_never_escapes(tmp_path_factory, data):
    """Bytes changed anywhere: read or refused."""
    content = bytearray(pickle.dumps(JOB, data.draw(st.sampled_from([2, 4]))))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(2, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("dump") / "dump.pkl"
    path.write_bytes(content)
    with suppress(WorkloadError):
        load_workload(path)
