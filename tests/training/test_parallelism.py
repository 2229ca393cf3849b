"""ZeRO, sequence and context parallelism, pipeline schedules: bytes, memory and times against the papers' formulas."""

from collections import Counter
from dataclasses import replace
from itertools import product
from math import factorial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.training.test_partition import settled

from opticcl.errors import WorkloadError
from opticcl.ir.task_graph import TaskGraph
from opticcl.training.iteration import simulate_iteration
from opticcl.training.models import model
from opticcl.training.partition import partition
from opticcl.training.partition.fit import memory_needed
from opticcl.training.partition.layout import Layout, layouts
from opticcl.training.partition.pipelined import order_of_device, pipelined_tasks
from opticcl.training.partition.shares import memory_of, slowest_stage, stage_layers
from opticcl.training.train import train

GPT = "transformer:layers=4,hidden=64,heads=8,sequence=32,vocabulary=0"
EVEN = "transformer:layers=16,hidden=64,heads=4,sequence=64,vocabulary=0"
MOE = "moe:layers=2,hidden=16,heads=4,experts=8,sequence=8,vocabulary=0"


def sent(job, group=None):
    """Bytes by collective, of one kind of group."""
    found = Counter()
    for task in job.tasks:
        if task.communicates and group in (None, task.group):
            found[task.collective] += task.size_bytes
    return found


def test_gradients_are_sent_before_what_follows_their_layer():
    """In the list of tasks, which decides with `order="job"`: computation, its gradients, then the sum of input gradients."""
    names = [task.name for task in partition(GPT, 8, tensor=2, local_batch=1).tasks]
    at = names.index("block4.feed_forward backward")
    assert names[at + 1 : at + 8] == [
        *(f"block4.feed_forward gradient {n}" for n in range(6, 0, -1)),
        "block4.feed_forward input gradient",
    ]


# --- ZeRO -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("micro_batches", [1, 4])
def test_zero_moves_what_its_paper_counts(micro_batches):
    """An all_reduce is a reduce_scatter and an all_gather: stages 1 and 2 move the same, stage 3 half as much again.

    Rajbhandari et al. 2020, section 7; with several micro-batches stages 2 and 3 move theirs for each.
    """
    jobs = [partition(GPT, 8, zero=z, local_batch=4, micro_batches=micro_batches) for z in range(4)]
    gradients = 2 * model(GPT).parameters
    assert sent(jobs[0]) == {"all_reduce": gradients}
    assert sent(jobs[1]) == {"reduce_scatter": gradients, "all_gather": gradients}
    assert sent(jobs[2]) == {"reduce_scatter": micro_batches * gradients, "all_gather": gradients}
    assert sent(jobs[3]) == {"reduce_scatter": micro_batches * gradients, "all_gather": 2 * micro_batches * gradients}


def test_zero_divides_the_state():
    """7.5e9 parameters on 64 devices with Adam in half precision: 120, 31.4, 16.6 and 1.9 GB.

    Rajbhandari et al. 2020, figure 1; stage 3 has the parameters of two layers beside it.
    """
    large = "transformer:layers=36,hidden=4096,heads=32,sequence=1,vocabulary=65000"
    parameters = model(large).parameters
    assert parameters == pytest.approx(7.5e9, rel=0.01)
    state = [memory_needed(model(large), settled(large, 64, zero=z, local_batch=1)).state_bytes for z in range(4)]
    layers = sorted(layer.parameters for layer in model(large).layers)
    for zero, printed_gb in enumerate((120, 31.4, 16.6, 1.9)):
        gathered = 2 * sum(layers[-2:]) if zero == 3 else 0
        assert (state[zero] - gathered) / 1e9 == pytest.approx(printed_gb * parameters / 7.5e9, rel=0.005, abs=0.05)


def test_zero_with_experts():
    """Experts are divided among their own copies, all else among all devices."""
    job = partition(MOE, 8, expert=4, zero=3, local_batch=1)
    assert {name: list(group.ranks) for name, group in job.groups.items()} == {
        "expert": [0, 1, 2, 3],
        "data": list(range(8)),
        "expert_data": [0, 4],
    }
    inside = sum(
        size // 4
        for layer in model(MOE).layers
        if layer.kind == "experts"
        for size, part in zip(layer.tensors, layer.split, strict=True)
        if part
    )
    assert sent(job, "expert_data") == {"all_gather": 2 * 2 * inside, "reduce_scatter": 2 * inside}


