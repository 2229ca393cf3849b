"""What a recorded job gains from another network: its step as recorded, and what each fabric saves of it.

The step of a device is computation, exposed communication and idle time. A network changes exposed communication alone, so
idle time is kept as recorded, and so is waiting for slower ranks where their traces show it. A fabric saves the exposed
communication of the replay with the recorded durations less that of its own iteration, which has the same dependencies, and
not more than what was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opticcl.errors import OpticclError
from opticcl.fabrics import fabric_at_scale
from opticcl.ir import Fabric
from opticcl.ir.task_graph import BOUND_WORDS, RecordedTimes, TaskGraph
from opticcl.training.iteration import Iteration, replay
from opticcl.units import format_rate, format_seconds, format_share, part_of

__all__ = ["AS_RECORDED", "Gain", "is_trace"]

AS_RECORDED = "as recorded"
"""Name of the row with the recorded step."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What fabrics save of a recorded step.

    Args:
        job: of a trace.
        replayed: the job with its recorded durations; None if no message has one.
        altered: whether its computation is not the recorded one, so that nothing is compared with the recording.
    """

    job: TaskGraph
    replayed: Iteration | None
    altered: bool = False

    @classmethod
    def of(cls, job: TaskGraph, streams: int | None, *, altered: bool) -> Gain:
        """The gain of a job.

        Args:
            job: of a trace.
            streams: as of `replay` [count].
            altered: see the class.
        """
        return cls(job, replay(job, streams) if job.recorded is not None else None, altered)

    @property
    def recorded(self) -> RecordedTimes | None:
        """Times of the recorded step; None if no message has a duration."""
        return self.job.recorded

    @property
    def communicates_only(self) -> bool:
        """Whether the file has no time of any computation, so that the share of communication in a step is unknown."""
        return not self.job.compute_s

    @property
    def step_s(self) -> float | None:
        """The recorded step; None if unknown [s]."""
        return None if self.recorded is None or self.communicates_only else self.recorded.total_s

    @property
    def _messages_s(self) -> float | None:
        """All messages of a file without computation with their recorded durations; None if unknown [s]."""
        return self.replayed.total_s if self.replayed is not None and self.communicates_only else None

    @property
    def limit_s(self) -> float | None:
        """Exposed communication of the recording, or all of its messages if starts are not recorded; None if unknown [s]."""
        if self.recorded is None:
            return None
        if self._messages_s is not None:
            return self._messages_s
        return self.recorded.communication_s if self.recorded.exposed_s is None else self.recorded.exposed_s

    def saved_s(self, iteration: Iteration) -> float | None:
        """What a fabric saves of the recorded step, less than 0 if it takes longer; None if unknown [s].

        Args: iteration: of the job on the fabric.
        """
        return self._saved_s(iteration.exposed_s)

    def _saved_s(self, exposed_s: float) -> float | None:
        """What a fabric saves on which an iteration exposes that much communication; None if unknown [s]."""
        if self.replayed is None or self.limit_s is None or self.altered:
            return None
        return min(self.limit_s, self.replayed.exposed_s - exposed_s)

    def saved_share(self, iteration: Iteration) -> float | None:
        """The same as a share of the recorded step; None if either is unknown.

        Args: iteration: of the job on the fabric.
        """
        saved_s = self.saved_s(iteration)
        return saved_s / self.step_s if saved_s is not None and self.step_s else None

    def step_on_s(self, iteration: Iteration) -> float | None:
        """The recorded step less what a fabric saves; None if either is unknown [s].

        Args: iteration: of the job on the fabric.
        """
        saved_s = self.saved_s(iteration)
        return self.step_s - saved_s if saved_s is not None and self.step_s is not None else None

    def step_as_built_s(self, iteration: Iteration, built_s: float) -> float | None:
        """The recorded step less what a fabric as built saves; None if either is unknown [s].

        Args:
            iteration: of the job on the fabric at another rate.
            built_s: iteration on the fabric as built, of the same computation [s].
        """
        saved_s = self._saved_s(iteration.exposed_s + built_s - iteration.total_s)
        return self.step_s - saved_s if saved_s is not None and self.step_s is not None else None

    def row(self) -> dict[str, Any] | None:
        """The recorded step as plain values, with the names of the rows of fabrics; None if no message has a duration."""
        recorded = self.recorded
        if recorded is None:
            return None
        found: dict[str, Any] = {
            "fabric": AS_RECORDED,
            "step_s": self.step_s,
            "iteration_s": self._messages_s,
            "saved_s": None,
            "saved_share": None,
            "exposed_s": None,
            "communication_s": recorded.communication_s,
            "idle_s": recorded.idle_s,
            "skew_s": recorded.skew_s,
            "communication_share": None,
            "utilisation": None,
        }
        if self.step_s and recorded.exposed_s is not None and recorded.busy_s is not None:
            found["iteration_s"] = recorded.busy_s + recorded.exposed_s
            found["exposed_s"] = recorded.exposed_s
            found["communication_share"] = recorded.exposed_s / self.step_s
            found["utilisation"] = recorded.busy_s / self.step_s
        return found

    def of_row(self, iteration: Iteration) -> dict[str, Any]:
        """What a fabric saves, as plain values.

        Args: iteration: of the job on the fabric.
        """
        return {
            "step_s": self.step_on_s(iteration),
            "saved_s": self.saved_s(iteration),
            "saved_share": self.saved_share(iteration),
        }

    def caveats(self) -> list[str]:
        """What the recording does not show of the gain."""
        recorded = self.recorded
        if recorded is None or recorded.skew_s is not None or self.job.num_devices == self.job.num_ranks:
            return []
        return [
            "recorded messages include waiting for slower ranks, which no network saves; the traces of all ranks together "
            "show how long"
        ]

    def sentence(self, machine: Fabric, iteration: Iteration) -> str:
        """The answer in plain words: how much of the recorded step a network can save, and what a fabric saves.

        Args:
            machine: the fabric.
            iteration: of the job on it.
        """
        if self.communicates_only:
            return self._without_computation(machine, iteration)
        if self.recorded is None:
            part = part_of(iteration.exposed_s, iteration.total_s)
            return (
                "What a network saves is not known, since no message has a recorded time; on "
                f"{_named(machine)} {self._bounded(part)} of the iteration is exposed communication{self._doubt()}."
            )
        if self.step_s is None:
            limit = format_seconds(self.limit_s or 0.0)
            known = "The recorded step is not known, since starts are not recorded: at most " + limit
            text = f"{known} of communication is exposed"
        else:
            text = f"{self._bounded(part_of(self.limit_s or 0.0, self.step_s))} is exposed communication{self._doubt()}"
            text = text[0].upper() + text[1:]
        return f"{text}; {self._saving(machine, iteration)}{self._causes()}."

    def _without_computation(self, machine: Fabric, iteration: Iteration) -> str:
        """The answer of a file without computation."""
        untimed = any(not task.communicates for task in self.job.tasks)
        give = (
            "its computation has no times: give --device h100 for operations, --clock 1GHz for cycles"
            if untimed
            else "a profile with GPU kernels has computation (ProfilerActivity.CUDA, record_shapes=True)"
        )
        text = f"Communication only, so that the share of a step is not known; {give}. "
        text += f"All messages take {format_seconds(iteration.total_s)} on {_named(machine)}"
        if self._messages_s is not None:
            text += f", {format_seconds(self._messages_s)} as recorded"
        return text + "."

    def _bounded(self, text: str) -> str:
        return BOUND_WORDS[self.job.bound] + text

    def _doubt(self) -> str:
        return ", which may be too high or too low" if self.job.bound == "estimate" else ""

    def _saving(self, machine: Fabric, iteration: Iteration) -> str:
        """What a fabric saves, in words."""
        saved_s, share = self.saved_s(iteration), self.saved_share(iteration)
        if saved_s is None:
            return "what fabrics save is of the recorded computation: leave --compute-scale and --straggler out"
        name = _named(machine)
        if self.limit_s == 0:
            return "no network makes the step shorter"
        if saved_s <= 0:
            return f"{name} saves nothing" + (f" and takes {format_seconds(-saved_s)} more" if saved_s else "")
        return f"{name} saves {format_seconds(saved_s)}" + (f" ({format_share(share)})" if share is not None else "")

    def _causes(self) -> str:
        """What makes the recorded step longer than its communication does, as a sentence; "" if nothing does."""
        recorded = self.recorded
        if recorded is None or self.step_s is None or self.limit_s is None:
            return ""
        idle_s, skew_s = recorded.idle_s or 0.0, recorded.skew_s or 0.0
        lost = []
        if idle_s > self.limit_s:
            late = format_seconds(recorded.host_s or 0.0)
            before = f", {late} of it before kernels that the host had not launched yet" if recorded.host_s else ""
            lost.append(f"{part_of(idle_s, self.step_s)} in which the device is idle{before}")
        if skew_s > recorded.communication_s - skew_s:
            part = part_of(skew_s, recorded.communication_s)
            lost.append(f"{part} of its messages in which it waits for slower ranks")
        return f". No network saves the {', nor the '.join(lost)}" if lost else ""


def is_trace(job: TaskGraph) -> bool:
    """Whether a job is of a trace, as opposed to a model."""
    return bool(job.ranks_source or job.recorded)


def _named(machine: Fabric) -> str:
    """A fabric with its node rate, or that it is as its paper has it."""
    try:
        built = fabric_at_scale(machine.name, machine.num_nodes)
    except OpticclError:
        built = None
    if built == machine:
        return f"{machine.name} as built"
    return f"{machine.name} with {format_rate(machine.node_rate_bits_per_s)} a node"
