"""The tasks of one device: forward, backward, gradients and update, micro-batch by micro-batch.

In a layer shared by several devices::

    forward    [gathers] [all_to_all] compute [all_to_all] [tensor all_reduce]
    backward   [forward again] [gathers] [all_to_all] compute [all_to_all] [tensor all_reduce]     gradients: data all_reduce

With ZeRO the gradients are a reduce_scatter; stages 1 and 2 gather the updated parameters at the end, stage 3 gathers the
parameters of a layer before each of its passes, while the layer before computes. With sequence parallelism the tensor
all_reduce is a reduce_scatter behind a layer and an all_gather before the next. Context-parallel devices gather keys and
values before attention, and reduce_scatter their gradients.

In a pipeline the device is in the slowest stage. The work of other stages that it waits for is included as tasks whose names
start with "wait: "; the total is that of the one-forward-one-backward (1F1B) schedule::

    earlier stages forward | own warm-up | later stages there and back | own, one by one | earlier stages backward
"""

from __future__ import annotations

from collections.abc import Sequence

from opticcl.files import read_toml
from opticcl.ir.task_graph import Phase, Task
from opticcl.training.model import Layer
from opticcl.training.partition.shares import Configuration, divisible, held_apart, seconds

__all__ = ["WAIT", "StageTasks", "chain_tasks", "update_s"]

WAIT = "wait: "  # prefix of tasks of other devices that this one waits for


def chain_tasks(stages: Sequence[Sequence[Layer]], choices: Configuration) -> tuple[Task, ...]:
    """Tasks of the device at `choices.layout.stage` for a model whose layers follow one another."""
    tasks = StageTasks(stages, choices)
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
            tasks.backward(stage, "", _of(done, count), last=done == count - 1)
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


def update_s(parameters: float, choices: Configuration) -> float:
    """Memory-bound time of the optimiser step: reads and writes parameters and states, reads gradients [s]."""
    states = read_toml("opticcl.training", "training.toml")["optimiser_states"][choices.optimiser]
    return 4 * (3 + 2 * states) * parameters / choices.device.memory_bytes_per_s


