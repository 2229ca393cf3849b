"""Logs of the NCCL Inspector and traces of NCCL's example profiler plugin, read by the package and by parsers written here."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.damage import survives_damage
from tests.traces.test_nsys import BYTES, ID, NUMBER, SIZE, jobs, whole_calls

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_workload
from opticcl.traces.loading import load_traces
from opticcl.traces.recording import GroupEnds, GroupPlace

METADATA = {"inspector_output_format_version": "v4.1", "hostname": "node0", "pid": 5, "dump_timestamp_us": 1}


def line(id, rank, size, kind="coll_perf", **values):
    """A record of the Inspector."""
    return json.dumps({"header": {"id": id, "rank": rank, "n_ranks": size}, "metadata": METADATA, kind: values})


def coll(name, number, size, us=50.0):
    """Values of a collective."""
    return {"coll": name, "coll_sn": number, "coll_msg_size_bytes": size, "coll_exec_time_us": us}


def p2p(name, number, peer, size):
    """Values of a transfer."""
    return {"p2p": name, "p2p_sn": number, "p2p_peer": peer, "p2p_msg_size_bytes": size, "p2p_exec_time_us": 7}


LOG = "\n".join(
    [
        line("0xa", 1, 4, **coll("AllReduce", 1, 800)),
        line("0xa", 1, 4, **coll("AllGather", 0, 100)),
        line("0xb", 0, 2, **coll("ReduceScatter", 0, 30, us=0)),
        line("0xa", 1, 4, "p2p_perf", **p2p("Send", 2, 3, 64)),
        line("0xa", 1, 4, coll="Nothing", coll_sn=9, coll_msg_size_bytes=5),
        line("0xa", 1, 4, "dump_stats", written=3, dropped_total=2, dropped_since_last_dump=1),
    ]
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("nccl") / "job.log"


def load(path, text, **more):
    """What the reader makes of a file with that text."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_workload(path, **more)


def test_a_log_of_the_inspector(path):
    """Shares times ranks; one communicator after the other; ends within it; what was dropped is counted."""
    read = load(path, LOG)
    assert [(c.collective, c.size_bytes, c.ranks, c.measured_s) for c in read.calls] == [
        ("all_reduce", 800, (0, 1, 2, 3), 50e-6),
        ("all_gather", 400, (0, 1, 2, 3), 50e-6),
        ("send_recv", 64, (1, 3), 7e-6),
        ("reduce_scatter", 60, (0, 1), 0),
    ]
    assert (read.num_ranks, read.ranks_source) == (4, "the largest communicator of job.log")
    assert "left out: 1 Nothing, which is not a known collective" in read.notes
    assert "left out: 2 records that the Inspector dropped before they were written" in read.notes
    assert load_job(path).num_calls == 4


def test_records_without_a_header_are_of_the_last_dump(path):
    """As format v4.3 writes them; and headers without an object of their own."""
    about = json.loads(line("0xa", 1, 4, "dump_stats", coll_records=1))
    payload = json.dumps({"coll_perf": coll("AllReduce", 0, 8)})
    flat = json.dumps({"id": "0xa", "rank": 1, "n_ranks": 4, "coll_perf": coll("AllReduce", 1, 16)})
    assert [c.size_bytes for c in load(path, f"{json.dumps(about)}\n{payload}\n").calls] == [8]
    assert [c.size_bytes for c in load(path, f"{flat}\n").calls] == [16]
    with pytest.raises(WorkloadError, match="line 1: the record has no header with the id of a communicator"):
        load(path, payload)


def test_a_log_that_is_being_written(path):
    """Its last line may lack its end: it is left out, and counted as one that takes time."""
    cut = LOG + "\n" + LOG.splitlines()[0][:-1]
    whole, read = load(path, LOG), load(path, cut)
    assert list(read.calls) == list(whole.calls)
    note = "left out: 1 line without its end, the last of a log that was cut or is being written"
    assert note in read.notes
    (trace,) = load_traces(path)
    assert [one.missing for one in trace.omissions.records() if "without its end" in one.what] == [True]


