"""The reader of Chakra traces, on traces written here and on a real one where it is at hand."""

import gzip
import os
import random
import struct
import time
import tracemalloc
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.optional import shared_file
from tests.profiles import examples

from opticcl.errors import WorkloadError
from opticcl.traces import Workload, load_workload
from opticcl.traces.chakra import read_trace

REAL = "chakra/resnet50-ddp.rank0.et"
BUCKETS = (8196000, 31502336, 26255360, 26550272, 9724160)
COMP, SEND, RECV, COLL = 4, 5, 6, 7

# --- a writer of traces -----------------------------------------------------------------------------------------------


def varint(n: int) -> bytes:
    """A number, seven bits a byte; negative ones as 64-bit two's complement."""
    n &= 2**64 - 1
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def field(number: int, value: int | str | bytes) -> bytes:
    """A varint field, or a length-delimited one."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(name: str, value: int | str, kind: int | None = None) -> bytes:
    """An AttributeProto; int64 and string where `kind` names no other field."""
    return field(1, name) + field(kind or (29 if isinstance(value, str) else 9), value)


def node(
    number: int, kind: int, *attributes: bytes, needs: bytes = b"", duration_us: int = 0, name: str = "n"
) -> bytes:
    """A Node."""
    head = field(1, number) + field(2, name) + field(3, kind) + needs
    return head + field(7, duration_us) + field(8, field(1, "[[1]]")) + b"".join(field(10, a) for a in attributes)


def coll(number: int, size: int, kind: int = 0, *more: bytes, **rest: object) -> bytes:
    """A collective node as ASTRA-sim's feeder reads it."""
    return node(number, COLL, attribute("comm_type", kind), attribute("comm_size", size), *more, **rest)


def packed(*needs: int) -> bytes:
    """data_deps in one field."""
    return field(5, b"".join(map(varint, needs)))


def trace(*nodes: bytes, metadata: bytes = field(1, "0.0.4")) -> bytes:
    """A whole file."""
    return b"".join(varint(len(message)) + message for message in (metadata, *nodes))


def load(folder: Path, content: bytes, name: str = "job.et") -> Workload:
    """What the reader makes of a file with that content."""
    (folder / name).write_bytes(content)
    return load_workload(folder / name)


def refused(folder: Path, content: bytes) -> str:
    """The one line with which a file is refused."""
    with pytest.raises(WorkloadError) as caught:
        load(folder, content)
    text = str(caught.value)
    assert text.isprintable()
    assert "job.et" in text
    return text


# --- what is read -----------------------------------------------------------------------------------------------------


def test_calls_come_in_file_order_with_name_size_group_and_time(tmp_path):
    """Two kernels on different process groups come out as they stand."""
    first = coll(1, 5, 0, attribute("pg_name", "7"), name="ncclA", duration_us=250)
    read = load(tmp_path, trace(first, node(2, COMP), coll(3, 9, name="ncclB")))
    assert [(c.name, c.collective, c.size_bytes, c.group) for c in read.calls] == [
        ("ncclA", "all_reduce", 5, "7"),
        ("ncclB", "all_reduce", 9, ""),
    ]
    assert [c.measured_s for c in read.calls] == [pytest.approx(250e-6), 0]
    assert (read.name, read.total_bytes, read.sizes("all_reduce")) == ("job", 14, (5, 9))
    assert "version 0.0.4" in read.source
    assert "nodes: 2 comm_coll, 1 comp; 3 in all" in read.notes


def test_each_collective_number_has_its_name(tmp_path):
    """The ten numbers of CollectiveCommType; a reduce_scatter of equal blocks is one. All of them are calls."""
    path = tmp_path / "job.et"
    path.write_bytes(trace(*(coll(n, 10 + n, n) for n in range(10))))
    kinds = [c.collective for c in read_trace(path).calls]
    assert kinds[:7] == ["all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all"]
    assert kinds[7:] == ["reduce_scatter", "reduce_scatter", "barrier"]
    read = load_workload(path, num_ranks=4)
    assert len(read.calls) == 10
    assert (read.sizes("all_gather"), read.sizes("gather")) == ((4 * 12,), (4 * 13,))  # a share of four
    assert (read.sizes("reduce_scatter"), read.sizes("barrier")) == ((17, 18), (19,))
    assert not any(note.startswith("left out: ") for note in read.notes)


