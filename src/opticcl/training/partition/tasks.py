"""The tasks of one device: forward, backward, gradients and update, micro-batch by micro-batch.

In a layer shared by several devices::

    forward    [all_to_all] compute [all_to_all] [tensor all_reduce]
    backward   [forward again] [all_to_all] compute [all_to_all] [tensor all_reduce]     gradients: data all_reduce

In a pipeline the device is in the slowest stage. The work of other stages that it waits for is included as tasks whose names
start with "wait: "; the total is that of the one-forward-one-backward (1F1B) schedule::

    earlier stages forward | own warm-up | later stages there and back | own, one by one | earlier stages backward
"""

from __future__ import annotations

from collections.abc import Sequence

from opticcl.files import read_toml
from opticcl.ir.task_graph import Phase, Task
from opticcl.training.model import Layer
from opticcl.training.partition.shares import Configuration, divisible, held, seconds

__all__ = ["WAIT", "chain_tasks", "update_s"]

WAIT = "wait: "  # prefix of tasks of other devices that this one waits for


def chain_tasks(stages: Sequence[Sequence[Layer]], choices: Configuration) -> tuple[Task, ...]:
    """Tasks of the device at `choices.layout.stage` for a model whose layers follow one another."""
    tasks = _Tasks(stages, choices)
    stage, count = choices.layout.stage, choices.micro_batches
    later = range(stage + 1, len(stages))
    warm_up = min(len(later), count)
    for earlier in range(stage):
        tasks.forward(earlier, WAIT)
        tasks.pass_on("forward", earlier)
    first = 0
    for number in range(count + warm_up):
        if number < count:
            tasks.forward(stage, "", _of(number, count))
            if later:
                sent = tasks.send("forward", stage)
                first = first or sent
        if later and number == min(warm_up, count - 1):  # the first micro-batch is not back yet
            tasks.there_and_back(later, first)
        if number >= warm_up:
            done = number - warm_up
            tasks.backward(stage, "", _of(done, count), gradients=done == count - 1)
            if stage and done < count - 1:
                tasks.send("backward", stage)
    if stage:  # earlier stages wait for the last micro-batch
        tasks.pass_on("backward", stage)
    for earlier in reversed(range(stage)):
        tasks.backward(earlier, WAIT)
        if earlier:
            tasks.pass_on("backward", earlier)
    tasks.update(stages[stage])
    return tuple(tasks.made)


def _of(number: int, count: int) -> str:
    return f" {number + 1}" if count > 1 else ""


def update_s(parameters: int, choices: Configuration) -> float:
    """Memory-bound time of the optimiser step: reads and writes parameters and states, reads gradients [s]."""
    states = read_toml("opticcl.training", "training.toml")["optimiser_states"][choices.optimiser]
    return 4 * (3 + 2 * states) * parameters / choices.device.memory_bytes_per_s