def test_lost_parts_of_calls_are_no_lost_calls(path):
    """Format v4.3 counts what the Inspector lost of the network's threads beside the calls."""
    stats = {"coll_records": 2, "coll_dropped_total": 3, "p2p_dropped_total": 1, "proxy_ops_dropped_total": 50}
    log = line("0xa", 1, 4, "dump_stats", **stats) + "\n" + json.dumps({"coll_perf": coll("AllReduce", 0, 8)})
    assert "left out: 4 records that the Inspector dropped before they were written" in load(path, log).notes


def test_processes_of_records_without_metadata(path):
    """Early formats have process and host beside the number of the communicator."""
    rows = [{"id": "0xa", "rank": rank, "n_ranks": 2, "pid": rank, "hostname": "node0"} for rank in range(2)]
    (call,) = load(path, "\n".join(json.dumps({**row, "coll_perf": coll("AllReduce", 0, 8)}) for row in rows)).calls
    assert (call.size_bytes, call.ranks) == (8, (0, 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LOG + '\n{"header": {"id\n' + LOG, "line 7: .* is not a JSON object"),
        ('\n{"coll_perf": {"coll": "AllR', "line 2: .* is not a JSON object"),
        (LOG + "\n[1]", "line 7: '\\[1\\]' is not a JSON object"),
        (
            LOG + "\n" + line("0xa", 2, 4, **coll("AllReduce", 3, 8)),
            "line 7: one process is rank 1 and 2 of communicator 0xa",
        ),
        (LOG + "\nNCCL WARN", "line 7: 'NCCL WARN' is not a JSON object"),
        (f"{LOG}\n{'[' * 100_000}\n{LOG}", "line 7: .* is not a JSON object"),
        (line("0xa", 1, 4, **coll("AllReduce", 1, 2**61)), "line 1: the message is .* not 0 to 2"),
        (line("0xa", 1, 4, **coll("Nothing", 1, 8)), "no collective with a size"),
    ],
)
def test_a_wrong_log_is_refused_with_its_line(path, text, said):
    """One printable line."""
    with pytest.raises(WorkloadError, match=said) as caught:
        load(path, text)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("header", "values", "place", "found"),
    [
        (
            {"rank": 1, "n_ranks": 4},
            coll("AllReduce", 2, 8, us=0.5),
            GroupPlace(1, 4),
            {"group_size": 4, "measured_s": 5e-7},
        ),
        ({"rank": 1}, coll("AllReduce", None, 8), GroupPlace(1, 0), {"group_size": 0, "sequence": -1}),
        ({"n_ranks": 4}, coll("AllReduce", 2, 8), None, {"group_size": 0}),
        ({"rank": 4, "n_ranks": 4}, coll("AllReduce", 2, 8), None, {"group_size": 0}),
        ({"rank": 1, "n_ranks": 4}, p2p("Send", 0, 3, 8), GroupPlace(1, 4), {"ends": GroupEnds(1, 3), "sequence": -1}),
        ({"rank": 1, "n_ranks": 4}, p2p("Recv", 0, 3, 8), GroupPlace(1, 4), {"ends": GroupEnds(3, 1), "group_size": 0}),
        ({"rank": 1, "n_ranks": 4}, p2p("Send", 0, None, 8), GroupPlace(1, 4), {"ends": GroupEnds(1, -1)}),
        ({"n_ranks": 4}, p2p("Send", 0, 3, 8), None, {"ends": GroupEnds(-1, 3)}),
    ],
)
def test_what_a_record_says(path, header, values, place, found):
    """The place of the rank if its number is below the size, ends of a transfer within the communicator, number and time."""
    kind = "p2p_perf" if "p2p" in values else "coll_perf"
    path.write_text(json.dumps({"header": {"id": 7, **header}, kind: values}))
    (trace,) = load_traces(path, num_ranks=8)
    ((call,), rank) = trace.calls, place.number if place else -1
    assert (trace.places, trace.rank) == ({"communicator 7": place}, rank)
    assert {name: getattr(call, name) for name in found} == found


def test_records_without_a_size_are_counted(path):
    """As are those of unknown kinds: they take time."""
    values = coll("AllReduce", 0, 8), coll("AllReduce", 1, None), coll("Nothing", 0, 8)
    read = load(path, "\n".join(line("0xa", 0, 2, **one) for one in values))
    assert {(one.what, one.calls, one.missing) for one in read.omitted} == {
        ("AllReduce, without a size", 1, True),
        ("Nothing, which is not a known collective", 1, True),
    }


