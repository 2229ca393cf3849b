"""Drawn layer files of ASTRA-sim: calls, groups, computation and notes by the rules of the form, parsed here line by line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.test_astra import BASES, load

from opticcl.errors import WorkloadError
from opticcl.traces import TRACES, ReadOptions, load_job, load_workload

RANKS = 8
SPLIT = ("HYBRID_TRANSFORMER", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_CUSTOMIZED")
FORMS = (str, "{}.0".format, "+{}".format, "{}.".format)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("astra") / "model.txt"


number = st.tuples(st.integers(0, 999), st.sampled_from(FORMS)).map(lambda one: one[1](one[0]))
word = st.tuples(
    st.sampled_from([*BASES, "NONE", "none", "AllReduce", "ODD"]),
    st.sampled_from(["", "", "_EP", "_x"]),
    st.integers(0, 999),
).map(lambda one: (f"{one[0]}{one[1]}", str(one[2])))
layer = st.tuples(
    st.tuples(number, number, number),
    st.tuples(word, word, word),
    st.integers(-9, 9),
    st.sampled_from(["", " DATA", "\n", "\n \n"]),
)


def line_of(place, cycles, words, update, behind):
    """A line of a layer, perhaps with its own parallelism or empty lines behind it."""
    phases = " ".join(f"{took} {kind} {size}" for took, (kind, size) in zip(cycles, words, strict=True))
    return f"l{place}\t-1 {phases} {update}{behind}"


def meaning(text, num_ranks):
    """Calls (name, collective, bytes, group, ranks), cycles of the step, update delays, and what is left out."""
    rows = [line.split() for line in text.splitlines()]
    first, rows = rows[0], [row for row in rows[1:] if row]
    tensor = int(first[first.index("model_parallel_NPU_group:") + 1]) if "model_parallel_NPU_group:" in first else 0
    count, layers = int(rows[0][0]), rows[1:]
    layers, extra = layers[:count], layers[count:]
    order = [(layer, 0) for layer in layers] + [(layer, phase) for layer in layers[::-1] for phase in (1, 2)]
    calls, left = [], {}
    cycles = sum(int(float(layer[column])) for layer in layers for column in (2, 5, 8))
    for layer, phase in order:
        kind, size = layer[3 + 3 * phase].upper(), int(layer[4 + 3 * phase])
        base, _, label = kind.partition("_")
        if base not in BASES:
            if base != "NONE" or size:
                what = "NONE with a size" if base == "NONE" else f"{kind}, which is not a known collective"
                n, total = left.get(what, (0, 0))
                left[what] = n + 1, total + size
            continue
        everyone, group = tuple(range(num_ranks)), label
        if tensor and not label:
            group = "data parallel" if phase == 2 else "model parallel"
            everyone = everyone[::tensor] if phase == 2 else everyone[:tensor]
        elif not label and first[0] in SPLIT:
            group = "data parallel" if phase == 2 else "model parallel"
        if len(everyone) > 1:
            whole = size * len(everyone) if base == "ALLGATHER" else size
            said = ("forward", "input gradient", "weight gradient")[phase]
            known = () if len(everyone) == num_ranks else everyone
            calls.append((f"{layer[0]} {said}", BASES[base], whole, group, known))
    return calls, cycles, sum(int(layer[11]) for layer in layers), left, len(extra)


@examples(60)
@given(
    first=st.sampled_from(["DATA", "HYBRID_DLRM", *SPLIT[:2], "HYBRID_CUSTOMIZED model_parallel_NPU_group: 2"]),
    drawn=st.lists(layer, min_size=1, max_size=4),
    extra=st.lists(layer, max_size=2),
    usual=st.booleans(),
)
def test_drawn_files(path, first, drawn, extra, usual):
    """Whatever the form of numbers and lines; the shares of an all_gather are multiplied by its group."""
    if usual:
        drawn, extra = ([(cycles, words, 5, "") for cycles, words, *_ in rows] for rows in (drawn, extra))
    rows = [line_of(place, *one) for place, one in enumerate([*drawn, *extra])]
    text = "\n".join([f"  {first} pp_comm: 0.0", f" {len(drawn)} ", *rows])
    calls, cycles, updates, left, more = meaning(text, RANKS)
    if not calls:
        with pytest.raises(WorkloadError, match="no collective with a size"):
            load(path, text, num_ranks=RANKS)
        return
    read = load(path, text, num_ranks=RANKS, clock_hz=1e3)
    assert [(c.name, c.collective, c.size_bytes, c.group, c.ranks) for c in read.calls] == calls
    assert read.compute_s == pytest.approx(cycles * 1e-3)
    assert any(note.startswith(f"computation: {cycles:,} cycles, ") for note in read.notes)
    assert any(note.endswith(f"; update delays of {updates:,} cycles are not counted in it") for note in read.notes)
    assert {one.what: (one.calls, one.size_bytes) for one in read.omitted if "group of one" not in one.what} == left
    assert (f"left out: {more} lines after the last layer" in read.notes) == bool(more)
    assert not any("pp_comm" in note for note in read.notes if note.startswith("left out"))
    assert f"layers: {len(drawn)}, {first} pp_comm: 0.0" in read.notes
    gathers = [
        int(words[phase][1]) for _, words, *_ in drawn for phase in range(3) if words[phase][0].startswith("ALLGATHER")
    ]
    said = [note for note in read.notes if note.startswith("dialect: ")]
    assert len(said) == bool(gathers)
    assert all(f"its {len(gathers)} all_gathers are {sum(gathers):,} bytes in all" in note for note in said)
    job = load_job(path, num_ranks=RANKS, clock_hz=1e3)
    assert job.compute_s == pytest.approx(cycles * 1e-3)
    assert sum(not task.communicates for task in job.tasks) == 3 * len(drawn)
    assert [(t.name, t.collective, t.size_bytes) for t in job.tasks if t.communicates] == [call[:3] for call in calls]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n", "line 1: the first line names no parallelism"),
        ("data\n1\n", "line 1: the first line names no parallelism"),
        ("DATA\n", "line 2: '' is not a number of layers"),
        ("DATA\n1000001\n", "line 2: '1000001' is not a number of layers"),
        ("DATA\nx\n", "line 2: 'x' is not a number of layers"),
        (
            "HYBRID_X all_gpus: 4\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1 DATA MORE\n",
            "line 3: 14 columns where a layer has 12, or 13",
        ),
        (
            "HYBRID_CUSTOMIZED checkpoints: 1 1\n1\na -1 1 ALLREDUCE 8 1 NONE 0 1 NONE 0 1\n",
            "line 1: checkpoints names layer 1 of 1",
        ),
        (
            f"DATA\n1\na -1 {10**18 + 1} NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n",
            r"line 3: forward computation is 1000000000000000001 cycles, more than 1e\+18",
        ),
        (
            f"DATA\n2\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\nb -1 1 NONE 0 {10**18 + 1} NONE 0 1 NONE 0 1\n",
            r"line 4: input gradient computation is 1000000000000000001 cycles, more than 1e\+18",
        ),
        (
            f"DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 -{10**18 + 1}\n",
            "line 3: update delay is -1000000000000000001",
        ),
        (
            f"DATA\n1\na -1 {'9' * 5000} NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n",
            "line 3: forward computation is '9+', not a whole number",
        ),
    ],
)
def test_what_is_no_layer_file_is_refused(path, text, said):
    """With its line."""
    path.write_text(text)
    with pytest.raises(WorkloadError, match=said) as caught:
        TRACES.get("astra").reader.read_workload(path, ReadOptions())
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("sign", ["", "+"])
def test_the_largest_numbers_of_cycles(path, sign):
    """10**18 are read in both forms; delays may be negative."""
    layer = f"a -1 {sign}{10**18} ALLREDUCE 8 1 NONE 0 1 NONE 0 {-(10**18)}\n"
    read = load(path, f"DATA\n1\n{layer}", clock_hz=1e9)
    assert read.compute_s == pytest.approx((10**18 + 2) / 1e9)
    assert any("update delays of -1,000,000,000,000,000,000 cycles" in note for note in read.notes)


@pytest.mark.parametrize("value", ["77", "0.5", "1,2"])
def test_transfers_between_stages_are_named(path, value):
    """Where the first line has a size of them."""
    layer = "a -1 1 ALLREDUCE 8 1 NONE 0 1 NONE 0 1\n"
    for colon in (":", ""):
        notes = load(path, f"HYBRID_TRANSFORMER pp_comm{colon} {value}\n1\n{layer}").notes
        assert f"left out: pp_comm{colon} {value}, transfers between pipeline stages, which no layer lists" in notes


@pytest.mark.parametrize(
    ("keys", "word", "group", "ranks"),
    [
        ("all_gpus: 8", "ALLREDUCE", "TP", ()),
        ("all_gpus: 8", "ALLTOALL_EP", "EP", ()),
        ("all_gpus: 8", "ALLREDUCE_DP_EP", "DP_EP", ()),
        ("all_gpus: 8 ep: 2", "ALLREDUCE_DP_EP", "DP_EP", (0, 2, 4, 6)),
        ("all_gpus: 8 ep: 2", "ALLTOALL_EP", "EP", (0, 1)),
        ("all_gpus: 8 ep: 2 model_parallel_NPU_group: 2", "ALLTOALL_EP", "EP", (0, 2)),
        ("all_gpus: 8 pp: 2", "ALLREDUCE_DP", "DP", (0, 2, 4, 6)),
        ("all_gpus: 8 pp: 3", "ALLREDUCE_TP", "TP", ()),
        ("all_gpus: 8 pp: 3", "ALLREDUCE", "TP", ()),
        ("all_gpus: 8 ep: 3", "ALLREDUCE_DP", "DP", ()),
        ("all_gpus: 8 ep: 2", "ALLREDUCE_ODD", "ODD", ()),
    ],
)
def test_groups_of_simai_whose_size_is_not_recorded(path, keys, word, group, ranks):
    """They are named, and taken to be all ranks, with a note."""
    read = load(path, f"HYBRID_TRANSFORMER {keys}\n1\na -1 1 {word} 8 1 NONE 0 1 NONE 0 1\n")
    (call,) = read.calls
    assert (call.group, call.ranks, read.num_ranks) == (group, ranks, 8)
    keys_of = {"TP": "model_parallel_NPU_group:", "EP": "ep:", "DP_EP": "ep:"}.get(
        group, "" if group == "DP" else "none"
    )
    assert call.group_source.startswith("assumed") == (keys_of not in keys)


def test_layers_in_parts_of_the_file(path):
    """A file that is read in several pieces: names, words and numbers of lines of all of them."""
    many = 40_000
    rows = [f"layer{i} -1 1 {'ALLREDUCE' if i % 2 else 'ALLTOALL_EP'} {i} 1 NONE 0 1 NONE 0 1" for i in range(many)]
    read = load(path, "\n".join(["DATA", str(many), *rows]))
    assert len(read.calls) == many
    assert [(c.name, c.collective, c.size_bytes) for c in read.calls[-2:]] == [
        (f"layer{many - 2} forward", "all_to_all", many - 2),
        (f"layer{many - 1} forward", "all_reduce", many - 1),
    ]
    rows[-1] = rows[-1].replace("-1 1", "-1 x")
    with pytest.raises(WorkloadError, match=f"line {many + 2:,}: forward computation is 'x'"):
        load(path, "\n".join(["DATA", str(many), *rows]))
    path.write_text("\n".join(["DATA", str(many + 1), *rows[:-1]]))
    with pytest.raises(
        WorkloadError, match=f"line {many + 1:,}: the file ends after {many - 1:,} of {many + 1:,} layers"
    ):
        load_workload(path)
