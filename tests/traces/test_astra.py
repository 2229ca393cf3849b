"""The reader of ASTRA-sim's layer files, on files written here and on real ones where they are at hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optional import shared_file
from tests.profiles import examples
from tests.traces.damage import survives_damage

from opticcl.errors import ParameterError, WorkloadError
from opticcl.traces import load_job, load_workload

FILE = """HYBRID_TRANSFORMER model_parallel_NPU_group: 4 pp_comm: 77
2
first\t-1\t10\tALLREDUCE\t8\t20\tALLGATHER\t16\t30\tREDUCESCATTER\t32\t5
second\t-1\t1\tNONE\t0\t2\tALLTOALL_EP\t4\t3\tALLREDUCE_DP_EP\t2\t5\tDATA
"""
GOOD = "a -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("astra") / "model.txt"


def load(path, text, **more):
    """What the reader makes of a file with that text."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_workload(path, **more)


def test_calls_come_in_the_order_of_a_step(path):
    """Forward, then back from the last layer; SimAI's groups by name, else those that the parallelism implies."""
    read = load(path, FILE, num_ranks=16)
    assert [(c.name, c.collective, c.size_bytes, c.group) for c in read.calls] == [
        ("first forward", "all_reduce", 8, "model parallel"),
        ("second input gradient", "all_to_all", 4, "EP"),
        ("second weight gradient", "all_reduce", 2, "DP_EP"),
        ("first input gradient", "all_gather", 64, "model parallel"),
        ("first weight gradient", "reduce_scatter", 32, "data parallel"),
    ]
    assert (read.num_ranks, read.total_bytes) == (16, 110)
    assert any("pp_comm: 77" in note for note in read.notes)


def test_the_clock_is_asked_for(path):
    """66 cycles are a time only with a clock."""
    read = load(path, FILE)
    assert read.compute_s == 0
    assert any("66 cycles" in note and "clock_hz" in note for note in read.notes)
    assert load(path, FILE, clock_hz=1e6).compute_s == pytest.approx(66e-6)
    for clock in (0, -1, float("nan"), float("inf"), "1 GHz"):
        with pytest.raises(ParameterError, match="clock_hz"):
            load(path, FILE, clock_hz=clock)
    with pytest.raises(ParameterError, match="num_ranks=-1 is negative"):
        load(path, FILE, num_ranks=-1)


