"""Partitioned models: what is conserved, the sizes of messages, groups of ranks, refusals; RAMP's tables 9 and 10."""

import math
import time
from dataclasses import MISSING, fields, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import OpticclError, ParameterError, WorkloadError
from opticcl.papers.ramp_models import DLRM_DEVICES, ramp_table9, ramp_table10
from opticcl.training.model import Layer, Model
from opticcl.training.models import model
from opticcl.training.partition import partition
from opticcl.training.partition.layout import Layout
from opticcl.training.partition.resolve import PartitionOptions, resolve
from opticcl.training.partition.shares import held, stage_layers
from opticcl.training.partition.tables import table_share
from opticcl.training.partition.tasks import WAIT
from opticcl.training.target import CROSS_ENTROPIES

SMALL = "transformer:layers=4,hidden=48,heads=12,sequence=8,vocabulary=50"
EXPERTS = "moe:layers=4,hidden=16,heads=4,experts=12,sequence=8,vocabulary=0"
PARALLEL = (1, 2, 3, 4, 6)


def calls(job, collective, group):
    """Tasks that call a collective in a group."""
    return [task for task in job.tasks if (task.collective, task.group) == (collective, group)]


def settled(name, num_nodes, **given):
    """The choices that `partition` makes."""
    empty = {f.name: None if f.default is MISSING else f.default for f in fields(PartitionOptions)}
    asked = PartitionOptions(**{**empty, "tensor": 1, "pipeline": 1, "device": "a100", "activations": "kept", **given})
    return resolve(model(name), num_nodes, asked)


