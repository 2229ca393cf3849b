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
from opticcl.traces import flight_recorder, load_job, load_workload
from opticcl.traces.loading import load_traces


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
        (5, "it is a int"),
        (dump(7), "entry 0: is not a record"),
        (dump(entry(sizes=((2**60, 2**60),))), "entry 0"),
        (dump(), "no collective with a size"),
        (dump(entry(sizes=(), input_sizes=3)), "no collective with a size"),
    ],
)
@pytest.mark.parametrize("form", [json, pickle])
def test_another_form_is_refused(tmp_path, value, said, form):
    """In one line."""
    content = form.dumps(value)
    (tmp_path / "dump.pkl").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(WorkloadError, match=said):
        load_workload(tmp_path / "dump.pkl")


@pytest.mark.parametrize("form", [json, pickle])
@pytest.mark.parametrize(
    "key", ["duration_ms", "time_discovered_started_ns", "time_discovered_completed_ns", "state", "pg_id"]
)
@pytest.mark.parametrize("value", [1e999, -5, None, [1], 2**65, "\x1b[31m"], ids=repr)
def test_values_without_sense_do_no_harm(tmp_path, form, key, value):
    """The call is read, without what makes no sense."""
    times = {"time_discovered_started_ns": 5, "time_discovered_completed_ns": 9}
    content = form.dumps(dump(entry(**{**times, key: value})))
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


def read(path, *entries, form=json, **more):
    """What is read of a dump with these entries."""
    content = form.dumps(dump(*entries, **more))
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_workload(path)


def test_what_a_dump_leaves_out(tmp_path):
    """Entries of what moves no data, without a size, of Gloo; a dump without entries says so."""
    path = tmp_path / "rank_0.json"
    unsized = entry("nccl:all_reduce", ((3,),), input_dtypes=["Odd"], output_dtypes=["Odd"])
    found = read(path, entry(), unsized, entry("nccl:wait"), entry(""), entry("gloo:broadcast", ((1,),)))
    assert [(c.collective, c.size_bytes) for c in found.calls] == [("all_reduce", 48), ("broadcast", 4)]
    assert {(one.what, one.calls, one.missing) for one in found.omitted} == {
        ("entries of nccl:all_reduce without sizes of a known type", 1, True),
        ("entries of nccl:wait, which move no data themselves", 1, False),
        ("entries of no name, which move no data themselves", 1, False),
    }
    assert sum("Gloo's recorder writes a reduce_scatter as an all_reduce" in note for note in found.notes) == 1
    assert "entries: 5" in found.notes
    assert "no computation is recorded: the calls follow each other" in found.notes
    assert not any("Gloo" in note for note in read(path, entry()).notes)
    for value, said in (
        ({"version": "2", "pg_config": {}}, "without an entry: nothing was recorded"),
        ({"version": "2", "pg_status": {}}, r"it has no list of entries; its keys are version, pg_status"),
        ({"entries": {}, "pg_config": {}}, "its keys are entries, pg_config"),
    ):
        path.write_text(json.dumps(value))
        with pytest.raises(WorkloadError, match=said):
            load_workload(path)
    path.write_text(json.dumps(dump(entry())) + "5")
    with pytest.raises(WorkloadError, match="more text after the end"):
        load_workload(path)


def test_transfers_without_ends(tmp_path):
    """Of which the rank in the name of the file is one."""
    calls = [entry(name, ((size,),)) for name, size in (("nccl:send", 5), ("nccl:recv", 6))]
    found = read(tmp_path / "fr.rank2.json", *calls).calls
    assert [(call.size_bytes, call.ranks) for call in found] == [(20, (2, -1)), (24, (-1, 2))]


