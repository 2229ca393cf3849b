"""The backend "opticcl" of torch.distributed: process groups whose collectives execute verified schedules.

    settings    what environment variables select
    connections messages of schedules between every two ranks of a group
    transport   messages of schedules by the sends and receives of a group of Gloo or NCCL
    executor    rank schedules on tensors, on one worker thread a group
    fresh_store a part of torch's store for each group
    agreement   the calls of all ranks, compared before results are written
    collectives a collective of a group on flat tensors: agreed on, planned, executed
    group       the process group that torch calls
    ddp         a communication hook of DistributedDataParallel

Source: torch/csrc/distributed/c10d/PyProcessGroup.hpp names the methods that callers in C++ reach.
"""

from opticcl.errors import UnsupportedError

try:
    from opticcl.execute.torch.ddp import ddp_hook
    from opticcl.execute.torch.executor import TorchExecutor
    from opticcl.execute.torch.group import OpticclProcessGroup
    from opticcl.execute.torch.settings import Settings
    from opticcl.execute.torch.transport import GlooTransport, NcclTransport
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise UnsupportedError("opticcl.execute.torch: PyTorch is not installed; pip install 'opticcl[torch]'") from None

__all__ = ["GlooTransport", "NcclTransport", "OpticclProcessGroup", "Settings", "TorchExecutor", "ddp_hook"]
