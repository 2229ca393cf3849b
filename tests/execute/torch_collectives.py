"""Run under torchrun: every operation of the backend "opticcl" against Gloo, or against values computed by hand."""

import gc
import os
import tempfile
import time
import warnings
from datetime import timedelta
from random import Random

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
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


def test_dispatches():
    """all_to_all_single with drawn splits, as a mixture of experts sends rows: equal on some ranks, on all, empty."""
    random = Random(size)
    for _ in range(500 if size == 4 else 40):
        rows = [[random.choice((0, 1, 1, 3)) for _ in range(size)] for _ in range(size)]
        if random.random() < 0.4:  # one rank sends equal parts
            rows[random.randrange(size)] = [1] * size
        if random.random() < 0.3:  # and gets them
            for row in rows:
                row[0] = 1
        sends, takes = rows[rank], [row[rank] for row in rows]
        given = torch.cat([torch.full((count, 2), 10.0 * rank + peer) for peer, count in enumerate(sends)])
        out, due = torch.empty(2, sum(takes), 2)
        dist.all_to_all_single(out, given, takes, sends)
        dist.all_to_all_single(due, given, takes, sends, group=gloo)
        same(out, due)


def arguments(kind, draw):
    """Arguments of a call in numbers, all of which may differ between ranks."""
    length, wide = draw((2, 3)), draw((size, size, size, size + 1))
    return {
        "kind": kind, "length": length, "dtype": draw((torch.float32, torch.int64)), "op": draw(("SUM", "MAX")),
        "root": draw(range(size)), "count": wide, "out": draw((length, length, length + 1)),
    }  # fmt: skip


def make(kind, length, dtype, op, root, count, out):
    """Call a collective with these arguments, whether they are right or not."""
    group, op = dist.group.WORLD, getattr(dist.ReduceOp, op)
    given, wide = torch.ones(length, dtype=dtype), torch.ones(length * count, dtype=dtype)
    many = [torch.empty(out, dtype=dtype) for _ in range(count)]
    parts = [torch.ones(length, dtype=dtype) for _ in range(count)]
    options = {"reduce": dist.distributed_c10d.ReduceOptions, "gather": dist.distributed_c10d.GatherOptions}
    opts = options.get(kind, dist.distributed_c10d.ScatterOptions)()
    opts.rootRank = root
    calls = {
        "all_reduce": lambda: dist.all_reduce(given, op),
        "reduce": lambda: dist.reduce(given, root, op),
        "broadcast": lambda: dist.broadcast(given, root),
        "all_gather": lambda: group.allgather([many], [given]).wait(),
        "gather": lambda: group.gather([many] if rank == root else [], [given], opts).wait(),
        "scatter": lambda: group.scatter([given], [parts] if rank == root else [], opts).wait(),
        "reduce_scatter": lambda: group.reduce_scatter([many[0]], [parts]).wait(),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(wide, given),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(given, wide, op),
        "all_to_all": lambda: group.alltoall(many, parts).wait(),
        "all_to_all_single": lambda: group.alltoall_base(torch.empty(length * size, dtype=dtype), wide, [], []).wait(),
        "splits": lambda: group.alltoall_base(
            torch.empty(out * size, dtype=dtype), torch.ones(length * size, dtype=dtype), [], [length] * count
        ).wait(),
        "all_reduce_coalesced": lambda: dist.all_reduce_coalesced(many[:root]),
        "all_gather_coalesced": lambda: group.allgather_into_tensor_coalesced([wide] * count, [given] * size).wait(),
        "reduce_scatter_coalesced": lambda: group.reduce_scatter_tensor_coalesced(
            [given] * size, [wide] * count
        ).wait(),
        "barrier": lambda: dist.barrier(),
    }
    if kind == "kinds":
        return list(calls)
    return calls[kind]()


def test_ranks_that_differ():
    """Arguments drawn on each rank: all ranks finish, or all refuse in the same words, and the group goes on."""
    kinds = make("kinds", 2, torch.float32, "SUM", 0, size, 2)
    shared, own = Random(7), Random(rank)
    refused = 0
    for kind in [*kinds, *kinds, *kinds, *kinds]:
        common = arguments(kind, shared.choice)
        mine = arguments(shared.choice(kinds) if shared.random() < 0.2 else kind, own.choice)
        apart = shared.choice(list(common))  # what alone differs, on a rank of its own
        if shared.random() < 0.6 and rank == shared.randrange(size):
            mine = {**common, apart: mine[apart]}
        elif shared.random() < 0.6:
            mine = common
        try:
            make(**mine)
            words = None
        except OpticclError as error:
            words = str(error)
        found = [None] * size
        dist.all_gather_object(found, words, group=gloo)
        assert found == [found[0]] * size, (kind, mine, found)
        assert words is None or "\n" not in words
        refused += words is not None
        same(_reduced(torch.ones(1), dist.group.WORLD), torch.full((1,), float(size)))
    assert size == 1 or refused > len(kinds)