def len_of(value):
    """Values within a value, itself included; keys are none."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return 1 + sum(map(len_of, inner))


@pytest.mark.parametrize("form", [json, pickle])
def test_limits_of_a_dump(tmp_path, monkeypatch, form):
    """Entries of JSON, values of a pickle, digits of a number."""
    path = tmp_path / "dump.pkl"
    monkeypatch.setattr(flight_recorder, "MAX_VALUES", 3 if form is json else 200)
    assert len(read(path, *[entry()] * 3, form=form).calls) == 3
    many = [entry()] * (4 if form is json else 40)
    with pytest.raises(WorkloadError, match=r"more than 3 entries|expands to more than a recorder writes"):
        read(path, *many, form=form)
    if form is pickle:
        assert len(read(path, entry(), form=form, more=2**70 - 1).calls) == 1
        with pytest.raises(WorkloadError, match="more than 20 digits"):
            read(path, entry(), form=form, more=2**70)
        for more in ({}, {"more": 1}):
            most = len_of(dump(entry(), **more))
            monkeypatch.setattr(flight_recorder, "MAX_VALUES", most)
            assert len(read(path, entry(), form=form, **more).calls) == 1
            monkeypatch.setattr(flight_recorder, "MAX_VALUES", most - 1)
            with pytest.raises(WorkloadError, match="expands to more"):
                read(path, entry(), form=form, **more)
        monkeypatch.undo()
        deep = [[]]
        for _ in range(flight_recorder.MAX_DEPTH - 3):
            deep = [deep]
        assert len(read(path, entry(), form=form, more=[deep]).calls) == 1
        with pytest.raises(WorkloadError, match="expands to more"):
            read(path, entry(), form=form, more=[[deep]])


def test_an_index_of_the_memo_as_large_as_its_place(tmp_path):
    """It is read; a larger one is refused."""
    content = pickle.dumps(JOB, 2)
    assert content[2:5] == b"}q\0"
    (tmp_path / "nccl_trace_rank_1").write_bytes(content[:4] + b"\2" + content[5:])
    assert len(load_workload(tmp_path / "nccl_trace_rank_1").calls) == 6
    (tmp_path / "nccl_trace_rank_1").write_bytes(content[:4] + b"\3" + content[5:])
    with pytest.raises(WorkloadError, match="its memo would have 3 entries"):
        load_workload(tmp_path / "nccl_trace_rank_1")


@pytest.mark.parametrize("kind", [frozenset, set, tuple, list])
def test_pickled_values_of_other_types(tmp_path, kind):
    """Texts as bytes, tuples and sets as lists, numbers as keys; keys that are no text or number are left out."""
    call = entry(b"nccl:all_reduce", kind([(3, 4)]))
    call |= {1.5: 3, "process_group": None, "pg_id": 9}
    (one,) = read(tmp_path / "rank_0", call, form=pickle, pg_config={9: {"ranks": [0, 3]}, 1: 5}).calls
    assert (one.size_bytes, one.ranks) == (48, (0, 3))


@pytest.mark.parametrize(
    ("name", "sizes", "out", "group"),
    [
        ("_all_gather_base", (10,), (40,), 4),
        ("_reduce_scatter_base", (80,), (10,), 8),
        ("all_reduce", (10,), (10,), 0),
        ("broadcast", (10,), (40,), 0),
    ],
)
def test_the_size_of_a_group_that_is_not_listed(tmp_path, name, sizes, out, group):
    """By both sides of an all_gather and a reduce_scatter; of groups that are listed the list counts."""
    path = tmp_path / "rank_0.json"
    call = entry(f"nccl:{name}", (sizes,), (out,), process_group=["9", "x"])
    found = load_from(path, {"version": "2", "entries": [call]}, 16)
    assert len(found.calls[0].ranks or range(16)) == (group or 16)
    assert (found.calls[0].group, found.calls[0].size_bytes) == ("9", 4 * max(*sizes, *out))
    one_side = {**call, "output_sizes": []}
    assert len(load_from(path, {"version": "2", "entries": [one_side]}, 16).calls[0].ranks) == 0
    listed = {"9": {"name": "9", "ranks": "[0, 5]"}}
    known = load_from(path, {"version": "2", "pg_config": listed, "entries": [call]}, 16)
    assert (known.calls[0].ranks, known.calls[0].group_source) == ((0, 5), "pg_config")
    unnamed = {key: value for key, value in call.items() if key != "process_group"} | {"pg_id": 9}
    assert load_from(path, {"version": "2", "pg_config": {"9": {"ranks": [0, 3]}}, "entries": [unnamed]}, 16).calls[
        0
    ].ranks == (0, 3)


def load_from(path, value, ranks=0):
    """What is read of a dump as JSON."""
    path.write_text(json.dumps(value))
    return load_workload(path, num_ranks=ranks)


@pytest.mark.parametrize(
    ("more", "took_ms"),
    [
        ({"duration_ms": 2}, 2),
        ({"duration_ms": 0.5}, 0.5),
        ({"duration_ms": 10**12}, 0),
        ({"duration_ms": 0}, 0),
        ({"duration_ms": "3"}, 0),
    ],
)
def test_durations(tmp_path, more, took_ms):
    """In milliseconds, as whole numbers or fractions."""
    assert read(tmp_path / "rank_0.json", entry(**more)).calls[0].measured_s == pytest.approx(took_ms * 1e-3)


@pytest.mark.parametrize("wrong", [None, "start", "end", "order"])
def test_starts_and_ends_give_the_skew(tmp_path, wrong):
    """Two ranks, one 3,000 ns behind, on clocks that differ by 5 us; times that cannot be are none."""
    for rank in range(2):
        calls = []
        for at in (10_000, 30_000, 50_000):
            start, end = at + 5_000 * rank + 3_000 * rank, at + 5_000 * rank + 8_000
            if rank and wrong:
                start, end = {"start": (0, end), "end": (start, 2**63), "order": (end, end)}[wrong]
            about = {"time_discovered_started_ns": start, "time_discovered_completed_ns": end}
            calls.append(entry(process_group=["7", "x"], **about, collective_seq_id=str(at)))
        (tmp_path / f"d_rank_{rank}.json").write_text(
            json.dumps({"version": "2", "pg_config": {"7": {"name": "7", "ranks": "[0, 1]"}}, "entries": calls})
        )
    notes = "; ".join(load_workload(tmp_path).notes)
    said = "the first rank of a collective waited 3 us for the last (median of 3), 3 us at most; rank 1 was last in 3"
    assert (said in notes) == (wrong is None)
    assert ("skew" in notes) == (wrong is None)


def test_parts_of_an_all_to_all(tmp_path):
    """By lists of elements, else by the tensors of both sides, one for each member; a list that does not fit is named."""
    config = {"7": {"name": "7", "ranks": "[0, 1]"}}
    matrix = ((8, 12), (4, 20))
    lists = {0: ([2, 3], [2, 1]), 1: ([1, 5], [3, 5])}
    for form in ("lists", "tensors", "cut"):
        for rank, (sent, received) in lists.items():
            call = entry("nccl:all_to_all", ((sum(sent),),), ((sum(received),),), process_group=["7", "x"])
            if form == "tensors":
                call = entry("nccl:all_to_all", [[n] for n in sent], [[n] for n in received], process_group=["7", "x"])
            else:
                call |= {"input_split_sizes": sent, "output_split_sizes": received if form == "lists" else [9, 9, 9]}
            (tmp_path / f"d_rank_{rank}.json").write_text(
                json.dumps({"version": "2", "pg_config": config, "entries": [call]})
            )
        found = load_workload(tmp_path)
        assert found.calls[0].matrix_bytes == matrix
        said = "out split sizes that do not fit, not used: the list has 27 rows in all for"
        assert any(said in note for note in found.notes) == (form == "cut")
    (tmp_path / "d_rank_1.json").unlink()
    call = entry("nccl:all_to_all", [[3], [1], [2]], [[6]], process_group=["7", "x"])
    found = load_from(tmp_path / "d_rank_0.json", {"version": "2", "pg_config": config, "entries": [call]})
    assert (found.calls[0].size_bytes, found.calls[0].matrix_bytes) == (24, ())


@pytest.mark.parametrize(
    ("group", "sent", "received", "splits"),
    [
        ("1", [[3], [1]], [[2], [2]], ((12, 4), (8, 8))),
        ("1", [[3], [1], [2]], [[2], [2], [2]], ((), ())),
        ("1", [[3], [1]], [[4]], ((), ())),
        ("9", [[3], [1]], [[2], [2]], ((12, 4), (8, 8))),
        ("9", [[4]], [[4]], ((), ())),
        ("9", [[4]], [[7]], ((), ())),
        ("9", [[4]], [], ((), ())),
    ],
)
def test_both_sides_of_an_all_to_all(tmp_path, group, sent, received, splits):
    """A tensor for each member of group 1 and of an unknown one, or one for all; without the other side that of the first."""
    path = tmp_path / "rank_1.json"
    path.write_text(json.dumps(dump(entry("nccl:all_to_all", sent, received, process_group=[group]))))
    ((call,),) = (trace.calls for trace in load_traces(path))
    assert (call.sent_splits, call.received_splits) == splits
    elements = sum(n for (n,) in sent), sum(n for (n,) in received or sent)
    assert (call.size_bytes, call.received_bytes) == tuple(4 * n for n in elements)


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, {"group": "0", "sequence": -1, "start_s": -1, "group_size": 0}),
        ({"process_group": "12", "pg_id": 4}, {"group": "4"}),
        ({"process_group": [], "pg_id": 4}, {"group": "4"}),
        ({"process_group": ["9"]}, {"group_size": 4}),
        ({"collective_seq_id": 12}, {"sequence": 12}),
        ({"collective_seq_id": "123456789"}, {"sequence": 123_456_789}),
        ({"collective_seq_id": "1234567890"}, {"sequence": -1}),
        ({"collective_seq_id": "x"}, {"sequence": -1}),
        ({"collective_seq_id": None}, {"sequence": -1}),
        ({"time_discovered_started_ns": 1, "time_discovered_completed_ns": 2}, {"start_s": 1e-9, "end_s": 2e-9}),
        (
            {"profiling_name": "nccl:barrier", "input_sizes": [], "output_sizes": []},
            {"collective": "barrier", "size_bytes": 0},
        ),
    ],
)
def test_what_a_call_records(tmp_path, more, found):
    """Its group, which has a size if that follows from both sides and is not listed, number, times; a barrier has no size."""
    path = tmp_path / "rank_1.json"
    path.write_text(json.dumps(dump(entry("nccl:_all_gather_base", ((10,),), ((40,),)) | more)))
    ((call,),) = (trace.calls for trace in load_traces(path))
    assert {name: getattr(call, name) for name in found} == found


def test_ranks_in_the_names_of_dumps(tmp_path):
    """With a suffix, and as the number in which a name without one ends."""
    call = entry("nccl:send", ((5,),), process_group=("1", "pair"))
    for name in ("nccl_trace_rank_1", "x.rank1.json", "rank_1.pkl"):
        (tmp_path / name).write_text(json.dumps(dump(call)))
        assert load_workload(tmp_path / name).calls[0].ranks == (1, -1)


def test_a_rank_without_calls_has_no_states(tmp_path):
    """Of several ranks one may have none."""
    (tmp_path / "rank_0.json").write_text(json.dumps(dump(entry("nccl:wait"))))
    (trace,) = load_traces(tmp_path / "rank_0.json")
    assert (list(trace.calls), [note for note in trace.after if "state" in note]) == ([], [])