def test_what_is_left_out_is_counted(path):
    """A collective that no network knows, bytes of NONE, lines after the last layer."""
    layer = "a -1 1 ALLREDUCEALLTOALL 8 1 NONE 3 1 ALLREDUCE 5.0 1\n"
    read = load(path, f"DATA\n1\n{layer}{layer}")
    assert read.total_bytes == 5
    assert "left out: 1 ALLREDUCEALLTOALL, which is not a known collective, 8 bytes in all" in read.notes
    assert "left out: 1 NONE with a size, 3 bytes in all" in read.notes
    assert [one.missing for one in read.omitted] == [True, False]
    assert "left out: 1 lines after the last layer" in read.notes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("DATA\n3\n" + FILE.partition("2\n")[2], "line 4: the file ends after 2 of 3 layers"),
        ("DATA\n0\n", "line 2: '0' is not a number of layers"),
        ("DATA\n1\na -1 1 NONE 0 1 NONE 0 1\n", "line 3: 9 columns"),
        ("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE -5 1\n", "line 3: weight gradient message is -5 bytes"),
        ("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 1.5 1\n", "line 3: weight gradient bytes is '1.5'"),
        ("DATA\n1\na -1 -1 NONE 0 1 NONE 0 1 ALLREDUCE 5 1\n", "line 3: negative cycles"),
        (f"DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE {2**61} 1\n", "2\\*\\*60"),
        ("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n", "no collective with a size"),
        (
            f"DATA\n1\na -1 1{'0' * 19} NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n",
            "line 3: forward computation is 1.* more than 1e\\+18",
        ),
        (f"DATA\n2\n{GOOD}b -1 1 NONE 0 1_0 NONE 0 1 ALLREDUCE 8 1\n", "line 4: input gradient computation is '1_0'"),
        (f"DATA\n2\n{GOOD}b -1 1 NONE ٣ 1 NONE 0 1 ALLREDUCE 8 1\n", "line 4: forward bytes is '٣'"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(path, text, said):
    """One printable line."""
    with pytest.raises(WorkloadError, match=said) as caught:
        load(path, text)
    assert str(caught.value).isprintable()


@examples(60)
@given(cut=st.integers(0, len(FILE)), at=st.integers(0, len(FILE) - 1), byte=st.integers(0, 255))
def test_cut_and_flipped_files_raise_nothing_else(path, cut, at, byte):
    """A workload or one line."""
    assert survives_damage(load, path, FILE, at, byte, cut)


@pytest.mark.parametrize("name", ["resnet50-data-parallel.txt", "dlrm-hybrid-parallel.txt"])
def test_the_real_files_to_the_byte(name):
    """Every byte of every column of collectives is in the calls."""
    path = shared_file(f"astra-sim/{name}")
    rows = [line.split() for line in path.read_text("utf-8").splitlines()[2:]]
    read = load_workload(path, clock_hz=1e9)
    assert read.total_bytes == sum(int(row[column]) for row in rows for column in (4, 7, 10))
    assert read.compute_s == pytest.approx(1e-9 * sum(int(row[column]) for row in rows for column in (2, 5, 8)))
    assert not any(note.startswith("left out") for note in read.notes)
    if name.startswith("resnet50"):
        assert read.calls[0].name == "fc1000 weight gradient"
        assert len(read.sizes("all_reduce")) == 54
    else:
        assert len(read.sizes("all_to_all")) == 2


def test_repeated_passes_are_bounded(path):
    """A header of some kilobytes cannot ask for ten billion computations."""
    numbers = " ".join(map(str, range(19_400, 20_000)))
    header = f"HYBRID_CUSTOMIZED checkpoints: 1 0 checkpoint_initiates: 600 {numbers}"
    with pytest.raises(
        WorkloadError, match=r"line 1: checkpoints repeat 11,819,700 forward passes, more than 10,000,000"
    ):
        load(path, f"{header}\n20000\n" + GOOD * 20_000)
    header = header.replace("checkpoints: 1 0", "checkpoints: 1 19300")  # 239,700 passes
    assert len(load(path, f"{header}\n20000\n" + GOOD * 20_000).calls) >= 20_000


def test_checkpoints_repeat_forward_passes(path):
    """From the last checkpoint up to the layer, before its backward pass; also as tasks."""
    layers = "".join(f"l{i} -1 1 ALLREDUCE {2**i} 1 NONE 0 1 NONE 0 1\n" for i in range(5))
    path.write_text(f"HYBRID_CUSTOMIZED checkpoints: 2 0 2 checkpoint_initiates: 2 4 1\n5\n{layers}")
    expected = [0, 1, 2, 3, 4, 2, 3, 0]  # forward; before the backward pass of layer 4, then of layer 1
    assert [call.size_bytes for call in load_workload(path).calls] == [2**i for i in expected]
    job = load_job(path, num_ranks=4)
    assert [task.size_bytes for task in job.tasks if task.communicates] == [2**i for i in expected]
    assert sum(not task.communicates for task in job.tasks) == 3 * 5 + 3


def test_a_share_beyond_any_message_is_refused(path):
    """2**59 bytes of each of 16 ranks; of a reduce_scatter they are the whole message."""
    text = f"DATA\n1\na -1 1 ALLGATHER {2**59} 1 NONE 0 1 REDUCESCATTER {2**59} 1\n"
    path.write_text(text)
    with pytest.raises(
        WorkloadError, match=r"all_gather 'a forward' of .* bytes a rank, 16 ranks, is more than 2\*\*60"
    ):
        load_workload(path, num_ranks=16)
    with pytest.raises(WorkloadError, match=r"is more than 2\*\*60"):
        load_job(path, num_ranks=16)
    path.write_text(text.replace("ALLGATHER", "ALLREDUCE"))
    assert load_workload(path, num_ranks=16).total_bytes == 2**60


@examples(40)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=4))
def test_what_computation_waits_for(path, drawn):
    """Forward passes and input gradients for the collective of the one before; those of weight gradients may be fused."""
    words = [["ALLREDUCE 8" if called else "NONE 0" for called in phases] for phases in [*drawn, (True,) * 3]]
    layers = [f"l{i} -1 1 {a} 1 {b} 1 {c} 1" for i, (a, b, c) in enumerate(words)]
    path.write_text("\n".join(["DATA", str(len(layers)), *layers]))
    order = [(i, 0) for i in range(len(layers))] + [
        (i, phase) for i in reversed(range(len(layers))) for phase in (1, 2)
    ]
    chain = [one for one in order if one[1] < 2]
    before, tasks, calls = dict(zip(chain[1:], chain, strict=False)), load_job(path, num_ranks=4).tasks, {}
    due, fusible = [], set()
    for layer, phase in order:
        due.append({calls[before[layer, phase]]} if before.get((layer, phase)) in calls else set())
        if words[layer][phase] != "NONE 0":
            calls[layer, phase] = len(due)
            fusible |= {len(due)} if phase == 2 else set()
            due.append({len(due) - 1})
    assert [set(task.after) for task in tasks] == due
    assert [task.communicates for task in tasks] == [place in calls.values() for place in range(len(due))]
    assert {place for place, task in enumerate(tasks) if task.fusible} == fusible