def test_messages_of_calls_that_differ():
    """What was sent for them, more than connections hold, reaches no later call."""
    for length in (30_000, 3_000_000) * (size > 1):
        assert "all must be equal" in refusal(lambda length=length: dist.all_reduce(torch.ones(length + rank)))
        sums = torch.full((length,), float(rank))
        same(_reduced(sums, dist.group.WORLD), torch.full((length,), size * (size - 1) / 2))


def test_types_that_only_move():
    """Types without sums are refused at once, and moved as all others; uint8 is added too."""
    kinds = [torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2]
    for dtype in kinds:
        mine = torch.arange(3 * size).view(torch.uint8).clone()[: 8 * size].view(dtype)
        for op in ("SUM", "PRODUCT", "MIN"):
            words = refusal(lambda given=mine, name=op: dist.all_reduce(given.clone(), getattr(dist.ReduceOp, name)))
            assert f"reduction {op} of {dtype} is not available" in words
        block = mine[: len(mine) // size]
        assert "is not available" in refusal(lambda out=block, given=mine: dist.reduce_scatter_tensor(out, given))
        due, found = mine.view(torch.uint8), mine.clone()
        dist.broadcast(found, size - 1)
        same(found.view(torch.uint8), due)
        found = torch.empty_like(mine)
        dist.all_to_all_single(found, mine)
        same(found.view(torch.uint8), due.chunk(size)[rank].repeat(size))
    same(
        _reduced(torch.full((2,), 3, dtype=torch.uint8), dist.group.WORLD),
        torch.full((2,), 3 * size, dtype=torch.uint8),
    )


def test_work():
    """Results, states, and a wait that ends before the call; the call goes on."""
    mine = torch.ones(4)
    if rank == 0:
        time.sleep(0.2)
    work = dist.all_reduce(mine, async_op=True)
    if rank and size > 1:
        assert "all_reduce: not done within 0.01 s" in refusal(lambda: work.wait(timedelta(seconds=0.01)))
        assert not work.is_success()
    assert work.wait(timedelta(seconds=60))
    assert work.is_completed()
    assert work.is_success()
    assert work.exception() is None
    same(work.result()[0], torch.full((4,), float(size)))
    bad = dist.all_reduce(torch.ones(1, dtype=torch.uint32), async_op=True)
    assert "uint32" in refusal(bad.wait)
    assert "uint32" in str(bad.exception())
    assert not bad.is_success()


def test_what_torch_asks_of_a_group():
    """Devices, coalesced calls, a part of a group, an asynchronous checkpoint."""
    world = dist.group.WORLD
    assert torch.device("cpu") in world._device_types
    for device in (None, torch.device("cpu")):
        some = [torch.ones(3), torch.ones(5)]
        with dist.distributed_c10d._coalescing_manager(device=device):
            for tensor in some:
                dist.all_reduce(tensor)
        same(torch.cat(some), torch.full((8,), float(size)))
    last = [r for r in range(size) if r % 2 == rank % 2]
    if not (len(last) > 1 and are_apart(*last[:2])):
        part = world.split_group(last, group_name=f"part {rank % 2}")
        assert (part.rank(), part.size()) == (last.index(rank), len(last))
        found = torch.ones(2)
        part.allreduce([found]).wait()
        same(found, torch.full((2,), float(len(last))))
        part.shutdown()
    assert "are not different ranks" in refusal(lambda: world.split_group([size, rank]))
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder)
    checkpoint.async_save({"a": torch.arange(4.0)}, checkpoint_id=folder[0]).result(timeout=60)
    loaded = {"a": torch.zeros(4)}
    checkpoint.load(loaded, checkpoint_id=folder[0])
    same(loaded["a"], torch.arange(4.0))


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
    """After it has been destroyed, though torchrun's store keeps the keys of the first; the last test, without Gloo.

    Whether calls are compared is what the first rank says, whatever the variables of the others.
    """
    dist.destroy_process_group()
    os.environ["OPTICCL_CHECK"] = str(int(rank == 0))
    dist.init_process_group("opticcl")
    same(_reduced(torch.ones(7), dist.group.WORLD), torch.full((7,), float(size)))
    if size > 1:
        differs = torch.ones(3 + (rank == size - 1))
        assert "all must be equal" in refusal(lambda: dist.all_reduce(differs))


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
assert dist.get_backend() == "opticcl"
dist.destroy_process_group()
gc.collect()  # of models that hold the group
gloo = None  # ends its threads: torch aborts a process that ends while they free a tensor
print(f"rank {rank} done")