def test_processes_of_one_log(path):
    """Each is a rank by its largest communicator, or the log is refused."""
    rows = [json.loads(line("0xa", rank, 2, **coll("AllReduce", 0, 8))) for rank in range(2)]
    for rank, row in enumerate(rows):
        row["metadata"] = {**METADATA, "pid": rank}
    (call,) = load(path, "\n".join(map(json.dumps, rows))).calls
    assert (call.size_bytes, call.ranks) == (8, (0, 1))
    del rows[1]["header"]["rank"]
    with pytest.raises(WorkloadError, match="no rank of process 1 on node0 in the job is recorded"):
        load(path, "\n".join(map(json.dumps, rows)))


def test_a_communicator_of_which_a_log_is_missing(tmp_path):
    """Has as many ranks as its header says, a block of the job, not those alone that have logs."""
    for rank in range(2):
        rows = [line("0xa", rank, 4, **coll("AllReduce", 0, 8)), line("0xb", rank, 3, **coll("AllReduce", 0, 16))]
        (tmp_path / f"{rank}.log").write_text("\n".join(rows))
    read = load_workload(tmp_path)
    assert [(call.size_bytes, call.ranks, call.group_source) for call in read.calls] == [
        (8, (0, 1, 2, 3), "the numbers of the ranks in it"),
        (16, (0, 1, 2), "assumed: a block of the recorded group size"),
    ]
    assert not any("size is not recorded" in note for note in read.notes)


def test_logs_that_begin_at_different_calls_are_matched_by_number(tmp_path):
    """5 to 10 and 3 to 8 are eight calls."""
    for rank, numbers in ((0, range(5, 11)), (1, range(3, 9))):
        rows = [line("0xa", rank, 2, **coll("AllReduce", number, 400)) for number in numbers]
        (tmp_path / f"{rank}.log").write_text("\n".join(rows))
    assert [call.size_bytes for call in load_workload(tmp_path).calls] == [400] * 8


# --- the profiler plugin ----------------------------------------------------------------------------------------------


def events(name, number, args, start=0.0, end=0.0):
    """The begin and the end of a call."""
    about = {"name": name, "cat": "P2P" if name in ("Send", "Recv") else "COLL", "id": number, "pid": 7, "tid": 1}
    return [{**about, "ph": "b", "ts": start, "args": args}, {**about, "ph": "e", "ts": end}]


def write_events(rows):
    """The text of a trace, as the plugin writes it: an empty event ends the list."""
    return "[\n" + "".join(f"{json.dumps(row)},\n" for row in rows) + "{}]\n"


def arguments(id, rank, count, type="ncclFloat32", **more):
    """Arguments of a call."""
    return {"CommHash": id, "Rank": rank, "Count": count, "Datatype": type, **more}


def test_a_trace_of_the_profiler_plugin(path):
    """Elements times type; times from begin to end; groups and kernels are counted apart."""
    rows = [
        {"name": "Group", "cat": "GROUP", "ph": "b", "id": 0, "pid": 7, "ts": 1.0},
        {**events("AllReduce", 0, arguments(99, 0, 1000))[0], "cat": "COLL_API"},
        *events("AllReduce", 0, arguments(99, 0, 1000, SeqNum=0), 10.0, 60.0),
        *events("AllGather", 1, arguments(99, 0, 10, "ncclBfloat16", SeqNum=1), 0.0, 70.0),
        *events("Send", 0, arguments(99, 0, 5, "ncclFloat8e4m3", Peer=1), 80.0, 90.0),
        *events("Reduce", 3, arguments(99, 0, 5, "ncclStrange")),
        {"name": "KernelCh", "cat": "GPU", "ph": "b", "id": 0, "pid": 7, "ts": 1.0},
    ]
    read = load(path, write_events(rows), num_ranks=2)
    assert [(c.collective, c.size_bytes, c.ranks, c.measured_s) for c in read.calls] == [
        ("all_reduce", 4000, (), 50e-6),
        ("all_gather", 40, (), 0),
        ("send_recv", 5, (0, -1), 10e-6),
    ]
    (trace,) = load_traces(path, num_ranks=2)
    times = [(10e-6, 60e-6), (-1, -1), (80e-6, 90e-6)]
    assert [(call.start_s, call.end_s) for call in trace.calls] == [pytest.approx(pair) for pair in times]
    for name in (99, "0x63"):
        rows[2]["args"]["CommHash"] = name
        assert load(path, write_events(rows[2:4]), num_ranks=2).calls[0].group == f"communicator {name}"
    rows[2]["args"]["CommHash"] = 99
    assert "left out: 1 Reduce, without elements of a known type" in read.notes
    assert any("parts of calls, not counted: 3 events" in note for note in read.notes)
    assert not any("no JSON" in note for note in read.notes)
    with pytest.raises(WorkloadError, match="the file has rank 0 and 1 of communicator 99"):
        load(path, write_events([*rows, *events("AllReduce", 7, arguments(99, 1, 5))]))
    with pytest.raises(WorkloadError, match="more text after the end"):
        load(path, write_events(rows) + "5")
    with pytest.raises(WorkloadError, match="is this a whole trace of NCCL's profiler plugin"):
        load(path, write_events(rows)[:-3])