@pytest.mark.parametrize(("word", "fusible"), [("ALLREDUCE", True), ("REDUCESCATTER", False), ("ALLTOALL", False)])
def test_sums_of_gradients_may_be_fused(path, word, fusible):
    """Other collectives of theirs may not; a step has its order."""
    path.write_text(f"DATA\n1\na -1 1 {word} 8 1 {word} 8 1 {word} 8 1\n")
    job = load_job(path, num_ranks=4)
    assert [task.fusible for task in job.tasks if task.communicates] == [False, False, fusible]
    assert "order: forward through the layers and back; the next layer depends on activations" in job.notes
    assert not any(note.startswith("order") for note in load_workload(path).notes)


# --- dialects ---------------------------------------------------------------------------------------------------------

HEAD = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2"
LAYER = "1\na -1 1 ALLGATHER 8 1 NONE 0 1 ALLGATHER 32 1\n"


@pytest.mark.parametrize(
    ("first", "dialect", "sizes"),
    [
        (f"{HEAD} checkpoints: 0", None, [16, 256]),
        (f"{HEAD} checkpoints: 0", "simai", [8, 32]),
        (f"{HEAD} pp: 1", None, [8, 32]),
        (f"{HEAD} ep: 1", None, [8, 32]),
        (f"{HEAD} all_gpus: 16", None, [8, 32]),
        (f"{HEAD} all_gpus: 16", "astra", [16, 256]),
        ("MICRO", None, [8, 32]),
        ("MICROBENCH", None, [128, 512]),
    ],
)
def test_the_first_line_selects_the_dialect(path, first, dialect, sizes):
    """Keys of SimAI alone make bytes whole messages; the caller's word goes first."""
    read = load(path, f"{first}\n{LAYER}", num_ranks=16, dialect=dialect)
    assert [call.size_bytes for call in read.calls] == sizes
    job = load_job(path, num_ranks=16, dialect=dialect)
    assert [task.size_bytes for task in job.tasks if task.communicates] == sizes


def test_a_file_that_both_laws_fit_says_what_the_other_makes_of_it(path):
    """Bytes of all all_gathers by SimAI's law; no such note where a key or the caller decides."""
    (note,) = [note for note in load(path, f"{HEAD}\n{LAYER}", num_ranks=16).notes if note.startswith("dialect")]
    assert "ASTRA-sim's" in note
    assert "its 2 all_gathers are 40 bytes in all (--dialect simai" in note
    (note,) = [note for note in load(path, f"{HEAD} pp: 1\n{LAYER}", num_ranks=16).notes if note.startswith("dialect")]
    assert note == "dialect: SimAI's, by 'pp:' in the first line: bytes are whole messages"
    given = load(path, f"{HEAD}\n{LAYER}", num_ranks=16, dialect="astra")
    assert not any(note.startswith("dialect") for note in given.notes)
    with pytest.raises(ParameterError, match="dialect: 'simia' is not astra or simai"):
        load(path, f"{HEAD}\n{LAYER}", dialect="simia")