def test_zero_3_gathers_while_the_layer_before_computes():
    """As the step with prefetched all-gathers: two gathers exposed at the ends, the others behind computation."""
    job = partition(EVEN, 8, zero=3, optimiser="none", local_batch=1)
    computation = [task for task in job.tasks if not task.communicates]
    took = {"all_gather": computation[0].compute_s / 2, "reduce_scatter": computation[0].compute_s / 2}
    iteration = simulate_iteration(job, lambda collective, group, size: took[collective])
    assert iteration.exposed_s == pytest.approx(2 * took["all_gather"], rel=0.01)
    slow = simulate_iteration(job, lambda collective, group, size: 10 * took[collective])
    gathers = sum(task.collective == "all_gather" for task in job.tasks)
    assert slow.total_s > gathers * 10 * took["all_gather"]


# --- sequence and context ---------------------------------------------------------------------------------------------


def test_sequence_parallelism_moves_the_same_and_keeps_less():
    """34 s b h / t bytes a layer and the quadratic part instead of s b h (10 + 24 / t): Korthikanti et al. 2022, table 2."""
    plain = partition(GPT, 4, tensor=4, local_batch=2)
    divided = partition(GPT, 4, tensor=4, local_batch=2, sequence_parallel=True)
    whole = sent(plain, "tensor")["all_reduce"]
    assert sent(divided, "tensor") == {"reduce_scatter": whole, "all_gather": whole}
    tokens, hidden, heads, samples, layers = 32, 64, 8, 2, 4
    square = 5 * heads * tokens**2 * samples / 4
    kept = [
        memory_needed(model(GPT), settled(GPT, 4, tensor=4, local_batch=2, sequence_parallel=s)).activation_bytes
        for s in (False, True)
    ]
    assert kept[1] == layers * (34 * tokens * samples * hidden / 4 + square)
    assert kept[0] == layers * (tokens * samples * hidden * (10 + 24 / 4) + square)


def test_context_parallelism_divides_tokens():
    """Work and activations are divided, parameters copied; keys and values are gathered, their gradients returned."""
    alone = partition(GPT, 1, local_batch=4, optimiser="none")
    job = partition(GPT, 4, context=4, local_batch=4, optimiser="none")
    assert job.samples == 4
    assert job.model_operations == alone.model_operations / 4
    assert job.compute_s == pytest.approx(alone.compute_s / 4, rel=0.5)  # parameters are read as often
    keys = 4 * 4 * 2 * (2 * 32 * 64)  # samples, layers, bytes, keys and values of a sample
    assert sent(job, "context") == {"all_gather": 2 * keys, "reduce_scatter": keys}
    assert sent(job, "data") == {"all_reduce": 2 * model(GPT).parameters}
    assert list(job.groups["context"].ranks) == list(job.groups["data"].ranks) == [0, 1, 2, 3]
    grouped = partition("llama3:sequence=64", 8, tensor=4, context=2, local_batch=1, fit=False)
    each = 2 * 64 * 2 * 8 * 128 // 4  # bytes, tokens, keys and values of 8 heads, a fourth of them
    assert sent(grouped, "context") == {"all_gather": 2 * 32 * each, "reduce_scatter": 32 * each}


@examples(60)
@given(
    degrees=st.tuples(*(st.sampled_from((1, 2, 4)) for _ in range(4)), st.sampled_from((1, 2, 3))),
    zero=st.integers(0, 3),
)
def test_groups_cover_all_ranks(degrees, zero):
    """Every kind of group has the device, its size, and as many groups as ranks / size; expert copies with context too."""
    tensor, pipeline, context, expert, data = degrees
    n = tensor * pipeline * context * expert * data
    try:
        layout = settled(MOE, n, tensor=tensor, pipeline=pipeline, context=context, expert=expert, data=data).layout
    except WorkloadError:
        assume(False)
    groups = replace(layout, stage=pipeline - 1).groups()
    sizes = {"tensor": tensor, "context": context, "expert": expert, "data": context * expert * data}
    sizes["expert_data"] = context * data if expert > 1 else 1
    assert {name: len(group.ranks) for name, group in groups.items() if name in sizes} == {
        name: size for name, size in sizes.items() if size > 1
    }
    for name in sizes.keys() & groups.keys():
        ranks = groups[name].ranks
        assert (pipeline - 1) * tensor in ranks
        assert len(set(ranks)) == len(ranks)
        assert max(ranks) < n == len(ranks) * groups[name].num_groups