# --- drawn jobs -------------------------------------------------------------------------------------------------------


def inspector_log(ranges, pid):
    """The log of a process with these ranges."""
    places, numbers, rows = {}, Counter(), []
    for name, values in ranges:
        id = str(values[ID])
        if SIZE in values:
            places[id] = values[NUMBER], values[SIZE]
            continue
        rank, size = places[id]
        word, amount = name.removeprefix("nccl"), int(values.get(BYTES, values.get("Bytes")))
        transfer = word in ("Send", "Recv")
        counter = id, "" if transfer else word
        number = numbers[counter]
        numbers[counter] += 1
        about = p2p(word, number, values.get("Peer rank"), amount) if transfer else coll(word, number, amount)
        row = json.loads(line(id, rank, size, "p2p_perf" if transfer else "coll_perf", **about))
        row["metadata"] = {**METADATA, "pid": pid}
        rows.append(row)
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def parsed_log(text):
    """Places and calls of a log, by a parser of its own."""
    here, calls = {}, []
    for row in map(json.loads, text.splitlines()):
        pid, header = row["metadata"]["pid"], row["header"]
        here.setdefault(pid, {})[header["id"]] = header["n_ranks"], header["rank"]
        values = {
            key.partition("_")[2] or "name": value
            for key, value in (row.get("coll_perf") or row.get("p2p_perf")).items()
        }
        calls.append((pid, values["name"], header["id"], values["msg_size_bytes"], values.get("peer", 0)))
    return here, calls


def warmed_up(ranks):
    """The ranges with an all_reduce of one byte on each communicator in front, so that every member calls it."""
    return {
        rank: [
            *ranges,
            *(("ncclAllReduce", {ID: values[ID], BYTES: 1}) for _, values in ranges if SIZE in values),
        ]
        for rank, ranges in ranks.items()
    }


@examples(25)
@given(ranks=jobs().map(warmed_up), apart=st.booleans())
def test_drawn_logs_by_an_independent_parser(tmp_path_factory, ranks, apart):
    """A log a process, or one of all: every call once, with the ranks of its communicator."""
    folder = tmp_path_factory.mktemp("logs")
    logs = [inspector_log(ranges, 100 + rank) for rank, ranges in ranks.items()]
    for rank, text in enumerate(logs if apart else ["".join(logs)]):
        (folder / f"nccl-{1000 - rank}.log").write_text(text)
    read = load_workload(folder)
    found = Counter((c.collective, c.size_bytes, c.ranks) for c in read.calls)
    assert found == whole_calls(*parsed_log("".join(logs)))
    assert read.num_ranks == len(ranks)


@examples(25)
@given(ranks=jobs().map(warmed_up))
def test_drawn_traces_by_an_independent_parser(tmp_path_factory, ranks):
    """A trace a rank: the ranks that call a communicator are its members, in the order of their numbers."""
    folder = tmp_path_factory.mktemp("traces")
    here, calls = {}, []
    for rank, ranges in ranks.items():
        places, rows = {}, []
        for number, (name, values) in enumerate(ranges):
            id, word = int(values[ID]), name.removeprefix("nccl")
            if SIZE in values:
                places[id] = values[SIZE], values[NUMBER]
                continue
            amount, peer = int(values.get(BYTES, values.get("Bytes"))), values.get("Peer rank", 0)
            more = {"Peer": peer} if "Peer rank" in values else {}
            rows += events(word, number, arguments(id, places[id][1], amount, "ncclUint8", **more), 1.0, 2.0)
            calls.append((rank, word, id, amount, peer))
        here[rank] = places
        (folder / f"log_{rank}.json").write_text(write_events(rows))
    read = load_workload(folder, num_ranks=len(ranks))
    everyone = tuple(range(len(ranks)))
    found = Counter((c.collective, c.size_bytes, c.ranks or everyone) for c in read.calls)
    assert found == whole_calls(here, calls)


