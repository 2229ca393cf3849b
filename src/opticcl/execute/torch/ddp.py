"""Communication hooks of DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.futures import Future

from opticcl.errors import ParameterError
from opticcl.execute.ranks import RankSchedule, rank_schedules
from opticcl.execute.torch.executor import TableLayout, TorchExecutor
from opticcl.execute.torch.reductions import tensor_reduction
from opticcl.execute.torch.transport import GlooTransport, NcclTransport

if TYPE_CHECKING:
    from opticcl.ir import Schedule

__all__ = ["ddp_hook"]


def ddp_hook(
    schedule: Schedule | None = None, group: Any = None, timeout: timedelta = dist.default_pg_timeout
) -> Callable[[Any, Any], Future]:
    """A communication hook of DistributedDataParallel: divide, then reduce over all ranks.

    Args:
        schedule: verified all_reduce that every rank passes, for a group with sends and receives, such as Gloo, or NCCL with
            one GPU a rank; None: the all_reduce of the group.
        group: process group of the gradients; None: the default group.
        timeout: longest duration of a message of the schedule.
    Raises: ParameterError: the schedule is not an all_reduce, or of another number of ranks.

    ``model.register_comm_hook(None, ddp_hook(plan.schedule))``
    """
    members = group if group is not None else dist.group.WORLD
    rank, size = members.rank(), members.size()
    own = None
    if schedule is not None:
        c = schedule.collective
        if c.name != "all_reduce" or c.num_ranks != size:
            raise ParameterError(f"ddp_hook: {c.name} of {c.num_ranks} ranks in a group of {size}; try an all_reduce")
        own = rank_schedules(schedule)[rank]
    executor = None if own is None else _executor(members, rank, size, timeout)

    def hook(state: Any, bucket: Any) -> Future:
        gradients = bucket.buffer()
        gradients.div_(size)
        if executor is None or own is None:
            work = dist.all_reduce(gradients, group=members, async_op=True)
        else:
            work = executor.submit("all_reduce", lambda: _in_place(executor, own, gradients))
        return work.get_future().then(lambda done: done.value()[0])

    hook.__annotations__ = {"bucket": dist.GradBucket, "return": Future[torch.Tensor]}  # torch checks the types
    return hook


def _executor(group: Any, rank: int, size: int, timeout: timedelta) -> TorchExecutor:
    if dist.get_backend(group) != "nccl":
        return TorchExecutor(GlooTransport(group, rank, size, timeout))
    device = torch.device("cuda", torch.cuda.current_device())
    return TorchExecutor(NcclTransport(group, rank, size, device), device)


def _in_place(executor: TorchExecutor, schedule: RankSchedule, tensor: torch.Tensor) -> list[torch.Tensor]:
    """An all_reduce of a flat tensor, on the worker."""
    layout = TableLayout.of(schedule, tensor, tensor.numel())
    executor.execute(schedule, tensor, tensor, layout, tensor_reduction("SUM", tensor.dtype, tensor.device.type))
    return [tensor]