# --- data parallel ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "megabytes", "largest"),
    [  # checked notes on ODDL, section 1.7
        ("resnet50", 102.23, 9.44),
        ("vgg16", 553.43, 411.04),
        ("vgg19", 574.67, 411.04),
        ("lenet:variant=imagenet", 21.97, 21.57),
    ],
)
def test_data_parallel_sums_every_gradient_once(name, megabytes, largest):
    """One fusible all_reduce a tensor, last layer first, in single precision."""
    made = model(name)
    job = partition(name, 1024)
    gradients = calls(job, "all_reduce", "data")
    assert len(gradients) == sum(len(layer.tensors) for layer in made.layers)
    assert job.total_bytes == 4 * made.parameters
    assert round(job.total_bytes / 1e6, 2) == megabytes
    assert round(max(task.size_bytes for task in gradients) / 1e6, 2) == largest
    assert all(task.fusible and task.phase == "backward" for task in gradients)
    sizes = [size for layer in made.layers for size in layer.tensors]
    assert [task.size_bytes // 4 for task in gradients] == sizes[::-1]
    assert job.groups["data"].ranks == range(1024)
    assert job.samples == 16 * 1024


def fused(job, most):
    """Messages if buffers of at most `most` bytes fill in the order of the gradients; a larger tensor goes alone."""
    count = filled = 0
    for task in job.tasks:
        if task.fusible and task.size_bytes > most:
            count, filled = count + 1 + (filled > 0), 0
        elif task.fusible and filled + task.size_bytes > most:
            count, filled = count + 1, task.size_bytes
        elif task.fusible:
            filled += task.size_bytes
    return count + (filled > 0)


@pytest.mark.parametrize(
    ("name", "counts"),
    [("vgg16", (12, 6, 10)), ("vgg19", (14, 7, 12)), ("resnet50", (8, 4, 8)), ("lenet:variant=imagenet", (3, 1, 3))],
)
def test_static_fusion_gives_the_known_number_of_messages(name, counts):
    """Checked notes on ODDL, section 1.7: at 16 and 32 MB and 16 MiB. It depends on the order of the gradients."""
    job = partition(name, 4)
    assert (fused(job, 16e6), fused(job, 32e6), fused(job, 16 * 2**20))[: len(counts)] == counts


def test_a_gradient_waits_for_its_layer_alone():
    """Backward computation goes on while gradients travel; the update waits for all."""
    job = partition("vgg16", 8)
    for task in calls(job, "all_reduce", "data"):
        (before,) = task.after
        assert job.tasks[before].name == f"{task.name.partition(' ')[0]} backward"
    update = job.tasks[-1]
    assert update.phase == "update"
    assert len(update.after) == 32 + 1


@pytest.mark.parametrize("nodes", [1, 2, 7])
def test_few_devices(nodes):
    """One device sends nothing; any number divides a batch that is made for it."""
    job = partition("lenet", nodes)
    assert (job.total_bytes > 0) == (nodes > 1)
    assert bool(job.groups) == (nodes > 1)
    assert job.samples == 16 * nodes


def test_computation_does_not_depend_on_the_number_of_copies():
    """Each does its own samples; twice the samples or half the efficiency never take less."""
    alone = partition("resnet50", 1).compute_s
    assert partition("resnet50", 512).compute_s == pytest.approx(alone)
    assert partition("resnet50", 1, local_batch=32).compute_s > 1.5 * alone
    assert partition("resnet50", 1, efficiency=0.1).compute_s > alone


def test_operations_are_three_forward_passes():
    """Forward, and gradients by input and by parameters; a fourth where activations are recomputed."""
    forward = 2 * 15_470_264_320 * 16
    assert partition("vgg16", 4).operations == 3 * forward
    assert partition("vgg16", 4, activations="recomputed").operations == 4 * forward
    # At the rate of a 2080 Ti that is 94.1 ms (checked notes on ODDL, 4.1) at 1.17 of its peak: Winograd's convolutions.
    assert partition("vgg16", 4, device="2080_ti", efficiency=1.17).compute_s == pytest.approx(0.0941, rel=0.15)


# --- conservation -----------------------------------------------------------------------------------------------------


@examples(60)
@given(
    name=st.sampled_from([SMALL, EXPERTS, "bert:size=base,sequence=4"]),
    tensor=st.sampled_from(PARALLEL),
    pipeline=st.sampled_from(PARALLEL),
    expert=st.sampled_from(PARALLEL),
    data=st.sampled_from((1, 2, 5)),
)
def test_parameters_are_conserved(name, tensor, pipeline, expert, data):
    """Over all devices, with copies counted once, there are as many parameters as the model has."""
    made = model(name)
    try:
        choices = settled(name, tensor * pipeline * expert * data, tensor=tensor, pipeline=pipeline, expert=expert)
    except WorkloadError:
        assume(False)
    stages = stage_layers(made, choices)
    assert len(stages) == pipeline
    assert all(stages)
    assert tuple(layer for stage in stages for layer in stage) == made.layers
    found = 0
    for layer in made.layers:
        split = layer.split or (False,) * len(layer.tensors)
        parts = [held(layer, choices.layout, rank) for rank in range(tensor)]
        for number, part in enumerate(split):
            copies = expert if layer.kind == "experts" and part else 1
            cut = part and any(one != layer.tensors for one in parts)
            sizes = [one[number] for one in parts] if cut else [layer.tensors[number]]
            found += sum(sizes) * (copies if cut else 1)
    assert found == made.parameters


@examples(40)
@given(
    name=st.sampled_from([SMALL, EXPERTS]),
    tensor=st.sampled_from(PARALLEL),
    pipeline=st.sampled_from(PARALLEL),
    expert=st.sampled_from(PARALLEL),
    data=st.sampled_from((1, 2, 5)),
    local=st.integers(1, 12),
    micro=st.sampled_from([None, 1, 2, 3]),
    activations=st.sampled_from(["kept", "recomputed", "offloaded"]),
)
def test_every_job_is_whole(name, tensor, pipeline, expert, data, local, micro, activations):
    """Groups are ranges of the right size that hold the device; gradients are those of its parameters; work adds up."""
    made, nodes = model(name), tensor * pipeline * expert * data
    given = {"tensor": tensor, "pipeline": pipeline, "expert": expert, "local_batch": local, "micro_batches": micro}
    try:
        job = partition(name, nodes, activations=activations, **given)
    except WorkloadError:
        assume(False)
    choices = settled(name, nodes, **given, activations=activations)
    stage = next((i for i, n in enumerate(job.notes) if n.startswith("pipeline")), None)
    stage = 0 if stage is None else int(job.notes[stage].split()[2]) - 1
    sizes = {
        "tensor": tensor,
        "expert": expert,
        "data": expert * data,
        "expert_data": data,
        "forward": 2,
        "backward": 2,
    }
    for key, group in job.groups.items():
        assert isinstance(group.ranks, range)
        assert len(group.ranks) == sizes[key]
        assert 0 <= min(group.ranks) <= max(group.ranks) < nodes
        if key not in ("forward", "backward"):
            assert stage * tensor in group.ranks
            assert group.num_groups * len(group.ranks) == nodes
    layers = stage_layers(made, choices)[stage]
    gradients = sum(task.size_bytes for task in job.tasks if task.fusible)
    if data > 1:
        layout = replace(choices.layout, stage=stage)
        assert gradients == 2 * sum(sum(held(layer, layout)) for layer in layers)
    own = [task for task in job.tasks if not task.name.startswith(WAIT) and task.compute_s]
    forward = sum(task.compute_s for task in own if task.phase == "forward")
    backward = sum(task.compute_s for task in own if task.phase == "backward")
    assert backward == pytest.approx((2 if activations == "kept" else 3) * forward)
    sent = [task for task in job.tasks if task.collective == "send_recv"]
    assert bool(sent) == (pipeline > 1)


# --- tensor, pipeline, expert -----------------------------------------------------------------------------------------


def test_megatron_sums_twice_a_block_and_pass():
    """Shoeybi et al. 2019, section 3: attention and feed-forward, both ways; the embedding and the output add one."""
    job = partition(SMALL, 8, tensor=4, local_batch=3)
    sums = calls(job, "all_reduce", "tensor")
    assert len(sums) == 4 * 4 + 2
    assert {task.size_bytes for task in sums} == {3 * 8 * 48 * 2}
    assert job.groups["tensor"].ranks == range(4)
    assert job.groups["data"].ranks == range(0, 8, 4)
    again = partition(SMALL, 8, tensor=4, local_batch=3, activations="recomputed")
    assert len(calls(again, "all_reduce", "tensor")) == 4 * 6 + 3


def test_tensor_parallel_divides_the_work():
    """Operations a device are a quarter; parameters a device a quarter of what is divided."""
    one, four = partition(SMALL, 4, local_batch=2), partition(SMALL, 4, tensor=4, local_batch=2)
    assert four.operations == pytest.approx(one.operations / 4)


@pytest.mark.parametrize("micro", [1, 2, 4, 12])
@pytest.mark.parametrize("pipeline", [2, 3, 5])
def test_a_pipeline_takes_one_micro_batch_through_all_and_the_rest_through_the_slowest(pipeline, micro):
    """(M - 1) x the slowest stage + the sum of all stages (GPipe), and one transfer a border and way for those waited for."""
    job = partition(SMALL, pipeline, pipeline=pipeline, local_batch=12, micro_batches=micro, optimiser="none")
    choices = settled(SMALL, pipeline, pipeline=pipeline, local_batch=12, micro_batches=micro)
    from opticcl.training.partition.shares import seconds

    costs = [sum(sum(seconds(layer, choices)) for layer in stage) for stage in stage_layers(model(SMALL), choices)]
    assert job.compute_s == pytest.approx((micro - 1) * max(costs) + sum(costs))
    waited = sum(task.compute_s for task in job.tasks if task.name.startswith(WAIT))
    assert waited == pytest.approx(sum(costs) - max(costs))
    sent = [task for task in job.tasks if task.collective == "send_recv"]
    assert {task.size_bytes for task in sent} == {12 // micro * 8 * 48 * 2}
    before, after = costs.index(max(costs)), pipeline - 1 - costs.index(max(costs))
    own = micro * ((before > 0) + (after > 0))
    # Those that bring it the first micro-batch, take that on and back again, and take the last one to the first stage.
    assert len(sent) == own + before + max(after - 1, 0) + after + max(before - 1, 0)


def test_stages_are_cut_where_the_slowest_is_fastest():
    """Against all cuts of a small model."""
    choices = settled("vgg16", 3, pipeline=3, local_batch=4)
    from opticcl.training.partition.shares import seconds

    made = model("vgg16")
    costs = [sum(seconds(layer, choices)) for layer in made.layers]
    n = len(costs)
    best = min(max(sum(costs[:a]), sum(costs[a:b]), sum(costs[b:])) for a in range(1, n - 1) for b in range(a + 1, n))
    assert max(sum(sum(seconds(layer, choices)) for layer in s) for s in stage_layers(made, choices)) == pytest.approx(
        best
    )


def test_experts_exchange_tokens_twice_a_pass():
    """All_to_alls of all tokens of a device; gradients of experts travel among their own copies."""
    job = partition(EXPERTS, 12, expert=6, local_batch=2)
    assert len(calls(job, "all_to_all", "expert")) == 2 * 4  # two layers of experts, two each way
    assert {task.size_bytes for task in calls(job, "all_to_all", "expert")} == {2 * 8 * 16 * 2}
    assert job.groups["expert"].ranks == range(6)
    assert job.groups["expert_data"].ranks == range(0, 12, 6)
    experts = 2 * 12 * (16 * 64 + 64 + 64 * 16 + 16)
    assert sum(task.size_bytes for task in calls(job, "all_reduce", "expert_data")) == 2 * experts // 6
    whole = model(EXPERTS).parameters - experts
    assert sum(task.size_bytes for task in calls(job, "all_reduce", "data")) == 2 * whole


def test_experts_choose_their_degree_if_none_is_given():
    """As many devices as divide experts and devices."""
    assert len(partition(EXPERTS, 8).groups["expert"].ranks) == 4
    assert "expert" not in partition(EXPERTS, 5).groups


# --- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("devices", [1, 2, 4, 8, 16, 64, 8 * 64])
def test_tables_are_divided_whole(devices):
    """Parameters and columns over all devices are those of all tables."""
    made = model("dlrm")
    shares = [table_share(made, devices, i) for i in range(devices)]
    tables = [layer for layer in made.layers if layer.kind == "table"]
    assert sum(share.parameters for share in shares) == sum(table.parameters for table in tables)
    assert sum(share.columns for share in shares) == 8 * 64


def test_tables_send_what_was_looked_up():
    """Columns of the device x samples of the group, there and back; dense gradients go to all."""
    job = partition("dlrm", 32, expert=16, batch=256)
    columns = 8 * 64 // 16
    assert [task.size_bytes for task in calls(job, "all_to_all", "expert")] == [columns * 128 * 4] * 2
    dense = sum(layer.parameters for layer in model("dlrm").layers if layer.kind != "table")
    assert sum(task.size_bytes for task in calls(job, "all_reduce", "data")) == 4 * dense
    (rows,) = calls(job, "all_gather", "expert_data")
    assert rows.size_bytes == 2 * (100 * 32 * 128) * 4  # two copies, 100 look-ups, 32 columns, 128 samples


def test_bottom_layers_run_while_rows_travel():
    """Only the interaction waits for the tables."""
    job = partition("dlrm", 8)
    there = next(i for i, task in enumerate(job.tasks) if task.collective == "all_to_all")
    waiting = [task.name for task in job.tasks if there in task.after]
    assert waiting == ["interaction forward"]


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "nodes", "given", "said"),
    [
        ("vgg16", 0, {}, "0 devices"),
        ("vgg16", 64, {"tensor": 4}, "none of its layers can be divided"),
        ("vgg16", 64, {"expert": 4}, "neither experts nor tables; try data"),
        ("vgg16", 64, {"pipeline": 4, "data": 3}, "pipeline=4 x data=3 is 12, which does not make 64 devices"),
        ("vgg16", 64, {"pipeline": 32, "local_batch": 32}, "it has 16 layers; try pipeline=16 at most"),
        ("vgg16", 6, {"data": 0}, "data=0 is not positive"),
        (SMALL, 10, {"tensor": 5}, "tensor=5 does not divide the 12 heads of block1.attention; try tensor=2"),
        (SMALL, 10, {"tensor": 4}, "does not divide 10 devices; try 8 devices"),
        (EXPERTS, 10, {"expert": 5}, "expert=5 does not divide the 12 experts of block2.experts; try expert=2"),
        ("dlrm", 100, {"expert": 100}, "unequal parts; try expert=64"),
        ("dlrm", 8, {"tensor": 2}, "has tables, which only expert divides"),
        ("dlrm", 8, {"micro_batches": 2}, "leave micro_batches out"),
        ("vgg16", 4, {"batch": 6}, "batch=6 does not divide among 4 copies of the model; try batch=4"),
        ("vgg16", 4, {"batch": 8, "local_batch": 2}, "give one of them"),
        ("vgg16", 4, {"local_batch": 0}, "local_batch=0 has no samples"),
        ("vgg16", 4, {"local_batch": 2**50}, r"more than 2\*\*40"),
        ("vgg16", 8, {"data": 1}, "data=1 does not make 8 devices; try 1 devices, or degrees whose product is 8"),
        ("vgg16", 8, {"pipeline": 3}, "pipeline=3 does not divide 8 devices"),
        ("vgg16", "8", {}, "devices='8' is not a whole number"),
        ("vgg16", 8, {"batch": 16.0}, "batch=16.0 is not a whole number"),
        ("vgg16", 8, {"pipeline": True}, "pipeline=True is not a whole number"),
        ("vgg16", 8, {"optimiser": "adamw"}, "optimiser='adamw' is not one of none, sgd, momentum, adam"),
        ("vgg16", 8, {"activations": "lost"}, "activations='lost' is not one of kept, recomputed, offloaded"),
        (
            "vgg16",
            4,
            {"micro_batches": 3},
            "micro_batches=3 does not divide the 16 samples of a copy; try micro_batches=2",
        ),
    ],
)
def test_what_does_not_divide_is_refused(name, nodes, given, said):
    """One line: the field, the value, the rule, what to try."""
    with pytest.raises(WorkloadError, match=said) as caught:
        partition(name, nodes, **given)
    assert str(caught.value).startswith(model(name).name)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("name", "nodes", "given"),
    [
        ("transformer:layers=24,hidden=4096,heads=32", 64, {}),
        ("transformer:layers=96,hidden=12288,heads=96", 2048, {"local_batch": 1}),
        ("beit_l", 4, {"local_batch": 512}),
        ("moe", 64, {}),
    ],
)
def test_what_does_not_fit_is_told_and_what_would(name, nodes, given):
    """The change that the refusal names fits, at once."""
    with pytest.raises(WorkloadError, match=r"needs .* on each of .*a100 has 40 GB; .* would fit") as caught:
        partition(name, nodes, **given)
    hint = str(caught.value).partition("40 GB; ")[2].partition(" would fit")[0]
    change = dict(item.split("=") for item in hint.split(", "))
    change = {key: value if key == "activations" else int(value) for key, value in change.items()}
    assert partition(name, nodes, **{**given, **change}).memory_bytes <= 40e9
    assert partition(name, nodes, **given, fit=False).memory_bytes > 40e9


