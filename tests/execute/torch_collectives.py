"""Run under torchrun: every operation of the backend "opticcl" against Gloo, or against values computed by hand."""

import gc
import os
import warnings

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh

from opticcl.errors import OpticclError

warnings.filterwarnings("ignore", category=FutureWarning)
warnings.filterwarnings("error", category=RuntimeWarning)
dist.init_process_group("opticcl")
rank, size = dist.get_rank(), dist.get_world_size()
gloo = dist.new_group(backend="gloo")
REDUCTIONS = ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


def own(length, dtype, seed=0):
    """Small whole numbers, different on every rank."""
    random = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randint(0, 4, (length,), generator=random).to(dtype)


def same(mine, due):
    """Bit by bit."""
    assert mine.dtype == due.dtype
    assert torch.equal(mine, due), (mine, due)


def everyone(tensor):
    """The tensors of all ranks, by Gloo."""
    found = [torch.empty_like(tensor) for _ in range(size)]
    dist.all_gather(found, tensor, group=gloo)
    return found


def are_apart(a, b):
    """Whether no circuit joins two nodes: on SiPAC of radix 2 those that differ in two digits."""
    return os.environ.get("OPTICCL_FABRIC", "").startswith("sipac:radix=2") and a ^ b == 3


def refusal(call):
    """What a call is refused with, on every rank of its group."""
    try:
        call()
    except OpticclError as error:
        return str(error)
    raise AssertionError("the call was accepted")


def test_reductions():
    """Types, operations, odd and empty lengths, tensors that are not contiguous."""
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bfloat16, torch.float16):
        integer = not dtype.is_floating_point
        for length in (0, 1, 3, 64, 1001):
            for name in REDUCTIONS if integer else REDUCTIONS[:4]:
                op = getattr(dist.ReduceOp, name)
                mine = own(length, dtype)
                rows = everyone(mine)
                due = rows[0].clone()
                for row in rows[1:]:
                    due = {
                        "SUM": torch.add, "PRODUCT": torch.mul, "MIN": torch.minimum, "MAX": torch.maximum,
                        "BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor,
                    }[name](due, row)  # fmt: skip
                dist.all_reduce(mine, op=op)
                same(mine, due)
            if not integer:
                mine = own(length, dtype)
                total = sum(row.double() for row in everyone(mine))
                dist.all_reduce(mine, op=dist.ReduceOp.AVG)
                same(mine, (total / size).to(dtype))
    table = own(12, torch.float32).view(3, 4)
    due = sum(row.view(3, 4).t() for row in everyone(table.view(-1)))
    column = table.t()
    dist.all_reduce(column)
    same(column, due)
    flags = torch.tensor([rank == 0, True, False])
    dist.all_reduce(flags, op=dist.ReduceOp.MAX)
    same(flags, torch.tensor([True, True, False]))
    huge = torch.full((3,), 3e38)
    dist.all_reduce(huge)
    same(huge, torch.full((3,), float("inf") if size > 1 else 3e38))


def test_two_ranks_as_gloo():
    """With two ranks sums of any floats are bitwise those of Gloo."""
    if size == 2:
        mine = torch.randn(1001, generator=torch.Generator().manual_seed(rank)) * 1000
        due = mine.clone()
        dist.all_reduce(mine)
        dist.all_reduce(due, group=gloo)
        same(mine, due)


def test_gathers_and_scatters():
    """Lists and single tensors, every root."""
    for length in (1, 5, 64):
        mine = own(length, torch.float32)
        rows = everyone(mine)
        found = [torch.empty(length) for _ in range(size)]
        dist.all_gather(found, mine)
        single = torch.empty(length * size)
        dist.all_gather_into_tensor(single, mine)
        for found_row, row, part in zip(found, rows, single.chunk(size), strict=True):
            same(found_row, row)
            same(part, row)
        wide = own(length * size, torch.int64)
        total = sum(everyone(wide))
        block = torch.empty(length, dtype=torch.int64)
        dist.reduce_scatter_tensor(block, wide)
        same(block, total.chunk(size)[rank])
        dist.reduce_scatter(block, list(wide.clone().chunk(size)))
        same(block, total.chunk(size)[rank])
        out = torch.empty_like(wide)
        dist.all_to_all_single(out, wide)
        wides = everyone(wide)
        same(out, torch.cat([row.chunk(size)[rank] for row in wides]))
        parts = [torch.empty(length, dtype=torch.int64) for _ in range(size)]
        dist.all_to_all(parts, list(wide.chunk(size)))
        same(torch.cat(parts), out)
        for root in range(size):
            copy = mine.clone()
            dist.broadcast(copy, root)
            same(copy, rows[root])
            copy = mine.clone()
            dist.reduce(copy, root)
            if rank == root:
                same(copy, sum(rows))
            dist.gather(mine, found if rank == root else None, dst=root)
            if rank == root:
                same(torch.stack(found), torch.stack(rows))
            piece = torch.empty(length, dtype=torch.int64)
            dist.scatter(piece, list(wide.chunk(size)) if rank == root else None, src=root)
            same(piece, wides[root].chunk(size)[rank])


