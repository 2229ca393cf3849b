"""A part of a store that no earlier group has used.

The agent of torchrun keeps one store for all attempts of a job, and a process can create a group again after it has destroyed
one: keys of the earlier group are still in the store. So the first rank draws a name for a new part of the store, and gives it
to each rank in reply to a name that this rank has drawn itself, which makes the reply new as well.
"""

from __future__ import annotations

import time
import uuid
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from opticcl.errors import ExecutionError

__all__ = ["fresh_store"]

POLL_S = 0.002


def fresh_store(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    """A part of the store in which no key is set, the same on all ranks; every rank of the group calls this.

    Args:
        store: of torch, for this group.
        rank, size: of this process in the group.
        timeout: longest time to wait for the other ranks.
    Raises: ExecutionError: a rank does not call it.
    """
    own = uuid.uuid4().hex
    if rank:
        store.set(f"hello/{rank}", own)
        try:
            store.wait([f"reply/{own}"], timeout)
        except RuntimeError:
            raise _absent(rank, size, [0], timeout) from None
        part = dist.PrefixStore(store.get(f"reply/{own}").decode(), store)
        part.set(f"joined/{rank}", "")
        return part
    part = dist.PrefixStore(own, store)
    replied = dict.fromkeys(range(1, size), "")
    absent, end = list(replied), time.monotonic() + timeout.total_seconds()
    while absent:
        for other in absent:
            if store.check([f"hello/{other}"]) and (hello := store.get(f"hello/{other}").decode()) != replied[other]:
                store.set(f"reply/{hello}", own)
                replied[other] = hello
        absent = [other for other in absent if not part.check([f"joined/{other}"])]
        if absent and time.monotonic() > end:
            raise _absent(rank, size, absent, timeout)
        if absent:
            time.sleep(POLL_S)
    return part


def _absent(rank: int, size: int, ranks: list[int], timeout: timedelta) -> ExecutionError:
    names = ", ".join(map(str, ranks[:8]))
    return ExecutionError(
        f"rank {rank} of {size}: init_process_group: rank {names}: no answer within {timeout.total_seconds():g} s"
    )