def test_sends_and_receives_are_transfers(tmp_path):
    """A send from 2 to 5 and its receive are calls with their two ranks; transfers from a rank to itself are left out."""
    ends = [attribute("comm_src", 2, 7), attribute("comm_dst", 5, 7)]
    send = node(1, SEND, attribute("comm_size", 64), *ends, duration_us=3)
    recv = node(2, RECV, attribute("comm_size", 40), *ends)
    loop = node(3, SEND, attribute("comm_size", 9), attribute("comm_src", 4, 7), attribute("comm_dst", 4, 7))
    read = load(tmp_path, trace(send, recv, loop, node(4, SEND, attribute("comm_size", 1))))
    assert [(c.collective, c.size_bytes, c.ranks, c.is_transfer) for c in read.calls] == [
        ("send_recv", 64, (2, 5), True),
        ("send_recv", 40, (2, 5), True),
        ("send_recv", 1, (-1, -1), True),
    ]
    assert (read.sizes("send_recv"), read.total_bytes) == ((), 105)
    assert "left out: 1 send from a rank to itself, 9 bytes in all" in read.notes


def test_computation_on_the_device_is_added_up(tmp_path):
    """Kernels count, what the host does meanwhile does not."""
    nodes = [node(n, COMP, attribute("is_cpu_op", cpu, 27), duration_us=100 * n) for n, cpu in ((1, 0), (2, 1), (3, 0))]
    read = load(tmp_path, trace(coll(9, 8), *nodes))
    assert read.compute_s == pytest.approx(400e-6)
    assert "computation: 400 us on the device in 2 of 3 comp nodes; the others are left out" in read.notes


@pytest.mark.parametrize("kind", [7, 9, 11, 13])
def test_plain_integers_of_every_kind(tmp_path, kind):
    """Feeders write comm_size as int32, int64, uint32 or uint64."""
    message = node(1, COLL, attribute("comm_type", 0, kind), attribute("comm_size", 1 << 20, kind))
    assert load(tmp_path, trace(message)).total_bytes == 1 << 20


@pytest.mark.parametrize("kind", [15, 17])
def test_zigzag_integers(tmp_path, kind):
    """sint32 and sint64: 200 stands for 100."""
    message = node(1, COLL, attribute("comm_type", 0), attribute("comm_size", 200, kind))
    assert load(tmp_path, trace(message)).total_bytes == 100
    text = refused(tmp_path, trace(node(1, COLL, attribute("comm_type", 0), attribute("comm_size", 9, kind))))
    assert "comm_size of node 1 is -5 bytes" in text


@pytest.mark.parametrize(
    ("kind", "form", "value"), [(19, "<I", 2**32 - 1), (21, "<Q", 2**40), (23, "<i", 70000), (25, "<q", 2**40)]
)
def test_integers_of_fixed_width(tmp_path, kind, form, value):
    """fixed32, fixed64 and their signed kinds stand as 4 or 8 bytes, least first."""
    wire = 5 if form in ("<I", "<i") else 1
    size = field(1, "comm_size") + varint(kind << 3 | wire) + struct.pack(form, value)
    assert load(tmp_path, trace(node(1, COLL, attribute("comm_type", 0), size))).total_bytes == value


@pytest.mark.parametrize("value", [field(9, b"8"), field(29, 8), field(30, 8), varint(19 << 3 | 1) + bytes(8)])
def test_values_of_another_form_are_none(tmp_path, value):
    """A list, a text that is a number, a field of no schema, and a width that is not that of the kind."""
    odd = node(1, COLL, attribute("comm_type", 0), field(1, "comm_size") + value)
    read = load(tmp_path, trace(odd, coll(2, 8)))
    assert read.total_bytes == 8
    assert "left out: 1 comm_coll without comm_size" in read.notes