class _Tasks:
    """A growing list of tasks; `last` are the dependencies of the next one."""

    def __init__(self, stages: Sequence[Sequence[Layer]], choices: Configuration) -> None:
        self.stages, self.choices = stages, choices
        self.made: list[Task] = []
        self.last: tuple[int, ...] = ()
        self._gradients: list[int] = []

    def compute(self, name: str, compute_s: float, phase: Phase) -> None:
        self.made.append(Task(name, compute_s=compute_s, after=self.last, phase=phase))
        self.last = (len(self.made) - 1,)

    def call(self, name: str, collective: str, elements: int, group: str, phase: Phase) -> None:
        size = elements * self.choices.width
        self.made.append(Task(name, collective=collective, size_bytes=size, group=group, after=self.last, phase=phase))
        self.last = (len(self.made) - 1,)

    def send(self, way: Phase, stage: int) -> int:
        """Send the result of a stage to a neighbour without waiting. Returns: index of the transfer."""
        before = self.last
        self.pass_on(way, stage)
        self.last = before
        return len(self.made) - 1

    def pass_on(self, way: Phase, stage: int) -> None:
        """Send the result of a stage to a neighbour, which waits for it."""
        other = "next" if way == "forward" else "previous"
        border = self.stages[stage if way == "forward" else stage - 1][-1]
        self.call(f"to the {other} stage", "send_recv", border.outputs * self.choices.samples, way, way)

    def there_and_back(self, later: range, sent: int) -> None:
        """One micro-batch, sent by task `sent`, through the later stages and back."""
        self.last = (sent,)
        for stage in later:
            if stage != later[0]:
                self.pass_on("forward", stage - 1)
            self.forward(stage, WAIT)
        for stage in reversed(later):
            self.backward(stage, WAIT)
            self.pass_on("backward", stage)

    def forward(self, stage: int, prefix: str, suffix: str = "") -> None:
        for layer in self.stages[stage]:
            self._forward(layer, f"{prefix}{layer.name}", f"forward{suffix}", "forward")

    def _forward(self, layer: Layer, name: str, way: str, phase: Phase) -> None:
        exchanged = self._exchanged(layer)
        if exchanged:
            self.call(f"{name} dispatch, {way}", "all_to_all", exchanged, "expert", phase)
        self.compute(f"{name} {way}", seconds(layer, self.choices)[0], phase)
        if exchanged:
            self.call(f"{name} combine, {way}", "all_to_all", exchanged, "expert", phase)
        if self._shared(layer) and layer.kind != "output":
            self.call(f"{name} sum, {way}", "all_reduce", layer.outputs * self.choices.samples, "tensor", phase)

    def backward(self, stage: int, prefix: str, suffix: str = "", gradients: bool = False) -> None:
        for layer in reversed(self.stages[stage]):
            name, exchanged = f"{prefix}{layer.name}", self._exchanged(layer)
            if self.choices.activations != "kept":
                self._forward(layer, name, f"forward again{suffix}", "backward")
            if exchanged:
                self.call(f"{name} combine, backward{suffix}", "all_to_all", exchanged, "expert", "backward")
            self.compute(f"{name} backward{suffix}", seconds(layer, self.choices)[1], "backward")
            if gradients:
                self._reduce(layer)
            if exchanged:
                self.call(f"{name} dispatch, backward{suffix}", "all_to_all", exchanged, "expert", "backward")
            if self._shared(layer) and layer.kind != "embedding":  # no layer precedes an embedding
                inputs = layer.activations - layer.outputs if layer.kind == "output" else layer.outputs
                size = inputs * self.choices.samples
                self.call(f"{name} input gradient{suffix}", "all_reduce", size, "tensor", "backward")

    def _exchanged(self, layer: Layer) -> int:
        """Elements of a micro-batch sent to experts on other devices."""
        far = layer.kind == "experts" and self.choices.layout.expert > 1
        return layer.exchanged * self.choices.samples if far else 0

    def _shared(self, layer: Layer) -> bool:
        return self.choices.layout.tensor > 1 and divisible(layer)

    def _reduce(self, layer: Layer) -> None:
        """Reduce the gradients of a layer over its copies, last tensor first; only the update depends on it."""
        layout = self.choices.layout
        sizes = held(layer, layout)
        split = layer.split or (False,) * len(sizes)
        for number, (size, part) in reversed(list(enumerate(zip(sizes, split, strict=True), 1))):
            apart = layer.kind == "experts" and part and layout.expert > 1
            if (layout.data if apart else layout.copies) > 1:
                self._gradients.append(len(self.made))
                self.made.append(
                    Task(
                        f"{layer.name} gradient {number}",
                        collective="all_reduce",
                        size_bytes=size * self.choices.width,
                        group="expert_data" if apart else "data",
                        after=self.last,
                        phase="backward",
                        fusible=True,
                    )
                )

    def update(self, layers: Sequence[Layer]) -> None:
        parameters = sum(sum(held(layer, self.choices.layout)) for layer in layers)
        if parameters and self.choices.optimiser != "none":
            self.last = (*self._gradients, *self.last)
            self.compute("update", update_s(parameters, self.choices), "update")
