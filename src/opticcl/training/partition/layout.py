"""Layout of ranks over the kinds of parallelism, and the resulting process groups.

Tensor-parallel ranks are neighbours; then follow pipeline stages, ranks that share the tokens of a sample, ranks that share
experts or tables, and data-parallel copies, which are farthest apart::

    rank = t + T (p + P (c + C (e + E d)))        t < T tensor, p < P pipeline, c < C context, e < E expert, d < D data

so that every group is a range with a stride.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opticcl.ir.task_graph import ProcessGroup

__all__ = ["Layout"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees of parallelism and the device whose tasks are generated.

    Args:
        data: copies of all experts and tables [count].
        tensor: devices that share each layer [count].
        pipeline: stages [count].
        expert: devices that share experts or tables; each holds a copy of all other layers [count].
        context: devices that share the tokens of a sample; each holds a copy of all layers [count].
        stage: of the device; its other coordinates are 0.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    context: int = 1
    stage: int = 0

    @property
    def num_ranks(self) -> int:
        """All devices [count]."""
        return self.data * self.tensor * self.pipeline * self.expert * self.context

    @property
    def copies(self) -> int:
        """Copies of layers other than experts and tables; each works on its own samples [count]."""
        return self.data * self.expert

    @property
    def replicas(self) -> int:
        """Devices with the same parameters of layers other than experts and tables [count]."""
        return self.copies * self.context

    @property
    def expert_replicas(self) -> int:
        """Devices with the same experts [count]."""
        return self.data * self.context

    @property
    def rank(self) -> int:
        """Rank of the device."""
        return self.stage * self.tensor

    def groups(self) -> Mapping[str, ProcessGroup]:
        """Process groups of the device with at least two ranks, by name.

        data: copies of a tensor; expert_data: copies of an expert or a part of a table; expert; tensor; context; forward
        and backward: the device and its successor in the pipeline, or the last two stages.
        """
        n, first, step = self.num_ranks, self.rank, self.tensor * self.pipeline
        inner = step * self.context
        found = {
            "tensor": ProcessGroup("tensor", range(first, first + self.tensor), n // self.tensor),
            "context": ProcessGroup("context", range(first, first + inner, step), n // self.context),
            "expert": ProcessGroup("expert", range(first, first + inner * self.expert, inner), n // self.expert),
            "data": ProcessGroup("data", range(first, n, step), step),
            "expert_data": ProcessGroup("expert_data", self._expert_copies(first), step * self.expert),
        }
        found = {name: group for name, group in found.items() if len(group.ranks) > 1}
        if self.expert == 1:
            found.pop("expert_data", None)  # it is data
        if self.pipeline > 1:
            sender = min(self.stage, self.pipeline - 2) * self.tensor
            receiver = sender + self.tensor
            pairs = n // self.pipeline * (self.pipeline - 1)
            found["forward"] = ProcessGroup("forward", range(sender, receiver + 1, self.tensor), pairs)
            found["backward"] = ProcessGroup("backward", range(receiver, sender - 1, -self.tensor), pairs)
        return found

    def _expert_copies(self, first: int) -> range | tuple[int, ...]:
        """Ranks with the same experts: every place of the context in every copy."""
        step = self.tensor * self.pipeline
        far = range(first, self.num_ranks, step * self.context * self.expert)
        if self.context == 1:
            return far
        return tuple(rank + step * i for rank in far for i in range(self.context))