@pytest.mark.parametrize(
    ("name", "nodes"), [("moe", 8), ("transformer:layers=128,hidden=25600,heads=160", 1), ("dlrm:preset=ramp_256", 3)]
)
def test_more_devices_are_told_where_no_degree_fits(name, nodes):
    """A mixture of 52e9 parameters on eight devices, 10^12 parameters on one: what is told fits there."""
    with pytest.raises(WorkloadError, match="no degree on this number of devices fits; on") as caught:
        partition(name, nodes)
    many, *change = str(caught.value).partition("fits; on ")[2].partition(" would fit")[0].replace(",", "").split()
    given = dict(item.split("=") for item in change if "=" in item)
    given = {key: value if key == "activations" else int(value) for key, value in given.items()}
    assert partition(name, int(many), **given).memory_bytes <= 40e9


def test_the_search_for_what_would_fit_ends():
    """Ten thousand layers: refused in seconds, without a hint that nobody has found."""
    began = time.process_time()
    with pytest.raises(WorkloadError, match="no tried change fits"):
        partition("transformer:layers=10000,hidden=12288,heads=96", 8)
    assert time.process_time() - began < 10
    with pytest.raises(ParameterError, match="layers=10001 is more than 10,000"):
        partition("transformer:layers=10001", 8)


