"""Layout of ranks over the kinds of parallelism, and the resulting process groups.

Tensor-parallel ranks are neighbours; then follow pipeline stages, ranks that share the tokens of a sample, ranks that share
experts or tables, and data-parallel copies, which are farthest apart::

    rank = t + T (p + P (c + C (e + E d)))        t < T tensor, p < P pipeline, c < C context, e < E expert, d < D data

so that every group is a range with a stride. `arranged` numbers the ranks in another order of these dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir.task_graph import ProcessGroup, TaskGraph
from opticcl.registry import as_text

__all__ = ["Layout", "arranged", "layouts"]


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
    def degrees(self) -> Mapping[str, int]:
        """Degree of each dimension, that of neighbouring ranks first."""
        return {name: getattr(self, name) for name in ("tensor", "pipeline", "context", "expert", "data")}

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


def layouts(job: TaskGraph, layout: str) -> list[TaskGraph]:
    """A job with its ranks in the order of a layout, or in every order of its dimensions.

    Args:
        job: of a model.
        layout: its dimensions above 1, that of neighbouring ranks first, such as "data,tensor"; "auto": every order.
    Raises: ParameterError: no model, or an unknown dimension, one twice, or one missing.
    """
    layout = as_text(layout, "train: layout", "tensor,pipeline,data")
    if not job.degrees:
        raise ParameterError(f"train: layout={layout}: {job.name} is a trace, with ranks as recorded; leave layout out")
    above = [name for name, degree in job.degrees.items() if degree > 1]
    if layout == "auto":
        return [arranged(job, order) for order in permutations(above)]
    given = [name.strip() for name in layout.split(",")]
    if unknown := [name for name in given if name not in job.degrees]:
        known = ", ".join(job.degrees)
        raise ParameterError(f"train: layout={layout}: there is no dimension {unknown[0]!r}; give auto, or {known}")
    if twice := [name for name in given if given.count(name) > 1]:
        raise ParameterError(f"train: layout={layout}: {twice[0]} is given twice; name each dimension once")
    if missing := [name for name in above if name not in given]:
        raise ParameterError(
            f"train: layout={layout}: {missing[0]} of {job.degrees[missing[0]]} is missing; name each dimension above 1, such "
            f"as {','.join(above)}"
        )
    return [arranged(job, [name for name in given if name in above])]


def arranged(job: TaskGraph, order: Sequence[str]) -> TaskGraph:
    """A job with its ranks numbered in another order of the dimensions; members of a group rise, or fall, as before.

    Args:
        job: of a model.
        order: dimensions, that of neighbouring ranks first; those that are left out have a degree of 1.
    """
    degrees = {name: job.degrees[name] for name in (*order, *(one for one in job.degrees if one not in order))}
    before, after = _strides(job.degrees), _strides(degrees)

    def moved(ranks: Sequence[int]) -> list[int]:
        old = np.asarray(ranks, np.int64)
        new = sum(old // before[name] % degree * after[name] for name, degree in degrees.items())
        return np.asarray(new, np.int64).tolist()

    def members(ranks: Sequence[int]) -> range | tuple[int, ...]:
        return _as_range(sorted(moved(ranks), reverse=ranks[0] > ranks[-1]))

    groups = {name: replace(group, ranks=members(group.ranks)) for name, group in job.groups.items()}
    return replace(job, groups=groups, device_ranks=tuple(moved(job.device_ranks)), degrees=degrees)


def _strides(degrees: Mapping[str, int]) -> dict[str, int]:
    """Difference of the ranks of neighbours in each dimension."""
    products = np.cumprod([1, *degrees.values()]).tolist()
    return dict(zip(degrees, products, strict=False))


def _as_range(ranks: list[int]) -> range | tuple[int, ...]:
    """Ranks as a range where they have a stride."""
    if len(ranks) < 2:
        return tuple(ranks)
    step = ranks[1] - ranks[0]
    strided = range(ranks[0], ranks[0] + step * len(ranks), step)
    return strided if list(strided) == ranks else tuple(ranks)