def test_unequal_parts():
    """all_to_all with splits: rank r sends r + p + 1 rows to rank p."""
    sends = [rank + peer + 1 for peer in range(size)]
    given = torch.cat([torch.full((count, 3), 100.0 * rank + peer) for peer, count in enumerate(sends)])
    out = torch.empty(sum(sends), 3)
    dist.all_to_all_single(out, given, output_split_sizes=sends, input_split_sizes=sends)
    same(out, torch.cat([torch.full((count, 3), 100.0 * peer + rank) for peer, count in enumerate(sends)]))


def test_asynchronous_and_coalesced():
    """Many calls in flight, waited for in any order; futures; coalesced calls."""
    tensors = [torch.full((100 + i,), float(rank + i)) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i, work in reversed(list(enumerate(works))):
        work.wait()
        same(tensors[i], torch.full((100 + i,), float(sum(r + i for r in range(size)))))
    future = dist.all_reduce(tensors[0], async_op=True).get_future()
    same(future.wait()[0], tensors[0])
    some = [torch.full((3,), float(rank)), torch.full((5,), 1.0 * rank), torch.full((2, 2), float(rank))]
    dist.all_reduce_coalesced(some)
    for tensor in some:
        same(tensor, torch.full_like(tensor, sum(range(size))))
    outs = [torch.empty(4 * size), torch.empty(2 * size)]
    dist.group.WORLD.allgather_into_tensor_coalesced(
        outs, [torch.full((4,), 1.0 + rank), torch.full((2,), 5.0 + rank)]
    ).wait()
    same(outs[1], torch.arange(size).repeat_interleave(2) + 5.0)
    outs = [torch.empty(2), torch.empty(3)]
    dist.group.WORLD.reduce_scatter_tensor_coalesced(outs, [torch.ones(2 * size), torch.ones(3 * size)]).wait()
    same(outs[1], torch.full((3,), float(size)))


def test_functional():
    """Collectives that C++ calls by the name of the group."""
    given = torch.arange(size * 2.0)
    same(functional.all_reduce(given, "sum", dist.group.WORLD).wait(), size * given)
    same(functional.all_gather_tensor(given[:2] + rank, 0, dist.group.WORLD).wait()[-2:], given[:2] + size - 1)
    same(functional.reduce_scatter_tensor(given, "sum", 0, dist.group.WORLD).wait(), size * given.chunk(size)[rank])
    same(functional.all_to_all_single(given, None, None, dist.group.WORLD).wait(), given.chunk(size)[rank].repeat(size))
    same(functional.broadcast(given + rank, 0, dist.group.WORLD).wait(), given)


def test_groups():
    """Subgroups in another order, a mesh of two dimensions, groups of one."""
    alone = [dist.new_group([r]) for r in range(size)][rank]
    same(_reduced(torch.ones(3), alone), torch.ones(3))
    pairs = [dist.new_group(sorted({r, (r + 1) % size})) for r in range(size)]
    for r, pair in enumerate(pairs):
        following = (r + 1) % size
        if rank in (r, following):
            if are_apart(r, following):
                assert "no circuit leads" in refusal(lambda group=pair: _reduced(torch.ones(1), group))
            else:
                due = 2.0 + r + following if size > 1 else 1.0
                same(_reduced(torch.tensor([1.0 + rank]), pair), torch.tensor([due]))
    if size % 2 == 0:
        mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("rows", "columns"))
        found = _reduced(torch.tensor([rank]), mesh.get_group("rows"))
        same(found, torch.tensor([rank % (size // 2) * 2 + size // 2]))


def _reduced(tensor, group):
    dist.all_reduce(tensor, group=group)
    return tensor


def test_messages_and_objects():
    """Sends and receives of the user, with tags; objects; barriers."""
    if size > 1:
        to, of = (rank + 1) % size, (rank - 1) % size
        given, found = torch.full((5,), rank), torch.empty(5, dtype=torch.int64)
        works = [dist.isend(given, to, tag=7), dist.irecv(found, of, tag=7)]
        for work in works:
            work.wait()
        same(found, torch.full((5,), of))
        ops = [dist.P2POp(dist.isend, given, to), dist.P2POp(dist.irecv, found, of)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert [each["rank"] for each in objects] == list(range(size))
    one = [f"from {rank}"]
    dist.broadcast_object_list(one, src=size - 1)
    assert one == [f"from {size - 1}"]
    dist.barrier()
    dist.barrier(async_op=True).wait()


def test_the_group_is_created_again():
    """After it has been destroyed, though torchrun's store keeps the keys of the first; the last test, without Gloo."""
    dist.destroy_process_group()
    dist.init_process_group("opticcl")
    same(_reduced(torch.ones(7), dist.group.WORLD), torch.full((7,), float(size)))


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
assert dist.get_backend() == "opticcl"
dist.destroy_process_group()
gc.collect()  # of models that hold the group
gloo = None  # ends its threads: torch aborts a process that ends while they free a tensor
print(f"rank {rank} done")