def test_node_number_zero_and_unknown_fields(tmp_path):
    """A zero id is not written at all; fields of later schemas are stepped over by their wire type."""
    later = field(11, 5) + field(300, "x" * 300) + varint(12 << 3 | 1) + bytes(8) + varint(13 << 3 | 5) + bytes(4)
    message = later + field(10, attribute("comm_size", 8) + field(99, b"?")) + field(10, attribute("comm_type", 0))
    read = load(tmp_path, trace(message + field(3, COLL), node(1, 11, needs=packed(0))))
    assert read.sizes("all_reduce") == (8,)
    assert "nodes: 1 comm_coll, 1 of unknown type; 2 in all" in read.notes
    assert not any("dangling" in note for note in read.notes)


def test_metadata_of_new_and_old_files(tmp_path):
    """Attributes stand in field 2, in old files in field 1, where new ones have the version."""
    for number in (1, 2):
        read = load(tmp_path, trace(coll(1, 8), metadata=field(number, attribute("schema", "1.0.1"))))
        assert "schema 1.0.1" in read.source
    about = field(1, "0.0.4") + field(2, attribute("schema", "1.0.1")) + field(2, attribute("time", 5))
    read = load(tmp_path, trace(coll(1, 8), metadata=about))
    assert read.source == "Chakra trace, job.et, version 0.0.4, schema 1.0.1, time 5"
    assert not any(note.startswith("computation") for note in read.notes)


def test_a_trace_without_metadata_is_refused(tmp_path):
    """Its first message is a node."""
    assert "the first message is not GlobalMetadata; before" in refused(
        tmp_path, trace(coll(1, 8), metadata=node(1, COMP))
    )


def test_host_records_are_dropped_where_kernels_do_the_call(tmp_path):
    """Neither a host record without a size nor one with a size counts twice."""
    host = attribute("is_cpu_op", 1, 27)
    read = load(tmp_path, trace(node(1, COLL, host), coll(2, 8, 0, host), coll(3, 8, 0, attribute("is_cpu_op", 0, 27))))
    assert read.total_bytes == 8
    assert "left out: 2 comm_coll where the host issues a call" in read.notes


def test_host_records_count_where_there_are_no_kernels(tmp_path):
    """A job on processors alone has no kernels: its records with a size are the calls."""
    host = attribute("is_cpu_op", 1, 27)
    read = load(tmp_path, trace(coll(1, 8, 0, host), node(2, COLL, host)))
    assert read.total_bytes == 8
    assert "left out: 1 comm_coll where the host issues a call" in read.notes


def test_everything_dropped_is_counted(tmp_path):
    """No size, no type, an unknown type, sends and receives: each has its line."""
    broken = [node(1, COLL), node(2, COLL, attribute("comm_size", 8)), coll(3, 8, 77)]
    host = attribute("is_cpu_op", 1, 27)
    read = load(tmp_path, trace(*broken, node(4, SEND, host), node(5, RECV), coll(6, 0)))
    assert read.sizes("all_reduce") == (0,)
    assert all(one.missing for one in read.omitted)
    for line in ("1 comm_coll without comm_size", "2 comm_coll without a known comm_type, 16 bytes in all"):
        assert f"left out: {line}" in read.notes
    assert "left out: 1 comm_send without comm_size" in read.notes
    assert "left out: 1 comm_recv without comm_size" in read.notes
    assert "size of 0 bytes: 1 of 1 calls" in read.notes


def test_a_trace_that_asks_nothing_is_refused_with_its_counts(tmp_path):
    """The refusal counts the nodes."""
    text = refused(tmp_path, trace(node(1, RECV), node(2, COMP)))
    assert "no collective with a size" in text
    assert "left out: 1 comm_recv without comm_size" in text


# --- ids and dependencies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("needs", [packed(1, 300, 9), field(5, 1) + field(4, 300) + field(5, 9)])
def test_dangling_dependencies_are_counted(tmp_path, needs):
    """Packed or not: 300 and 9 are the ids of no node, 1 is."""
    read = load(tmp_path, trace(coll(1, 8), node(2, COMP, needs=needs), node(3, COMP, needs=packed(9))))
    assert "dangling dependencies, ignored: 3 on 2 unknown ids" in read.notes