@pytest.mark.parametrize(
    ("given", "error"), [({"device": "a101"}, OpticclError), ({"precision": "fp16"}, ParameterError)]
)
def test_unknown_devices_and_rates_are_refused(given, error):
    """An M40 has no half-precision rate."""
    with pytest.raises(error):
        partition("vgg16", 4, **{"device": "m40", **given})


def test_a_model_of_the_users_own(tmp_path):
    """Parts that no built-in model has: a lone table, layers without tensors."""
    layers = (Layer("t", "table", (40,), 4, 4, 4, (True,), 4, 4), Layer("x", "other", (), 5, 3, 3))
    job = partition(Model("own", "test", "a sample", layers), 4, local_batch=2)
    assert [task.size_bytes for task in job.tasks if task.communicates] == [1 * 8 * 4] * 2
    alone = partition(Model("own", "test", "a sample", layers[:1]), 2, local_batch=2)
    assert [task.collective for task in alone.tasks if task.communicates] == ["all_to_all"] * 2


# --- RAMP's tables ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cross_entropy", CROSS_ENTROPIES)
def test_messages_of_table_9_by_formula(cross_entropy):
    """DP: 2 bytes of (12 h^2 + 7 h) / MP + 6 h a layer; MP: sequences of a copy x 1024 h x 2 bytes (checked notes, 2.5)."""
    row = ramp_table9(cross_entropy)
    blocks = [layer for layer in row.target.model.layers if layer.kind == "attention"]
    h, layers = blocks[0].tensors[0], len(blocks)
    tensor = len(row.job.groups["tensor"].ranks) if "tensor" in row.job.groups else 1
    data = row.job.num_ranks // tensor
    assert row.parameters_per_device == layers * ((12 * h * h + 7 * h) // tensor + 6 * h)
    assert row.gradient_bytes == 2 * row.parameters_per_device
    assert row.activation_bytes == (row.job.samples // data * 1024 * h * 2 if tensor > 1 else 0)
    sent = sum(task.size_bytes for task in calls(row.job, "all_reduce", "data"))
    assert sent == (row.gradient_bytes if data > 1 else 0)
    assert len(calls(row.job, "all_reduce", "tensor")) == (6 * layers if tensor > 1 else 0)
    assert row.job.memory_bytes < 40e9


@pytest.mark.parametrize("devices", DLRM_DEVICES)
def test_messages_of_table_10_by_formula(devices):
    """All_to_all: columns of a device x 65,536 samples x 2 bytes, forward and backward."""
    row = ramp_table10(devices)
    columns = 64 if devices == 65536 else 128
    assert [task.size_bytes for task in calls(row.job, "all_to_all", "expert")] == [columns * 65536 * 2] * 2
    assert row.parameters_per_device == 10**7 * columns
    assert row.table_batch * row.tables == row.job.samples == 65536


def test_rows_that_the_tables_do_not_have_are_refused():
    """With those that they have."""
    with pytest.raises(ParameterError, match=r"it has 2\.5 2\.4 2\.2 2 1\.8"):
        ramp_table9(2.3)
    with pytest.raises(ParameterError, match="it has 256 1024"):
        ramp_table10(512)


def test_the_largest_rows_are_quick_and_list_no_ranks():
    """65,536 devices: a job of all of table 9 in far less than a second each, groups as ranges."""
    start = time.process_time()
    rows = [ramp_table9(cross_entropy) for cross_entropy in CROSS_ENTROPIES]
    assert time.process_time() - start < 5
    assert rows[-1].job.num_ranks == 65536
    assert all(isinstance(group.ranks, range) for row in rows for group in row.job.groups.values())


def test_ranks_are_laid_out_as_stated():
    """rank = t + T (p + P (e + E d)): every rank once, groups from the formula."""
    layout = Layout(data=3, tensor=2, pipeline=5, expert=4, stage=1)
    groups = layout.groups()

    def rank(t, p, e, d):
        return t + 2 * (p + 5 * (e + 4 * d))

    every = {rank(t, p, e, d) for t in range(2) for p in range(5) for e in range(4) for d in range(3)}
    assert every == set(range(layout.num_ranks))
    assert layout.num_ranks == math.prod((3, 2, 5, 4))
    assert list(groups["tensor"].ranks) == [rank(t, 1, 0, 0) for t in range(2)]
    assert list(groups["expert"].ranks) == [rank(0, 1, e, 0) for e in range(4)]
    assert list(groups["data"].ranks) == [rank(0, 1, e, d) for d in range(3) for e in range(4)]
    assert list(groups["expert_data"].ranks) == [rank(0, 1, 0, d) for d in range(3)]
    assert list(groups["forward"].ranks) == [rank(0, 1, 0, 0), rank(0, 2, 0, 0)]
    assert list(groups["backward"].ranks) == [rank(0, 2, 0, 0), rank(0, 1, 0, 0)]
