"""Run under torchrun: training with the backend "opticcl" gives what training with Gloo gives."""

import copy
import gc
import os
import sys
import tempfile
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

import opticcl
from opticcl.execute.torch import ddp_hook

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import train_ddp
import train_fsdp

warnings.filterwarnings("ignore")
dist.init_process_group("opticcl")
rank, size = dist.get_rank(), dist.get_world_size()
gloo = dist.new_group(backend="gloo")
torch.set_num_threads(1)


def parameters(model):
    """All parameters in one vector, gathered where they are sharded."""
    parts = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in model.parameters()]
    return torch.cat([p.detach().reshape(-1) for p in parts])


def same_training(mine, other):
    """Two ranks: bitwise as Gloo; more: equal on all ranks, and near."""
    found, due = parameters(mine), parameters(other)
    everywhere = [torch.empty_like(found) for _ in range(size)]
    dist.all_gather(everywhere, found, group=gloo)
    assert all(torch.equal(each, found) for each in everywhere)
    if size <= 2:
        assert torch.equal(found, due)
    assert ((found - due).norm() / due.norm()).item() < 1e-4


def train(model, batches, loss):
    """A few steps of SGD."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for given, due in batches:
        optimizer.zero_grad()
        loss(model(given), due).backward()
        optimizer.step()
    return model


def pictures():
    """This rank's batches, by a DistributedSampler."""
    data = torch.utils.data.TensorDataset(*train_ddp.pictures(128, seed=1))
    sampler = DistributedSampler(data, num_replicas=size, rank=rank)
    return list(torch.utils.data.DataLoader(data, batch_size=16, sampler=sampler))


def sequences():
    """This rank's batches of the transformer."""
    return [[part.chunk(size)[rank] for part in train_fsdp.sequences(8 * size, seed)] for seed in range(3)]


def of_tokens(logits, due):
    """Loss of the transformer."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), due.flatten())


def test_ddp():
    """A CNN, several buckets; with the communication hook too."""
    torch.manual_seed(0)
    start = train_ddp.network()
    trained = []
    plan = opticcl.compile(f"ideal:nodes={size}", "all_reduce", "10 kB", algorithm="ring")
    hooks = [None, None, ddp_hook(), ddp_hook(plan.schedule, gloo)]
    for group, hook in zip((gloo, dist.group.WORLD, dist.group.WORLD, gloo), hooks, strict=True):
        model = DistributedDataParallel(copy.deepcopy(start), process_group=group, bucket_cap_mb=0.001)
        if hook is not None:
            model.register_comm_hook(None, hook)
        trained.append(train(model, pictures(), nn.functional.cross_entropy))
    for model in trained[1:]:
        same_training(model, trained[0])


def sharded(start, group):
    """A copy with sharded parameters; replicated where Gloo sums instead of averaging, as that of torch 2.8 does."""
    average = torch.empty(1)
    dist.reduce_scatter_tensor(average, torch.ones(size), op=dist.ReduceOp.AVG, group=group)
    model = copy.deepcopy(start)
    if average.item() != 1:
        assert group is gloo
        return DistributedDataParallel(model, process_group=group)
    mesh = DeviceMesh.from_group(group, "cpu")
    fully_shard(model.layers[0], mesh=mesh)
    return fully_shard(model, mesh=mesh)


def test_fsdp():
    """A transformer with sharded parameters."""
    torch.manual_seed(0)
    start = train_fsdp.Transformer(1)
    same_training(*(train(sharded(start, group), sequences(), of_tokens) for group in (dist.group.WORLD, gloo)))


def test_checkpoint():
    """Sharded parameters saved by torch.distributed.checkpoint, and loaded again."""
    torch.manual_seed(1)
    mesh = DeviceMesh.from_group(dist.group.WORLD, "cpu")
    model = fully_shard(train_fsdp.Transformer(1), mesh=mesh)
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    checkpoint.save(get_model_state_dict(model), checkpoint_id=folder[0])
    dist.barrier()
    torch.manual_seed(2)
    other = fully_shard(train_fsdp.Transformer(1), mesh=mesh)
    state = get_model_state_dict(other)
    checkpoint.load(state, checkpoint_id=folder[0])
    set_model_state_dict(other, state)
    assert torch.equal(parameters(other), parameters(model))


def test_tensor_parallel():
    """Two linear layers, column-wise and row-wise: the output and gradients of the whole model."""
    if size > 4:
        return
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 8))
    whole = copy.deepcopy(model)
    mesh = DeviceMesh.from_group(dist.group.WORLD, "cpu")
    split = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    given = torch.randn(4, 8)
    found, due = split(given), whole(given)
    assert torch.allclose(found, due, atol=1e-5)
    found.sum().backward()
    due.sum().backward()
    pairs = zip(split.parameters(), whole.parameters(), strict=True)
    grads = [torch.allclose(p.grad.full_tensor(), q.grad, atol=1e-5) for p, q in pairs]
    assert all(grads)


def test_mesh_of_two_dimensions():
    """Sharded in one dimension, replicated in the other."""
    if size % 2:
        return
    torch.manual_seed(0)
    mesh = dist.device_mesh.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicas", "shards"))
    start = train_fsdp.Transformer(1)
    model = train(fully_shard(copy.deepcopy(start), mesh=mesh), sequences(), of_tokens)
    other = train(sharded(start, gloo), sequences(), of_tokens)
    found, due = parameters(model), parameters(other)
    assert ((found - due).norm() / due.norm()).item() < 1e-4


def test_compiled():
    """A compiled model under DDP."""
    torch.manual_seed(0)
    start = train_ddp.network()
    trained = []
    for group in (dist.group.WORLD, gloo):
        model = DistributedDataParallel(copy.deepcopy(start), process_group=group)
        trained.append(train(torch.compile(model, backend="aot_eager"), pictures(), nn.functional.cross_entropy))
    same_training(*trained)


chosen = [argument for argument in sys.argv[1:] if argument.startswith("test_")]
for name, test in list(globals().items()):
    if name.startswith("test_") and (not chosen or name in chosen):
        test()
        if os.environ.get("VERBOSE"):
            print(name, flush=True)
dist.destroy_process_group()
gc.collect()  # of models that hold the group
gloo = None  # ends its threads: torch aborts a process that ends while they free a tensor
print(f"rank {rank} done")