def test_ids_given_twice_are_counted(tmp_path):
    """Both nodes count as calls and a note says so."""
    read = load(tmp_path, trace(coll(1, 8), coll(1, 8)))
    assert read.total_bytes == 16
    assert any(note.startswith("duplicate ids: 1") for note in read.notes)


@pytest.mark.parametrize(
    ("needs", "shown"),
    [
        ({1: [2], 2: [3], 3: [1]}, "1 close a cycle, such as 1 needs 2 needs 3 needs 1"),
        ({1: [1], 2: [2, 1]}, "2 close a cycle, such as 1 needs 1"),
        ({1: [2], 2: [2]}, "1 close a cycle, such as 2 needs 2"),
        ({300: [2**64 - 1], 2**64 - 1: [300]}, f"1 close a cycle, such as 300 needs {2**64 - 1} needs 300"),
        ({128: [256], 256: [128]}, "1 close a cycle, such as 128 needs 256 needs 128"),
        ({1: [2], 2: [1], 3: [2], 4: [5], 5: [4]}, "2 close a cycle, such as 1 needs 2 needs 1"),
        (
            {n: [n % 50 + 1] for n in range(1, 51)},
            "such as 1 needs 2 needs 3 needs 4 needs ... needs 49 needs 50 needs 1",
        ),
        ({1: [], 2: [1], 3: [1, 2], 4: [2, 3, 3]}, None),
        ({1: [2, 3, 4], 2: [3, 4], 3: [4], 4: []}, None),
    ],
)
def test_cyclic_dependencies_are_reported(tmp_path, needs, shown):
    """A circle is found in any order of the nodes; many ways to one node are none."""
    nodes = [node(n, COMP, needs=packed(*on)) for n, on in needs.items()]
    notes = [note for note in load(tmp_path, trace(*nodes, coll(99, 8))).notes if "cyclic" in note]
    assert len(notes) == (shown is not None)
    assert shown is None or shown in notes[0]


def test_too_many_dependencies_are_not_checked_and_a_note_says_so(tmp_path):
    """Memory stays bounded: beyond 8 MiB the ids are given up."""
    needs = field(5, b"\2" * 2**21)
    read = load(tmp_path, trace(coll(1, 8), *(node(2, COMP, needs=needs) for _ in range(5))))
    assert "ids and dependencies were not checked: too many to keep in memory" in read.notes
    assert not any("cyclic" in note for note in read.notes)


def test_memory_is_bounded_by_one_message(tmp_path):
    """A trace of 64 MB in nodes of 1 MB needs a few MB."""
    path = tmp_path / "big.et"
    long = field(1, 2) + field(3, COMP) + varint(8 << 3 | 2) + varint(2**20)  # the inputs follow: zeros
    with open(path, "wb") as file:
        file.write(trace(coll(1, 8)))
        for _ in range(64):
            file.write(varint(len(long) + 2**20) + long)
            file.seek(2**20, os.SEEK_CUR)
        file.truncate()
    tracemalloc.start()
    try:
        assert load_workload(path).total_bytes == 8
        assert tracemalloc.get_traced_memory()[1] < 8e6
    finally:
        tracemalloc.stop()


# --- bad input --------------------------------------------------------------------------------------------------------

GOOD = trace(node(1, COMP), coll(2, 4096, needs=packed(1)))


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 50,
        b"import torch\nprint('no trace')\n" * 20,
        bytes(1000),
        b"\xff" * 1000,
        GOOD[8:],
        trace(b"", metadata=b""),
        varint(2**63) + GOOD,
        varint(2**26 + 1) + bytes(50),
        trace(node(1, COMP) + varint(1 << 3 | 2) + b"\1x"),
        trace(node(1, COMP) + b"\0\0"),
        trace(node(1, COMP) + varint(20 << 3 | 3)),
        trace(node(1, COMP) + varint(20 << 3 | 1) + bytes(7)),
        trace(node(1, COMP, needs=field(5, b"\x81" * 11 + b"\1"))),
        trace(node(1, COMP, needs=field(5, b"\1\x81"))),
        trace(node(1, COMP) + varint(20 << 3) + b"\x81" * 11),
        trace(node(1, COLL, b"\x0a\x7f")),
    ],
)
def test_what_is_no_trace_is_refused_with_a_byte(tmp_path, content):
    """Pictures, texts, zeros, wrong wire types, endless varints and lengths beyond the end."""
    assert "byte " in refused(tmp_path, content)