@examples(40)
@given(
    degrees=st.tuples(*(st.sampled_from((1, 2, 3)) for _ in range(5))),
    stage=st.integers(0, 2),
    order=st.permutations(range(5)),
)
def test_ranks_in_another_order(degrees, stage, order):
    """Every group has the coordinates that it had, at rank = sum of coordinate x product of the degrees before it."""
    names = ("tensor", "pipeline", "context", "expert", "data")
    sides = dict(zip(names, degrees, strict=True))
    kind = Layout(**sides, stage=min(stage, sides["pipeline"] - 1))
    job = TaskGraph("job", "", kind.num_ranks, (), kind.groups(), device_ranks=(kind.rank,), degrees=kind.degrees)

    def rank_of(place, along):
        stride = dict(zip(along, np.cumprod([1, *(sides[name] for name in along)]), strict=False))
        return sum(at * stride[name] for name, at in zip(names, place, strict=True))

    along = [names[i] for i in order]
    places = list(product(*map(range, degrees)))
    new_of = {rank_of(place, names): rank_of(place, along) for place in places}
    (moved,) = layouts(job, ",".join(along))
    assert moved.layout.split(",") == ([name for name in along if sides[name] > 1] or [""])
    assert moved.device_ranks == (new_of[kind.rank],)
    for name, group in job.groups.items():
        again = moved.groups[name]
        assert set(again.ranks) == {new_of[rank] for rank in group.ranks}
        assert again.num_groups == group.num_groups
        assert list(again.ranks) == sorted(again.ranks, reverse=name == "backward")
    every = layouts(job, "auto")
    assert len({one.layout for one in every}) == len(every) == factorial(sum(one > 1 for one in degrees))


# --- pipelines --------------------------------------------------------------------------------------------------------


def free(*_):
    """A network without cost."""
    return 0.0


@pytest.mark.parametrize(("stages", "count"), [(2, 2), (4, 8), (4, 4), (8, 16)])
def test_the_bubble_is_that_of_the_papers(stages, count):
    """1F1B (P - 1)(F + B), interleaved that / v, ZB-H1 (P - 1)(F + I - W): Narayanan et al. 2021, Qi et al. 2023."""
    options = {"pipeline": stages, "micro_batches": count, "local_batch": count, "optimiser": "none"}
    for more, share in (
        ({}, 1),
        ({"schedule": "interleaved", "virtual_stages": 2}, 1 / 2),
        ({"schedule": "interleaved", "virtual_stages": 4}, 1 / 4),
        ({"schedule": "zero_bubble"}, 1 / 3),  # F = I = W
    ):
        if more.get("virtual_stages", 1) * stages > 16:  # a part is a block or more
            continue
        job = partition(EVEN, stages, **options, **more)
        iteration = simulate_iteration(job, free)
        one = iteration.compute_s / count  # a micro-batch on a device
        assert iteration.bubble_s == pytest.approx((stages - 1) * one * share), more
        assert iteration.total_s == pytest.approx(iteration.compute_s + iteration.bubble_s)
        assert job.operations == pytest.approx(job.model_operations)


def test_all_stages_simulated_take_what_the_chain_does():
    """1F1B as all stages with transfers that cost nothing, and as the chain of the slowest stage."""
    choices = settled(EVEN, 4, pipeline=4, micro_batches=8, local_batch=8, optimiser="none")
    choices, stages = slowest_stage(model(EVEN), choices)
    tasks, groups = pipelined_tasks(stages, choices)
    chain = partition(EVEN, 4, pipeline=4, micro_batches=8, local_batch=8, optimiser="none")
    whole = replace(chain, tasks=tasks, groups=groups, device_ranks=(0, 1, 2, 3))
    assert simulate_iteration(whole, free).total_s == pytest.approx(simulate_iteration(chain, free).total_s)


@examples(25)
@given(
    stages=st.integers(2, 5),
    turns=st.integers(1, 4),
    parts=st.integers(1, 3),
    schedule=st.sampled_from(["interleaved", "zero_bubble"]),
)
def test_every_pass_is_made_once_and_in_order(stages, turns, parts, schedule):
    """Forward before backward before the weights, and no more micro-batches in flight than memory is counted for."""
    given = {"virtual_stages": parts} if schedule == "interleaved" else {}
    count = stages * turns
    choices = settled(EVEN, stages, pipeline=stages, micro_batches=count, local_batch=count, schedule=schedule, **given)
    for stage in range(stages):
        order = list(order_of_device(choices, stage))
        kinds = "FB" if schedule == "interleaved" else "FIW"
        own = range(stage, stages * choices.virtual_stages, stages)
        assert Counter(order) == Counter((k, m, p) for k in kinds for m in range(count) for p in own)
        in_flight = most = 0
        for place, (kind, number, part) in enumerate(order):
            before = kinds[: kinds.index(kind)]
            assert all((other, number, part) in order[:place] for other in before)
            in_flight += (kind == "F") - (kind == kinds[-1])
            most = max(most, in_flight)
        here = replace(choices, layout=replace(choices.layout, stage=stage))
        assert most <= here.in_flight * choices.virtual_stages + 1e-9
    job = partition(EVEN, stages, pipeline=stages, micro_batches=count, local_batch=count, schedule=schedule, **given)
    assert len(job.device_ranks) == stages
    assert simulate_iteration(job, free).total_s >= job.compute_s