@examples(80)
@given(at=st.integers(0, len(LOG) - 1), byte=st.integers(0, 255), cut=st.integers(0, len(LOG)))
def test_cut_and_flipped_logs_raise_nothing_else(path, at, byte, cut):
    """A workload or one line."""
    assert survives_damage(load, path, LOG, at, byte, cut)


def test_what_a_log_may_lack(path):
    """A size of the communicator, a rank in it, times; ids may be numbers; drops add up over communicators and counters."""
    rows = [
        json.dumps({"header": {"id": 7, "rank": 0}, "coll_perf": coll("AllReduce", 0, 8, us="soon")}),
        json.dumps({"header": {"id": 8, "rank": 2, "n_ranks": 2}, "coll_perf": coll("AllReduce", 0, 16, us=-1)}),
        line("0xc", 1, 2, "p2p_perf", **p2p("Recv", 0, 0, 4)),
        *(line("0xc", 1, 2, "dump_stats", coll_dropped_total=n, p2p_dropped_total=5, other=9) for n in (1, 3, 2)),
        json.dumps({"header": {"id": 7, "rank": 0}, "dump_stats": {"coll_dropped_total": 4, "p2p_dropped_total": "x"}}),
    ]
    rows = [json.dumps({**json.loads(row), "metadata": METADATA}) for row in rows]
    read = load(path, "\n".join(rows), num_ranks=4)
    assert [(c.collective, c.size_bytes, c.ranks, c.measured_s) for c in read.calls] == [
        ("all_reduce", 8, (), 0),
        ("all_reduce", 16, (), 0),
        ("send_recv", 4, (-1, 1), 7e-6),
    ]
    assert "left out: 12 records that the Inspector dropped before they were written" in read.notes
    assert any(note.startswith("order: the calls of one communicator after the other") for note in read.notes)
    assert not any(note.startswith("order") for note in load(path, line("0xa", 0, 2, **coll("AllReduce", 1, 8))).notes)
    with pytest.raises(WorkloadError, match="line 1: the record has no header"):
        load(path, json.dumps({"header": {"id": None}, "coll_perf": coll("AllReduce", 0, 8)}))


def test_functions_of_a_log_are_numbered_apart(tmp_path):
    """Of a communicator, as NCCL counts them: their order is that of the log, and calls of a late log find theirs."""
    for rank, first in ((0, 0), (1, 1)):
        rows = [line("0xa", rank, 2, **coll("AllReduce", number, 800 + number)) for number in range(first, 3)]
        rows += [line("0xa", rank, 2, **coll("AllGather", number, 40)) for number in range(2)]
        (tmp_path / f"{rank}.log").write_text("\n".join(rows))
    read = load_workload(tmp_path)
    assert [c.size_bytes for c in read.calls] == [800, 801, 802, 80, 80]
    assert "without a counterpart in the trace of another rank: 1 all_reduce" in read.notes
    assert not any("disagree" in note for note in read.notes)


@pytest.mark.parametrize(
    ("numbers", "dropped", "lost"),
    [
        ([0, 1, 2], 0, 0),
        ([5, 3, 9, 3], 0, 4),
        ([5, 9], 2, 1),
        ([5, 9], 3, 0),
        ([-1, 4], 0, 0),
        ([0, 2], 0, 1),
        ([], 1, 0),
    ],
)
def test_gaps_in_the_numbers_of_a_log(path, numbers, dropped, lost):
    """Are calls that were not logged, as small ones; records that were dropped once are among them."""
    rows = [line("0xa", 0, 2, **coll("AllReduce", number, 8)) for number in numbers]
    rows += [line("0xa", 0, 2, **coll(name, number, 8)) for name, number in (("AllGather", 0), ("Broadcast", -1))]
    rows += [line("0xa", 0, 2, "dump_stats", coll_dropped_total=dropped)]
    omitted = {one.what.partition(" that ")[0]: one.calls for one in load(path, "\n".join(rows)).omitted if one.missing}
    assert omitted == {what: n for what, n in (("records", dropped), ("calls", lost)) if n}


