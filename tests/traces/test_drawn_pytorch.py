"""Drawn jobs as PyTorch records them: the calls that are read are those of the job, and those of a parser of the tests."""

import json
import pickle
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.drawn_job import (
    COMPUTE,
    Call,
    Job,
    Recorder,
    begun_and_ended,
    drawn_job,
    flight_recorder,
    gloo,
    information,
    kineto,
    record,
)
from tests.traces.independent import calls_of, records_of, times_of

from opticcl.traces import load_job, load_steps, load_workload

seeds = st.integers(0, 2**32)
cuts = st.just([0] * 8) | st.lists(st.integers(0, 3), min_size=8, max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that every example empties."""
    return tmp_path_factory.mktemp("drawn")


def files(folder, texts):
    """The folder with only these files."""
    for old in folder.iterdir():
        old.unlink()
    for name, content in texts.items():
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def found(read):
    """Collective, bytes and ranks of each call, sorted; the group of all ranks by its ranks."""
    everyone = tuple(range(read.num_ranks))
    return sorted((call.collective, call.size_bytes, tuple(call.ranks) or everyone) for call in read.calls)


def wanted(job, calls=None):
    """The same of a job."""
    names = {"transfer": "send_recv"}
    return sorted((names.get(c.kind, c.kind), c.size, c.ranks) for c in (job.calls if calls is None else calls))


@examples(40)
@given(seeds, st.booleans(), st.booleans())
def test_a_file_a_rank(folder, seed, last, pairs):
    """Calls, bytes, ranks, parts of all_to_alls; whatever the order of keys, and with B and E in place of X."""
    job = drawn_job(seed)
    ranks = {rank: record(job, rank).events for rank in range(job.world)}
    form = begun_and_ended if pairs else list
    texts = {f"t{r}.json": kineto(form(events), information(job, r), last) for r, events in ranks.items()}
    read = load_workload(files(folder, texts))
    assert found(read) == wanted(job) == sorted(calls_of(ranks))
    uneven = [call.parts for call in job.calls if call.matrix]
    assert sorted(call.matrix_bytes for call in read.calls if call.matrix_bytes) == sorted(uneven)
    assert read.compute_s == pytest.approx(sum(one for one in job.work if isinstance(one, int)) * 1e-6)
    assert not any("counterpart" in note for note in read.notes)


@examples(40)
@given(seeds, cuts, cuts, st.booleans())
def test_recordings_that_begin_and_end_at_different_calls(folder, seed, first, last, repeated):
    """Calls of any rank count once, by their sequence number; those that a member did not record are counted."""
    job = drawn_job(seed, transfers=False, repeated=repeated)
    ranks = {rank: record(job, rank, first[rank], last[rank]).events for rank in range(job.world)}
    expected = sorted(calls_of(ranks))
    kinds = {kind for kind, *_ in expected} - {"all_to_all"}  # of which a rank that is missing hides its part
    if not expected:
        return
    read = load_workload(files(folder, {f"{r}.json": kineto(e, information(job, r)) for r, e in ranks.items()}))
    assert [one for one in found(read) if one[0] in kinds] == [one for one in expected if one[0] in kinds]
    assert len(read.calls) == len(expected)
    seen = Counter((one["Process Group Name"], one["Seq"]) for events in ranks.values() for one in records_of(events))
    alone = sum(number < len(job.groups[group]) for (group, _), number in seen.items())
    assert alone == sum(int(note.split()[-2]) for note in read.notes if "without a counterpart" in note)


@examples(40)
@given(seeds, st.sampled_from(["rank", "device", "process"]), st.booleans())
def test_all_ranks_in_one_file(folder, seed, by, info):
    """Told apart by args.rank, by the devices of one process, or by processes; ranks by what records say of themselves."""
    job = drawn_job(seed)
    ranks, merged = {}, []
    for rank in range(job.world):
        about = {"device": rank, "host": 900}
        if by == "rank":
            about = {"tag": {"rank": rank}}
        elif by == "process":
            about = {"device": rank, "host": 900 + rank}
        ranks[rank] = record(job, rank, **about).events
        merged += ranks[rank]
    if by != "rank" and any(not any(one["name"] == "record_param_comms" for one in e) for e in ranks.values()):
        return  # a device or a process without a call has no rank
    whole = {**information(job, 0), "rank": -1} if info else None
    path = files(folder, {"all.json": kineto(merged, whole)}) / "all.json"
    read = load_workload(path, num_ranks=job.world)
    assert found(read) == wanted(job) == sorted(calls_of(ranks))
    assert load_job(path, num_ranks=job.world).num_calls == len(job.calls)


@examples(40)
@given(seeds)
def test_recorded_times_add_up(folder, seed):
    """Computation, exposed messages and idle time of a device, by marking every microsecond."""
    job = drawn_job(seed)
    for rank in range(job.world):
        events = record(job, rank).events
        if not any(one["name"].startswith("nccl") for one in events):
            continue
        (step,) = load_steps(files(folder, {"a.json": kineto(events, information(job, rank))}))
        parts = step.recorded.busy_s, step.recorded.exposed_s, step.recorded.idle_s
        assert [round(part * 1e6) for part in parts] == list(times_of(events))
        assert sum(parts) == pytest.approx(step.recorded.total_s)


@examples(40)
@given(seeds, cuts, cuts, st.booleans(), st.sampled_from(["fr_", "n02_"]))
def test_dumps_of_the_flight_recorder(folder, seed, first, last, plain, prefix):
    """The same job, each rank known by the number in which the names end; rings begin at different calls."""
    job = drawn_job(seed, transfers=not any(first + last), repeated=plain)
    dumps = {rank: flight_recorder(job, rank, first[rank], last[rank]) for rank in range(job.world)}
    recorded = {
        (e["process_group"][0], e["collective_seq_id"], e["is_p2p"]) for d in dumps.values() for e in d["entries"]
    }
    if not recorded:
        return
    write = json.dumps if plain else pickle.dumps
    read = load_workload(files(folder, {f"{prefix}{rank}{'.json' * plain}": write(one) for rank, one in dumps.items()}))
    if any(first + last):
        assert len(read.calls) == len(recorded)
    else:
        assert found(read) == wanted(job)
        uneven = [call.parts for call in job.calls if call.matrix]
        assert sorted(call.matrix_bytes for call in read.calls if call.matrix_bytes) == sorted(uneven)


WORDS = {"all_reduce": "ncclDevKernel_AllReduce_Sum_bf16(x)", "all_gather": "ncclDevKernel_AllGather_RING_LL(x)"}
WORDS |= {"reduce_scatter": "ncclDevKernel_ReduceScatter_Sum(x)", "broadcast": "ncclDevKernel_Broadcast_RING(x)"}


@examples(60)
@given(seeds)
def test_kernels_of_graphs_are_the_captured_calls(folder, seed):
    """Each launch of a graph runs its captured calls; if graphs cannot be told apart, their kernels are named and left out."""
    draw = random.Random(seed)
    job = Job(4, {"0": (0, 1, 2, 3)})
    made, number = Recorder(0, job), iter(range(1, 99))
    graphs = [
        [
            Call(draw.choice(list(WORDS)), "0", (0, 1, 2, 3), "Float", 4 * draw.randint(1, 500), number=next(number))
            for _ in range(draw.randint(1, 3))
        ]
        for _ in range(draw.randint(1, 3))
    ]
    plain = [
        Call("all_reduce", "0", (0, 1, 2, 3), "Float", 4 * n, number=next(number)) for n in range(draw.randint(0, 2))
    ]
    for one in plain:
        made.call(one, 40)
    for captured in graphs:
        for one in captured:
            made.capture(one)
    launched = graphs + [draw.choice(graphs) for _ in range(draw.randint(0, 4))]
    draw.shuffle(launched)
    if len(graphs) == 1 and draw.random() < 0.5:  # the recording ends within a launch
        launched.append(graphs[0][: draw.randint(1, len(graphs[0]))])
    for captured in launched:
        made.replay([one for call in captured for one in (draw.randint(5, 90), call)], WORDS)
    path = files(folder, {"a.json": kineto(made.events, information(job, 0))}) / "a.json"
    read = load_workload(path)
    ran = plain + [call for captured in launched for call in captured]
    assert read.compute_s == pytest.approx(sum(e["dur"] for e in made.events if e["name"] == "gemm") * 1e-6)
    assert load_job(path).bound != "upper"
    said = "\n".join(read.notes)
    assert "before the recording began" not in said
    if found(read) != wanted(job, ran):  # no order of the captures fits alone
        assert len(graphs) > 1
        assert "kernels of collectives" in said
        assert "launched by a graph" in said
    if len(graphs) == 1:
        assert f"launched {len(launched)} times, with {len(ran) - len(plain)} kernels" in said


@examples(40)
@given(seeds)
def test_the_kernel_of_a_batch_is_that_of_its_transfers(folder, seed):
    """Calls before an annotation nccl:coalesced, and not those before the last one; their times add up to the kernel's."""
    draw = random.Random(seed)
    job = Job(4, {"0": (0, 1, 2, 3)})
    made, calls, took = Recorder(1, job), [], 0
    for _ in range(draw.randint(1, 4)):
        if draw.random() < 0.5:
            calls.append(Call("all_reduce", "0", (0, 1, 2, 3), "Byte", 4 * draw.randint(1, 99), number=len(calls)))
            made.call(calls[-1], 11)
            took += 11
        others = draw.sample([0, 2, 3], draw.randint(1, 3))
        batch = [
            Call("transfer", "0", draw.choice([(1, peer), (peer, 1)]), "Byte", draw.randint(1, 999)) for peer in others
        ]
        made.batch(batch, 60)
        calls += batch
        took += 60
    read = load_workload(files(folder, {"a.json": kineto(made.events, information(job, 1))}))
    assert found(read) == wanted(job, calls)
    assert sum(call.measured_s for call in read.calls) == pytest.approx(took * 1e-6)
    assert all(call.measured_s for call in read.calls)


@examples(40)
@given(seeds, st.booleans())
def test_gloo_has_ends_and_parts_in_its_operators(folder, seed, late):
    """Transfers, whose groups are not recorded, and all_to_alls of rows; each counts once, whenever Gloo starts it."""
    job = drawn_job(seed)
    kinds = ("all_to_all", "all_reduce")
    job.work = [one for one in job.calls if one.kind == "transfer" or (one.group == "0" and one.kind in kinds)]
    if not job.work:
        return
    about = [information(job, rank) for rank in range(job.world)]
    for rank, info in enumerate(about):  # a rank knows the groups that it is in
        info["pg_config"] = [group for group in info["pg_config"] if rank in group["ranks"]]
    ranks = {f"{r}.json": kineto(gloo(job, r, late), about[r]) for r in range(job.world)}
    read = load_workload(files(folder, ranks))
    assert found(read) == wanted(job)
    assert not any("counterpart" in note for note in read.notes)
    uneven = [call.parts for call in job.calls if call.matrix]
    assert sorted(call.matrix_bytes for call in read.calls if call.matrix_bytes) == sorted(uneven)


@examples(40)
@given(seeds)
def test_annotations_within_operators(folder, seed):
    """Without records the annotations are the calls; operators have whole messages and parts, kernels the times."""
    job = drawn_job(seed)
    job.work = [one for one in job.work if isinstance(one, int) or one.group == "0"]
    if not job.calls:
        return
    texts, took = {}, Counter()
    for rank in range(job.world):
        made = Recorder(rank, job)
        for place, one in enumerate(job.work):
            if isinstance(one, int):
                made.compute(one)
            elif rank in one.ranks:
                made.annotated(one, 30 + 7 * place)
                took[rank] += 30 + 7 * place
        texts[f"{rank}.json"] = kineto(made.events, information(job, rank))
    read = load_workload(files(folder, texts))
    assert found(read) == wanted(job)
    uneven = [call.parts for call in job.calls if call.matrix]
    assert sorted(call.matrix_bytes for call in read.calls if call.matrix_bytes) == sorted(uneven)
    for rank in range(job.world):
        alone = load_workload(folder / f"{rank}.json") if took[rank] else None
        assert alone is None or sum(call.measured_s for call in alone.calls) == pytest.approx(took[rank] * 1e-6)


@examples(30)
@given(seeds)
def test_a_receive_from_any_source_is_that_of_a_send(folder, seed):
    """The operator has no source; the sender's file has both ends."""
    job = drawn_job(seed)
    job.work = [one for one in job.calls if one.group == "0" and one.kind == "transfer"]
    if not job.work:
        return
    texts = {}
    for rank in range(job.world):
        events = gloo(job, rank)
        for one in events:
            if one["name"] == "c10d::recv_":
                one["name"] = "c10d::recv_any_source_"
                one["args"]["Concrete Inputs"] = ["", "", "0"]
        texts[f"{rank}.json"] = kineto(events, information(job, rank))
    read = load_workload(files(folder, texts))
    assert found(read) == wanted(job)
    assert not any("counterpart" in note for note in read.notes)


@examples(30)
@given(seeds, st.booleans())
def test_parts_of_one_side_are_enough(folder, seed, sent):
    """The lists of all senders, or of all receivers; a record without lists has those of its operator."""
    job = drawn_job(seed, transfers=False)
    uneven = [call for call in job.calls if call.matrix]
    job.work = list(uneven)
    if not uneven:
        return
    texts = {}
    for rank in range(job.world):
        events = record(job, rank).events
        for one in [one for one in events if "In split size" in one["args"]]:
            lists = one["args"]["Out split size"], one["args"]["In split size"]
            one["args"] |= {"In split size": "[]", "Out split size": "[]"}
            if sent:
                one["args"]["In split size"] = lists[1]
            elif one["name"] == "record_param_comms":
                values = {"Concrete Inputs": ["", "", "", lists[0], "[]", "False", "-1"]}
                events.append(
                    {**one, "name": "c10d::alltoall_base_", "ts": one["ts"], "dur": one["dur"], "args": values}
                )
        texts[f"{rank}.json"] = kineto(events, information(job, rank))
    read = load_workload(files(folder, texts))
    assert sorted(call.matrix_bytes for call in read.calls) == sorted(call.parts for call in uneven)


@examples(30)
@given(seeds)
def test_an_uneven_exchange_of_one_rank_alone(folder, seed):
    """As large as an even one in which the rank moves as much; what it keeps does not count."""
    job = drawn_job(seed, transfers=False)
    job.work = [call for call in job.calls if call.matrix]
    for rank in range(job.world):
        mine = [call for call in job.work if rank in call.ranks]
        if not mine:
            continue
        text = kineto(record(job, rank).events, information(job, rank))
        read = load_workload(files(folder, {"a.json": text}))
        sizes = []
        for call in mine:
            at, n = call.ranks.index(rank), len(call.ranks)
            sent = sum(call.parts[at]) - call.parts[at][at]
            received = sum(line[at] for line in call.parts) - call.parts[at][at]
            sizes.append(-(-max(sent, received) * n // (n - 1)))
        assert [call.size_bytes for call in read.calls] == sizes


DAMAGED = [
    r'{"ph": "X", "cat": "python_function", "name": "{"a": "b"}(1): f", "ts": 5, "dur": 1, "args": {}}',
    r'{"ph": "X", "cat": "python_function", "name": "C:\path\user.py", "ts": 5, "dur": 1, "args": {"Python id": 3}}',
    '{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": -nan, "dur": 1, "args": {"a": {"b": 1}}}',
    '{"ph": "X", "cat": "cpu_op", "name": "an odd " quote", "ts": 5, "dur": 1, "args": {"x": ["y"]}}',
]


@examples(40)
@given(seeds, st.lists(st.sampled_from(DAMAGED), min_size=1, max_size=4), st.booleans())
def test_damaged_events_are_left_out_and_counted(folder, seed, damaged, last):
    """Wherever they stand, also first or last; the others are read."""
    job = drawn_job(seed)
    rank = job.calls[0].ranks[0]
    events = [json.dumps(one) for one in record(job, rank).events]
    draw = random.Random(seed)
    for one in damaged:
        events.insert(draw.randint(0, len(events)), one)
    about = f'"distributedInfo": {json.dumps(information(job, rank))}'
    listed = '"traceEvents": [\n' + ",\n".join(events) + "\n]"
    text = "{" + ",\n".join([listed, about] if last else [about, listed]) + "}"
    read = load_workload(files(folder, {"a.json": text}))
    assert len(read.calls) == sum(rank in call.ranks for call in job.calls)
    assert sum(int(note.rpartition(": ")[2]) for note in read.notes if "not JSON" in note) == len(damaged)


COMMUNICATE = [
    "void deep_ep::intranode::dispatch<8>(x)",
    "void deep_ep::internode_ll::combine<true>(x)",
    "nvshmemi_transfer_kernel(x)",
    "void mscclpp::allreduce7<float>(x)",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1>(x)",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(x)",
    "void tensorrt_llm::kernels::oneShotAllReduceKernel<float>(x)",
    "void c10d::multimem_one_shot_all_reduce_kernel<float>(x)",
    "moeA2ADispatchKernel(x)",
]
COMPUTES = [
    "gemm",
    "void deep_ep::layout::get_dispatch_layout<256>(x)",
    "reduce_kernel<512>",
    "flash_fwd_kernel",
    "all_gather",
]


@examples(40)
@given(st.lists(st.sampled_from(COMMUNICATE + COMPUTES), min_size=1, max_size=8), st.booleans())
def test_kernels_communicate_or_compute(folder, names, sizes):
    """By their names; those that communicate without a record are left out with their time, or calls if sizes are listed."""
    job = Job(2, {"0": (0, 1)})
    made = Recorder(0, job)
    made.call(Call("all_reduce", "0", (0, 1), "Byte", 10, number=1), 9)
    for place, name in enumerate(names):
        made.launch(name, COMPUTE, 10 + place, {})
    here = files(folder, {"a.json": kineto(made.events, information(job, 0))})
    listed = here.parent / "sizes.toml"
    rows = [f'[[kernels]]\nname = "{name}"\ncollective = "all_reduce"\nsize = 64\n' for name in COMMUNICATE]
    listed.write_text("\n".join(rows))
    read = load_workload(here, kernel_sizes=listed if sizes else None)
    computed = sum(10 + place for place, name in enumerate(names) if name in COMPUTES)
    assert read.compute_s == pytest.approx(computed * 1e-6)
    lost = [10 + place for place, name in enumerate(names) if name in COMMUNICATE]
    assert len(read.calls) == 1 + sizes * len(lost)
    assert sum(call.measured_s for call in read.calls) == pytest.approx((9 + sizes * sum(lost)) * 1e-6)
    notes = [note for note in read.notes if "without a size" in note]
    assert sum(int(note.split()[2]) for note in notes) == (0 if sizes else len(lost))
    assert load_job(here).bound != "upper"


@examples(40)
@given(seeds, st.lists(st.integers(0, 4), min_size=2, max_size=2))
def test_transfers_of_recordings_that_begin_late(folder, seed, first):
    """Both ranks of a group of two have the same numbers."""
    draw = random.Random(seed)
    job = Job(4, {"0": (0, 1, 2, 3), "1": (1, 3)})
    job.work = [
        Call("transfer", "1", draw.choice([(1, 3), (3, 1)]), "Byte", draw.choice([10, 20]), number=n + 1)
        for n in range(draw.randint(1, 8))
    ]
    kept = job.work[min(first) :]
    if kept:
        dumps = {
            f"fr_{rank}.json": flight_recorder(job, rank, start) for rank, start in zip((1, 3), first, strict=True)
        }
        read = load_workload(files(folder, {name: json.dumps(one) for name, one in dumps.items()}), num_ranks=4)
        assert found(read) == wanted(job, kept)
        notes = [int(note.split()[-2]) for note in read.notes if "without a counterpart" in note]
        assert sum(notes) == min(max(first), len(job.work)) - min(first)


@examples(40)
@given(seeds, st.integers(0, 3))
def test_transfers_of_complete_recordings_are_matched_in_order(folder, seed, others):
    """In a larger group each rank numbers its own transfers, those with other ranks too."""
    draw = random.Random(seed)
    job = Job(4, {"0": (0, 1, 2, 3)})
    job.work = [Call("transfer", "0", (2, 1), "Byte", 5, number=n + 1) for n in range(others)]
    job.work += [Call("transfer", "0", draw.choice([(0, 2), (2, 0)]), "Byte", draw.choice([10, 20])) for _ in range(6)]
    texts = {}
    for rank in (0, 2):  # rank 1 has no file
        dump = flight_recorder(job, rank)
        for number, entry in enumerate(dump["entries"], 1):
            entry["p2p_seq_id"] = number
        texts[f"fr_{rank}.json"] = json.dumps(dump)
    assert found(load_workload(files(folder, texts), num_ranks=4)) == wanted(job)


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (["fr_0.json", "fr_1.json"], [0, 1]),
        (["trace_rank_host-02_1", "trace_rank_host-03_0"], [1, 0]),
        (["rank1_host7.json", "rank0_host9.json"], [1, 0]),
        (["run5_1_node8.json", "run5_0_node4.json"], [1, 0]),
        (["a7.json", "a9.json"], [7, 9]),
    ],
)
def test_ranks_by_the_number_that_differs(folder, names, ranks):
    """That behind "rank", else one that counts from 0, else the last; each rank sends its number of bytes."""
    job = Job(10, {"0": tuple(range(10))})
    job.work = [Call("transfer", "0", (rank, 5), "Byte", 100 + rank, number=1) for rank in ranks]
    texts = {}
    for name, rank in zip(names, ranks, strict=True):
        text = flight_recorder(job, rank) if "fr" in name or "." not in name else None
        events = record(job, rank).events
        texts[name] = json.dumps(text) if text else kineto(events, {**information(job, rank), "rank": None})
    read = load_workload(files(folder, texts))
    assert sorted((call.size_bytes, call.ranks[0]) for call in read.calls) == sorted((100 + r, r) for r in ranks)