def test_a_pipeline_of_all_kinds_is_trained():
    """Tensor, context, data and pipeline together on a fabric; every call is counted once for each of its groups."""
    options = {"tensor": 2, "pipeline": 2, "context": 2, "zero": 1, "sequence_parallel": True, "local_batch": 4}
    job = partition(GPT, 16, micro_batches=4, schedule="interleaved", **options)
    found = train(job, "ideal")
    assert found.rows[0].verified
    assert 0 < found.rows[0].model_utilisation < 0.4
    chain = partition(GPT, 16, micro_batches=4, **options)
    for collective in ("all_gather", "reduce_scatter"):
        own = [
            [t for t in j.tasks if t.collective == collective and not t.name.startswith("wait: ")] for j in (job, chain)
        ]
        whole, slowest = (
            sum(t.size_bytes * j.groups[t.group].num_groups for t in tasks)
            for tasks, j in zip(own, (job, chain), strict=True)
        )
        assert whole == pytest.approx(slowest, rel=0.01)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"zero": 4}, "zero=4 is not 0, 1"),
        ({"zero": True}, "zero=True is not a whole number"),
        ({"context": 3}, "context=3 does not"),
        ({"context": 0}, "context=0 is not positive"),
        ({"sequence_parallel": True}, "give tensor=2 or more"),
        ({"schedule": "gpipe"}, "schedule='gpipe' is not one of 1f1b, interleaved, zero_bubble"),
        ({"schedule": "interleaved"}, "there is one stage"),
        ({"pipeline": 2, "virtual_stages": 2}, "only schedule=interleaved"),
        ({"pipeline": 2, "schedule": "interleaved", "virtual_stages": 5}, "try virtual_stages=4"),
        ({"pipeline": 2, "schedule": "interleaved", "micro_batches": 1}, "try micro_batches=2"),
        ({"pipeline": 2, "schedule": "interleaved", "local_batch": 1}, "a copy has 1 samples"),
    ],
)
def test_what_does_not_divide_is_refused(given, said):
    """With what to try."""
    with pytest.raises(WorkloadError, match=said):
        partition(GPT, 4, **given)


@pytest.mark.parametrize(
    ("name", "given"), [("vgg16", {"context": 2}), ("dlrm", {"zero": 1}), ("dlrm", {"context": 2})]
)
def test_models_without_attention_and_with_tables(name, given):
    """Have no tokens to divide, and tables that only expert divides."""
    with pytest.raises(WorkloadError, match=r"no attention|has tables"):
        partition(name, 4, **given)


def test_zero_makes_a_model_fit(opticcl):
    """The options of the command line; a model that does not fit is answered with what would."""
    options = ["train", "-m", "llama3:size=70b", "-n", "64", "-f", "ideal", "--device", "h100", "--tensor", "8"]
    refused = opticcl(*options, "--local-batch", "1", "--activations", "recomputed")
    assert (refused.returncode, "zero=1 would fit" in refused.stderr) == (2, True)
    done = opticcl(
        *options, "--local-batch", "1", "--activations", "recomputed", "--zero", "1", "--sequence-parallel", "--notes"
    )
    assert done.returncode == 0
    assert "ZeRO-1: the optimiser's state divided among 8 devices" in done.stdout
    assert "MFU" in done.stdout.replace("\n", " ")


def test_memory_of_a_stage_in_flight():
    """P micro-batches at the first stage of 1F1B, fewer at later ones; v parts keep more."""
    choices = settled(EVEN, 4, pipeline=4, micro_batches=8, local_batch=8)
    layers = stage_layers(model(EVEN), choices)[0]
    kept = [
        memory_of(layers, replace(choices, layout=replace(choices.layout, stage=s))).activation_bytes for s in range(4)
    ]
    assert [k / kept[3] for k in kept] == pytest.approx([4, 3, 2, 1])
    assert replace(choices, schedule="zero_bubble").in_flight == 4
    assert replace(choices, schedule="interleaved", virtual_stages=2).in_flight == (2 * 3 + 4 + 1) / 2