def test_events_of_a_trace_that_are_no_json(path):
    """As NCCL 2.28 writes types and pointers; the calls are whole, and a file without an end is refused as ever."""
    odd = '{"name": "AllReduce", "cat": "COLL_API", "ph": "b", "id": 0, "args": {"datatype": ncclFloat32, "Stream": 0x5}},'
    rows = events("AllReduce", 0, arguments(9, 0, 10)) + events("AllReduce", 1, arguments(9, 0, 20))
    text = f"[\n{odd}\n" + "".join(f"{json.dumps(row)},\n{odd}\n" for row in rows) + "{}]\n"
    read = load(path, text, num_ranks=2)
    assert [c.size_bytes for c in read.calls] == [40, 80]
    assert "left out: 5 events that are no JSON" in read.notes
    with pytest.raises(WorkloadError, match="character"):
        load(path, text[:-3], num_ranks=2)


def test_collectives_of_copy_engines_of_a_trace(path):
    """They have no communicator: of all ranks."""
    about = {"name": "AllGather", "cat": "CE_COLL", "id": 0, "pid": 7, "tid": 1}
    more = {"eventId": 0, "count": 10, "datatype": "ncclFloat16", "strategy": "None"}
    rows = [{**about, "ph": "b", "ts": 1.0, "args": more}, {**about, "ph": "e", "ts": 8.0}]
    read = load(path, write_events(rows), num_ranks=4)
    assert [(c.collective, c.size_bytes, c.group, c.measured_s) for c in read.calls] == [
        ("all_gather", 80, "", pytest.approx(7e-6))
    ]
    (trace,) = load_traces(path)
    assert (trace.rank, trace.places, trace.calls[0].sequence) == (-1, {}, -1)


def test_functions_of_a_trace_are_numbered_apart(tmp_path):
    """Traces that begin at different calls: four all_reduces and three all_gathers, each of both ranks where both have it."""
    for rank, first in ((0, 0), (1, 1)):
        rows = []
        for number in range(3):
            for name in ("AllReduce", "AllGather"):
                if number >= first or name == "AllReduce":
                    rows += events(name, len(rows), arguments(5, rank, 4, SeqNum=number + (name == "AllReduce") * rank))
        (tmp_path / f"{rank}.json").write_text(write_events(rows))
    read = load_workload(tmp_path, num_ranks=2)
    assert Counter(c.collective for c in read.calls) == {"all_reduce": 4, "all_gather": 3}


def test_the_rank_of_a_trace(tmp_path):
    """The largest number in a communicator, which is noted; the name of the file goes first."""
    rows = [*events("AllReduce", 0, arguments(1, 0, 4)), *events("AllReduce", 1, arguments(2, 3, 4))]
    rows += events("Send", 0, arguments(2, 3, 4, Peer=0))
    (tmp_path / "a.json").write_text(write_events(rows))
    read = load_workload(tmp_path / "a.json", num_ranks=4)
    assert [c.ranks for c in read.calls if c.collective == "send_recv"] == [(3, -1)]
    assert "rank: taken to be the largest of its numbers in communicators" in read.notes
    (tmp_path / "a.rank2.json").write_text(write_events(rows))
    read = load_workload(tmp_path / "a.rank2.json", num_ranks=4)
    assert [c.ranks for c in read.calls if c.collective == "send_recv"] == [(2, -1)]
    assert not any(note.startswith("rank: taken") for note in read.notes)
    (tmp_path / "a.rank0.json").write_text(write_events(rows))
    (trace,) = load_traces(tmp_path / "a.rank0.json")
    assert (trace.rank, [note for note in trace.after if note.startswith("rank: taken")]) == (0, [])
    (tmp_path / "a.json").write_text(write_events(rows[:2]))
    assert not any(note.startswith("rank: taken") for note in load_workload(tmp_path / "a.json", num_ranks=4).notes)