def simai(text, group_of_label):
    """Calls of a file by SimAI's law, by a parser of its own: (collective, bytes, ranks of rank 0), in the order of a step."""
    first, _, *rows = text.splitlines()
    words = first.replace(":", " ").split()
    value = {key: int(words[words.index(key) + 1]) for key in ("model_parallel_NPU_group", "ep", "pp", "all_gpus")}
    tp, ep, pp, everyone = value.values()
    dp = everyone // tp // pp
    members = {
        "TP": [r for r in range(everyone) if r // tp == 0],
        "DP": [r for r in range(everyone) if r % (tp * pp) == 0],
        "EP": [r for r in range(everyone) if r % tp == 0 and r // tp // ep == 0],
        "DP_EP": [r for r in range(everyone) if r % (tp * ep) == 0 and r // (tp * ep) < dp // ep],
    }
    layers = [row.split() for row in rows]
    steps = [(layer, 0) for layer in layers] + [(layer, phase) for layer in reversed(layers) for phase in (1, 2)]
    found = []
    for layer, phase in steps:
        word, size = layer[3 + 3 * phase : 5 + 3 * phase]
        base, _, label = word.partition("_")
        ranks = members[label or group_of_label[phase]]
        if base != "NONE" and len(ranks) > 1:
            found.append((base, int(size), () if len(ranks) == everyone else tuple(ranks)))
    return found


BASES = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
    "BROADCAST": "broadcast",
}


@examples(40)
@given(data=st.data())
def test_drawn_files_by_an_independent_parser(path, data):
    """Drawn sizes of groups, labels, layers and orders of keys; the number of ranks is in the line, or given."""
    tp, ep, rest, pp = (data.draw(st.sampled_from([1, 2, 3, 4])) for _ in range(4))
    everyone = tp * pp * ep * rest
    keys = [f"model_parallel_NPU_group: {tp}", f"ep: {ep}", f"pp: {pp}", f"all_gpus: {everyone}", "vpp: 5", "ga: 7"]
    collective = st.tuples(st.sampled_from(list(BASES)), st.sampled_from(["", "_EP", "_DP_EP"])).map("".join)
    word = st.one_of(st.just("NONE 0"), st.tuples(collective, st.integers(1, 10**9).map(str)).map(" ".join))
    layers = data.draw(st.lists(st.tuples(word, word, word), min_size=1, max_size=4))
    lines = [f"l{i} -1 1 {a} 2 {b} 3 {c} 1" for i, (a, b, c) in enumerate(layers)]
    text = "\n".join([f"HYBRID_X {' '.join(data.draw(st.permutations(keys)))}", str(len(lines)), *lines])
    expected = simai(text, ("TP", "TP", "DP"))
    options = {}
    if data.draw(st.booleans()):
        text, options = text.replace(f"all_gpus: {everyone}", "", 1), {"num_ranks": everyone}
    if not expected:
        with pytest.raises(WorkloadError, match="no collective with a size among several ranks"):
            load(path, text, **options)
        return
    read = load(path, text, **options)
    assert [(c.collective, c.size_bytes, c.ranks) for c in read.calls] == [
        (BASES[base], size, ranks) for base, size, ranks in expected
    ]
    assert read.num_ranks == everyone


@pytest.mark.parametrize(
    ("first", "layer", "said"),
    [
        ("pp: 3 all_gpus: 16", "ALLREDUCE", "line 1: 16 ranks are not a multiple of TP 2 \\* PP 3"),
        ("ep: 1 pp: 3 all_gpus: 16", "ALLTOALL_EP", "line 1: 16 ranks are not a multiple of TP 2 \\* PP 3"),
        ("ep: 1 pp: 3 all_gpus: 16", "ALLREDUCE_DP_EP", "line 1: 16 ranks are not a multiple of TP 2 \\* PP 3"),
        ("ep: 3 all_gpus: 16", "ALLREDUCE_DP_EP", "line 1: ep: 3 does not divide the 8 data-parallel ranks"),
        ("ep: 16 all_gpus: 16", "ALLTOALL_EP", "line 1: ep: 16 does not divide the 8 data-parallel ranks"),
        ("ep: 0", "ALLREDUCE", "line 1: ep: '0' is not a whole number from 1"),
        ("pp: two", "ALLREDUCE", "line 1: pp: 'two' is not a whole number from 1"),
        ("all_gpus:", "ALLREDUCE", "line 1: all_gpus: '' is not a whole number from 1"),
    ],
)
def test_groups_that_do_not_divide_the_ranks_are_refused(path, first, layer, said):
    """With the key; a group that no layer uses is not checked."""
    with pytest.raises(WorkloadError, match=said):
        load(path, f"{HEAD} {first}\n1\na -1 1 NONE 0 1 NONE 0 1 {layer} 8 1\n")


def test_unused_groups_may_be_anything(path):
    """`ep: 16` on a file without experts."""
    assert load(path, f"{HEAD} ep: 16 all_gpus: 16\n{LAYER}").total_bytes == 40