@pytest.mark.parametrize("number", range(1, 12))
def test_fields_of_another_wire_type_are_refused(tmp_path, number):
    """Those of a node; later fields are stepped over."""
    content = trace(coll(1, 8) + varint(number << 3 | 5) + bytes(4))
    if number <= 10:
        assert f"field {number} of a node cannot have wire type 5" in refused(tmp_path, content)
    else:
        assert load(tmp_path, content).total_bytes == 8


@pytest.mark.parametrize(("size", "shown"), [(-1, -1), (2**60 + 1, 2**60 + 1), (2**63, -(2**63))])
def test_absurd_sizes_are_refused(tmp_path, size, shown):
    """A message has 0 to 2**60 bytes; the byte is where the node starts."""
    text = refused(tmp_path, trace(coll(5, size)))
    assert f"comm_size of node 5 is {shown:,} bytes" in text
    assert "byte 9:" in text


def test_the_byte_is_where_the_damage_is(tmp_path):
    """A wrong wire type behind 1,000 bytes of good nodes is told at its place."""
    good = trace(*(node(n, COMP) for n in range(50)))
    bad = varint(20 << 3 | 7)
    text = refused(tmp_path, good + varint(len(node(1, COMP) + bad)) + node(1, COMP) + bad)
    assert f"byte {len(good) + 1 + len(node(1, COMP)):,}:" in text


def test_an_empty_file_and_every_cut_are_refused(tmp_path):
    """A cut inside a message is refused; one between messages leaves a trace without the call, refused as well."""
    assert "byte 0: the file is empty" in refused(tmp_path, b"")
    for end in range(1, len(GOOD)):
        refused(tmp_path, GOOD[:end])
    assert load(tmp_path, GOOD).total_bytes == 4096