def test_begins_and_ends_of_a_trace(path):
    """Paired by category, id and process; without a time of the begin there is no duration."""
    first, second = (
        events("AllReduce", 0, arguments(1, 0, 4), 10, 20),
        events("AllReduce", 0, arguments(1, 0, 8), 100, 130),
    )
    second = [{**row, "pid": 8} for row in second]
    send = events("Send", 0, arguments(1, 0, 4, Peer=1), 1_000, 1_005)
    third = events("AllReduce", 3, arguments(1, 0, 8), 100, 140)
    rows = [first[0], second[0], third[0], send[0], send[1], {**third[1], "ph": "n", "ts": 110}, second[1], first[1]]
    rows += [third[1], {"cat": "COLL", "ph": "e", "id": 44, "ts": 5.0}]
    read = load(path, write_events([*rows, *events("AllReduce", 9, arguments(1, 0, 4), 30, 20)]), num_ranks=2)
    assert [(c.size_bytes, c.measured_s) for c in read.calls] == [
        *((16, 10e-6), (32, 30e-6), (32, 40e-6), (16, 5e-6), (16, 0)),
    ]


@pytest.mark.parametrize(
    ("name", "more", "place", "found"),
    [
        ("AllReduce", {}, GroupPlace(2, 0), {"ends": None, "sequence": -1}),
        ("AllReduce", {"Rank": None}, None, {"ends": None}),
        ("Send", {"Peer": 1, "SeqNum": 4}, GroupPlace(2, 0), {"ends": GroupEnds(2, 1), "sequence": -1}),
        ("Recv", {"Peer": 1}, GroupPlace(2, 0), {"ends": GroupEnds(1, 2)}),
        ("Send", {}, GroupPlace(2, 0), {"ends": GroupEnds(2, -1)}),
        ("Send", {"Rank": "2", "Peer": 1}, None, {"ends": GroupEnds(-1, 1)}),
    ],
)
def test_what_an_event_says(path, name, more, place, found):
    """The place of its rank, and the ends of a transfer within the communicator, as far as they are recorded."""
    path.write_text(write_events(events(name, 0, {**arguments(9, 2, 4), **more}, 1.0, 2.0)))
    (trace,) = load_traces(path)
    (call,) = trace.calls
    assert (trace.places, trace.rank) == ({"communicator 9": place}, place.number if place else -1)
    assert {name: getattr(call, name) for name in found} == found


@pytest.mark.parametrize(
    ("start", "end", "took_us"), [(1.0, 3.5, 2.5), ("1", 3.5, 0), (1.0, "x", 0), (1e18, 2e18, 0), (3, 2, 0)]
)
def test_times_and_elements_of_a_trace(path, start, end, took_us):
    """Times that are none are not recorded; elements that are no events are passed over, as are calls without a size."""
    rows = [5, None, *events("AllReduce", 0, arguments(9, 0, 10), start, end), "x"]
    rows += events("Nothing", 1, arguments(9, 0, 10), 1.0, 2.0) + events("Nothing", 2, arguments(9, 0, 10), 1.0, 2.0)
    rows += events("Broadcast", 3, arguments(9, 0, 10, "ncclOdd")) + events("Broadcast", 4, arguments(9, 0, "10"))
    read = load(path, json.dumps(rows), num_ranks=2)
    assert [(c.collective, c.size_bytes, c.measured_s) for c in read.calls] == [
        ("all_reduce", 40, pytest.approx(took_us * 1e-6))
    ]
    assert {(one.what, one.calls, one.missing) for one in read.omitted} == {
        ("Nothing, which is not a known collective", 2, True),
        ("Broadcast, without elements of a known type", 2, True),
    }
    assert "events: 10" in read.notes


def test_calls_of_several_communicators_of_a_log(path):
    """One communicator after the other, each by its numbers; a log of one has no such note."""
    rows = [(("0xa", 0, 4), 5, 8), (("0xb", 0, 2), 1, 16), (("0xa", 0, 4), 2, 24), (("0xb", 0, 2), 0, 32)]
    text = "\n".join(line(*about, **coll("AllReduce", number, size)) for about, number, size in rows)
    read = load(path, text)
    assert [c.size_bytes for c in read.calls] == [24, 8, 32, 16]
    note = "order: the calls of one communicator after the other, since the log does not record it otherwise"
    assert note in read.notes
    assert "communicators: 2 communicators" in read.notes
    assert note not in load(path, text.splitlines()[0]).notes