class StageTasks:
    """A growing list of tasks of one device; `last` are the dependencies of the next one.

    Args:
        stages: layers of each stage.
        choices: the configuration.
        made: the list that grows; None: a new one. Several devices may share one.
        device: index of the device in the job.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[Layer]],
        choices: Configuration,
        made: list[Task] | None = None,
        device: int = 0,
    ) -> None:
        self.stages, self.choices = stages, choices
        self.made: list[Task] = [] if made is None else made
        self.last: tuple[int, ...] = ()
        self.devices = (device,)
        self._suffix = f" {device + 1}" if device else ""  # of groups
        self._gradients: list[int] = []
        self._computed: tuple[int, ...] = ()  # the last two computations

    def compute(self, name: str, compute_s: float, phase: Phase) -> None:
        """Computation on the device, which the next task waits for.

        Args:
            name: of the task.
            compute_s: its time [s].
            phase: of the task.
        """
        self.made.append(Task(name, compute_s=compute_s, after=self.last, phase=phase, devices=self.devices))
        self.last = (len(self.made) - 1,)
        self._computed = (*self._computed[-1:], len(self.made) - 1)

    def call(self, name: str, collective: str, elements: int, group: str, phase: Phase) -> None:
        """A call that the next task waits for.

        Args:
            name: of the task.
            collective: canonical name.
            elements: of the message [count].
            group: kind of process group.
            phase: of the task.
        """
        self.last = (self._call(name, collective, elements, group, phase, self.last),)

    def _call(
        self,
        name: str,
        collective: str,
        elements: int,
        group: str,
        phase: Phase,
        after: tuple[int, ...],
        fusible: bool = False,
    ) -> int:
        size = elements * self.choices.width
        self.made.append(Task(name, 0.0, collective, size, group + self._suffix, after, phase, fusible, self.devices))
        return len(self.made) - 1

    def send(self, way: Phase, stage: int) -> int:
        """Send the result of a stage to a neighbour without waiting. Returns: index of the transfer."""
        before = self.last
        self.pass_on(way, stage)
        self.last = before
        return len(self.made) - 1

    def pass_on(self, way: Phase, stage: int) -> None:
        """Send the result of a stage to a neighbour, which waits for it."""
        other = "next" if way == "forward" else "previous"
        self.call(f"to the {other} stage", "send_recv", self.border(way, stage), way, way)

    def border(self, way: Phase, stage: int) -> int:
        """Elements that a stage sends to its neighbour [count]."""
        layer = self.stages[stage if way == "forward" else stage - 1][-1]
        return self.choices.elements(layer.outputs, self._tokens_among())

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
        """The forward pass of a stage.

        Args:
            stage: its index.
            prefix, suffix: of the names of its tasks.
        """
        for layer in self.stages[stage]:
            self._forward(layer, f"{prefix}{layer.name}", f"forward{suffix}", "forward")

    def _forward(self, layer: Layer, name: str, way: str, phase: Phase) -> None:
        exchanged = self._exchanged(layer)
        self._gather_parameters(layer, name, way, phase)
        if self._divides_tokens(layer) and layer.kind != "embedding":
            self.call(f"{name} gather, {way}", "all_gather", self._inputs(layer), "tensor", phase)
        self._gather_keys(layer, name, way, phase)
        if exchanged:
            self.call(f"{name} dispatch, {way}", "all_to_all", exchanged, "expert", phase)
        self.compute(f"{name} {way}", seconds(layer, self.choices)[0], phase)
        if exchanged:
            self.call(f"{name} combine, {way}", "all_to_all", exchanged, "expert", phase)
        if self._shared(layer) and layer.kind != "output":
            self.call(f"{name} sum, {way}", self._sum(), self.choices.elements(layer.outputs), "tensor", phase)

    def backward(self, stage: int, prefix: str, suffix: str = "", last: bool = False) -> None:
        """The backward pass of a stage.

        Args:
            stage: its index.
            prefix, suffix: of the names of its tasks.
            last: whether it is that of the last micro-batch of this device, after which gradients are complete.
        """
        gradients = not prefix and (last or self.choices.zero >= 2)
        for layer in reversed(self.stages[stage]):
            self._backward(layer, f"{prefix}{layer.name}", suffix, seconds(layer, self.choices)[1], gradients)

    def input_gradients(self, stage: int, suffix: str) -> None:
        """The half of the backward pass that the previous stage waits for."""
        for layer in reversed(self.stages[stage]):
            took_s = seconds(layer, self.choices)[1]
            self._backward(layer, layer.name, suffix, took_s / 2 if layer.tensors else took_s)

    def weight_gradients(self, stage: int, suffix: str, last: bool) -> None:
        """The other half, which no other stage waits for.

        Args:
            stage: its index.
            suffix: of the names of its tasks.
            last: see `backward`.
        """
        for layer in reversed(self.stages[stage]):
            if layer.tensors:
                took_s = seconds(layer, self.choices)[1] / 2
                self.compute(f"{layer.name} weight gradient{suffix}", took_s, "backward")
            if last or self.choices.zero >= 2:
                self._reduce(layer, self._computed[-1:])

    def _backward(self, layer: Layer, name: str, suffix: str, took_s: float, gradients: bool = False) -> None:
        """The backward pass of a layer.

        Args:
            took_s: time of the computation [s].
        """
        exchanged, way = self._exchanged(layer), f"backward{suffix}"
        if self.choices.activations != "kept":
            self._forward(layer, name, f"forward again{suffix}", "backward")
        else:
            self._gather_parameters(layer, name, way, "backward")
            self._gather_keys(layer, name, way, "backward")
        if self._divides_tokens(layer) and layer.kind != "output":
            size = self.choices.elements(layer.outputs)
            self.call(f"{name} gather, {way}", "all_gather", size, "tensor", "backward")
        if exchanged:
            self.call(f"{name} combine, {way}", "all_to_all", exchanged, "expert", "backward")
        self.compute(f"{name} {way}", took_s, "backward")
        if gradients:
            self._reduce(layer, self.last)
        if exchanged:
            self.call(f"{name} dispatch, {way}", "all_to_all", exchanged, "expert", "backward")
        if size := self._keys(layer):
            self.call(f"{name} keys and values, {way}", "reduce_scatter", size, "context", "backward")
        if self._shared(layer) and layer.kind != "embedding":  # no layer precedes an embedding
            self.call(f"{name} input gradient{suffix}", self._sum(), self._inputs(layer), "tensor", "backward")

    def _inputs(self, layer: Layer) -> int:
        """Elements of a micro-batch that enter a layer [count]."""
        return self.choices.elements(layer.activations - layer.outputs if layer.kind == "output" else layer.outputs)

    def _exchanged(self, layer: Layer) -> int:
        """Elements of a micro-batch sent to experts on other devices."""
        far = layer.kind == "experts" and self.choices.layout.expert > 1
        return self.choices.elements(layer.exchanged, self._tokens_among()) if far else 0

    def _shared(self, layer: Layer) -> bool:
        return self.choices.layout.tensor > 1 and divisible(layer)

    def _divides_tokens(self, layer: Layer) -> bool:
        """Whether the devices of a tensor group have different tokens before and behind a layer, and all within it."""
        return self.choices.sequence_parallel and self._shared(layer)

    def _tokens_among(self) -> int:
        """Devices of a tensor group that divide the tokens between layers."""
        return self.choices.layout.tensor if self.choices.sequence_parallel else 1

    def _sum(self) -> str:
        return "reduce_scatter" if self.choices.sequence_parallel else "all_reduce"

    def _keys(self, layer: Layer) -> int:
        """Elements of keys and values that context-parallel devices gather."""
        if self.choices.layout.context == 1:
            return 0
        share = self.choices.layout.tensor if divisible(layer) and not layer.gathered_whole else 1
        return int(layer.gathered * self.choices.samples // share)

    def _gather_keys(self, layer: Layer, name: str, way: str, phase: Phase) -> None:
        if size := self._keys(layer):
            self.call(f"{name} keys and values, {way}", "all_gather", size, "context", phase)

    def _gather_parameters(self, layer: Layer, name: str, way: str, phase: Phase) -> None:
        """ZeRO-3: the parameters of a layer, while the layer before computes."""
        if self.choices.zero == 3:
            for group, size in self._states(layer).items():
                before = self._computed[-2:-1]
                gathered = self._call(f"{name} parameters, {way}", "all_gather", size, group, phase, before)
                self.last = (*self.last, gathered)

    def _states(self, layer: Layer) -> dict[str, int]:
        """Parameters of a layer by the group of the devices that have the same ones, if these are several."""
        layout, found = self.choices.layout, dict[str, int]()
        for size, apart in held_apart(layer, layout):
            if (layout.expert_replicas if apart else layout.replicas) > 1:
                group = "expert_data" if apart else "data"
                found[group] = found.get(group, 0) + size
        return found

    def _reduce(self, layer: Layer, after: tuple[int, ...]) -> None:
        """Reduce the gradients of a layer over its copies, last tensor first; only the update depends on it."""
        layout = self.choices.layout
        collective = "reduce_scatter" if self.choices.zero else "all_reduce"
        for number, (size, apart) in reversed(list(enumerate(held_apart(layer, layout), 1))):
            if (layout.expert_replicas if apart else layout.replicas) > 1:
                name, group = f"{layer.name} gradient {number}", "expert_data" if apart else "data"
                self._gradients.append(self._call(name, collective, size, group, "backward", after, True))

    def update(self, layers: Sequence[Layer]) -> None:
        """The optimiser's step for the layers of the device, after all gradients."""
        layout, zero = self.choices.layout, self.choices.zero
        parameters = 0.0
        for layer in layers:
            for size, apart in held_apart(layer, layout):
                parameters += size / ((layout.expert_replicas if apart else layout.replicas) if zero else 1)
        if parameters and self.choices.optimiser != "none":
            self.last = (*self._gradients, *self.last)
            self.compute("update", update_s(parameters, self.choices), "update")
        if zero in (1, 2):
            updated = self.last
            for layer in layers:
                for group, size in self._states(layer).items():
                    self._call(f"{layer.name} parameters", "all_gather", size, group, "update", updated)