def test_no_file_folder_or_pipe(tmp_path):
    """What is not a regular file is refused before it is opened: opening a pipe would wait for ever."""
    os.mkfifo(tmp_path / "pipe.et")
    for path, what in [("none.et", "no such file"), ("", "no traces in it"), ("pipe.et", "not a regular file")]:
        with pytest.raises(WorkloadError, match=what):
            load_workload(tmp_path / path)
    with pytest.raises(WorkloadError, match="no such file"):
        load_workload("nul\0in the name.et")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    """The system's reason stands in the line."""
    (tmp_path / "job.et").write_bytes(GOOD)

    def denied(*_args, **_more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(WorkloadError, match="Permission denied"):
        load_workload(tmp_path / "job.et")


# --- other forms of file ----------------------------------------------------------------------------------------------


def test_gzip_is_read_through(tmp_path):
    """By its first bytes, whatever its name; a damaged archive is refused."""
    zipped = gzip.compress(GOOD)
    for name in ("job.et.gz", "job.et"):
        read = load(tmp_path, zipped, name)
        assert (read.name, read.total_bytes) == ("job", 4096)
    refused(tmp_path, zipped[:-9])
    refused(tmp_path, zipped[:20] + b"?" + zipped[21:])
    refused(tmp_path, zipped + b"more")


def test_a_trace_without_suffix_is_known_by_its_content(tmp_path):
    """No suffix: bytes that are no text are a trace."""
    assert load(tmp_path, GOOD, "job").total_bytes == 4096


def test_a_name_with_a_newline_still_gives_one_line(tmp_path):
    """Names of files and kernels are shown in one printable line."""
    with pytest.raises(WorkloadError) as caught:
        load(tmp_path, b"", "two\nlines\x1b[31m.et")
    assert str(caught.value).isprintable()
    assert load(tmp_path, trace(coll(1, 8, name="a\nb"))).calls[0].name == "a\\nb"


# --- fuzzing ----------------------------------------------------------------------------------------------------------

FUZZ = examples(100)


def outcome(folder: Path, content: bytes) -> Workload | str:
    """The workload, or the line of refusal."""
    try:
        return load(folder, content)
    except WorkloadError as error:
        return str(error)


def survives(folder: Path, content: bytes) -> None:
    """Only a workload or one line of refusal may come out."""
    out = outcome(folder, content)
    if isinstance(out, str):
        assert out.isprintable()
    else:
        assert out.total_bytes >= sum(out.sizes("all_reduce")) >= 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples."""
    return tmp_path_factory.mktemp("fuzz")


@FUZZ
@given(content=st.binary(max_size=400))
@example(content=b"\x00\x01\x08")
def test_random_bytes_raise_nothing_else(folder, content):
    """Bytes of any kind, bare and behind good metadata."""
    survives(folder, content)
    survives(folder, trace() + content)
    survives(folder, trace(content, coll(1, 8)))
    survives(folder, trace(node(1, COLL, content)))


RICH = trace(
    coll(1, 8, 0, attribute("pg_name", "0"), name="kernel"),
    node(2, COMP, attribute("is_cpu_op", 1, 27), needs=packed(1, 2, 300, 2**40)),
    coll(300, 2**40, 5, duration_us=77, needs=field(4, 2) + field(5, 1)),
    coll(4, 200, 0, attribute("is_cpu_op", 0, 27)),
    metadata=field(1, "0.0.4") + field(2, attribute("schema", "1")),
)


@FUZZ
@given(flips=st.lists(st.tuples(st.integers(0, len(RICH) - 1), st.integers(0, 255)), max_size=4), cut=st.integers(0))
def test_flipped_and_cut_bytes_raise_nothing_else(folder, flips, cut):
    """A good trace with a few bytes changed and its end lost."""
    content = bytearray(RICH)
    for at, value in flips:
        content[at] = value
    survives(folder, bytes(content[: cut % len(RICH) + 1]))


# --- the real trace ---------------------------------------------------------------------------------------------------


@cache
def real() -> bytes:
    """The real trace."""
    return shared_file(REAL).read_bytes()


def test_the_real_trace_gives_its_five_buckets():
    """The five NCCL all-reduce kernels of a ResNet-50 step, to the byte, with their measured times."""
    read = load_workload(shared_file(REAL))
    assert read.sizes("all_reduce") == BUCKETS
    assert sum(read.sizes("all_reduce")) == 102_228_128 == 4 * 25_557_032
    assert read.sizes("broadcast") == (212_480, 424)
    assert read.total_bytes == 102_228_128 + 212_904 == 102_441_032
    measured_us = [c.measured_s * 1e6 for c in read.calls if c.collective == "all_reduce"]
    assert measured_us == pytest.approx([5572, 9093, 8512, 8178, 5327])
    assert read.compute_s + sum(c.measured_s for c in read.calls) == pytest.approx(329.5e-3, abs=5e-5)


def test_the_real_trace_tells_what_was_left_out():
    """3,643 compute nodes; of 21 collectives 14 are host records."""
    notes = load_workload(shared_file(REAL)).notes
    assert "nodes: 3,643 comp, 21 comm_coll; 3,664 in all" in notes
    assert "left out: 14 comm_coll where the host issues a call" in notes
    assert "dangling dependencies, ignored: 1,277 on 210 unknown ids" in notes
    assert any(note.startswith("cyclic dependencies, ignored: 982") for note in notes)


def test_the_real_trace_reads_in_half_a_second_of_cpu():
    """3 MB; the best of three readings, so that a busy machine is not blamed on the reader."""
    path, times = shared_file(REAL), []
    for _ in range(3):
        start = time.process_time()
        load_workload(path)
        times.append(time.process_time() - start)
    assert min(times) < 0.5


def test_the_real_trace_damaged_raises_nothing_else(folder):
    """Flips in the first 40,000 bytes, which hold six collectives of both kinds, and cuts of them."""
    content = real()[:40_000]
    chance = random.Random(20231214)
    for _ in range(150):
        damaged = bytearray(content[: chance.choice([len(content), chance.randrange(len(content))])])
        for _ in range(chance.randrange(4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        survives(folder, bytes(damaged) + trace(coll(1, 8))[8:])
