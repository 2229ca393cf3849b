"""How ranks are laid out among the kinds of parallelism, and the groups that follow.

Tensor-parallel ranks are neighbours, then come the stages of the pipeline, then the ranks that share experts or tables, and
copies of the whole are farthest apart::

    rank = t + T (p + P (e + E d))        t < T tensor, p < P pipeline, e < E expert, d < D data

so that every group is a range with a stride.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opticcl.workload.job import Group

__all__ = ["Layout"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees of parallelism and the device that is looked at.

    Args:
        data: copies of all experts and tables [count].
        tensor: devices that share each layer [count].
        pipeline: stages [count].
        expert: devices that share experts or tables; what is neither they all hold, like further copies [count].
        stage: of the device; its other coordinates are 0.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    stage: int = 0

    @property
    def num_ranks(self) -> int:
        """All devices [count]."""
        return self.data * self.tensor * self.pipeline * self.expert

    @property
    def copies(self) -> int:
        """Of what is neither expert nor table: each works on its own samples [count]."""
        return self.data * self.expert

    @property
    def rank(self) -> int:
        """Of the device."""
        return self.stage * self.tensor

    def groups(self) -> Mapping[str, Group]:
        """Groups of at least two ranks that the device is in, by name.

        data: copies of a whole tensor; expert_data: copies of an expert or a table's part; expert; tensor; forward and
        backward: the two neighbours in a pipeline between which the device stands, or the last two.
        """
        n, first, step = self.num_ranks, self.rank, self.tensor * self.pipeline
        found = {
            "tensor": Group("tensor", range(first, first + self.tensor), n // self.tensor),
            "expert": Group("expert", range(first, first + step * self.expert, step), n // self.expert),
            "data": Group("data", range(first, n, step), step),
            "expert_data": Group("expert_data", range(first, n, step * self.expert), step * self.expert),
        }
        found = {name: group for name, group in found.items() if len(group.ranks) > 1}
        if self.expert == 1:
            found.pop("expert_data", None)  # it is data
        if self.pipeline > 1:
            sender = min(self.stage, self.pipeline - 2) * self.tensor
            receiver = sender + self.tensor
            pairs = n // self.pipeline * (self.pipeline - 1)
            found["forward"] = Group("forward", range(sender, receiver + 1, self.tensor), pairs)
            found["backward"] = Group("backward", range(receiver, sender - 1, -self.tensor), pairs)
        return found
