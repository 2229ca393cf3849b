"""Light of a plan by brute force: every circuit of every round, every cell that it takes, every setting that it needs."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping

from tests.independent.machines import Machine, machine_of
from tests.independent.plan_rows import Circuit, FileStep, PlanRows, Transfer


def light_fault(plan: PlanRows) -> str:
    """Why the light of a plan is wrong; empty where it is right."""
    machine = machine_of(plan.fabric)
    of_job: dict[Hashable, Hashable] = {}
    for number, step in enumerate(plan.steps):
        for turn, transfers in enumerate(step.steps(plan.collective["num_chunks"])):
            chunks = {transfer: carried for transfer, (_, carried) in transfers.items()}
            for fault in _step_faults(machine, step, chunks, of_job):
                return f"step {number} of the file, {turn} of its run: {fault}"
    return ""


def _step_faults(
    machine: Machine, step: FileStep, chunks: Mapping[Transfer, list[int]], of_job: dict[Hashable, Hashable]
) -> Iterator[str]:
    """What is wrong with a step of the plan.

    Args:
        machine: that its circuits are on.
        step: of the file.
        chunks: of its transfers in this step of the plan.
        of_job: settings that stand for the whole job; those of the step are added.
    """
    round_of = {}
    for number, circuits in enumerate(step.rounds):
        for circuit in circuits:
            if circuit.carries is not None and round_of.setdefault(circuit.carries, number) != number:
                yield f"{circuit.carries} in two rounds"
        distances = {circuit.wavelengths[2] for circuit in circuits}
        if len(distances) > 1 or min(distances) < 1:
            yield f"wavelengths {distances} apart"
        missing = [fault for circuit in circuits if (fault := _missing(machine, circuit))]
        yield from missing
        if missing:
            return
        yield from (f"{circuit}: {fault}" for circuit in circuits if (fault := machine.misfit(circuit)))
        yield from _crowded(machine, circuits, chunks)
        yield from _clashes((s for circuit in circuits for s in machine.settings(circuit)), {})
        yield from _clashes((s for circuit in circuits for s in machine.settings_of_job(circuit)), of_job)
        if fault := machine.together(circuits):
            yield fault


def _missing(machine: Machine, circuit: Circuit) -> str:
    """Which of its parts does not exist."""
    if circuit.carries is None and not machine.idles:
        return "packets do not idle"
    if not (0 <= circuit.src < machine.nodes and 0 <= circuit.dst < machine.nodes):
        return f"{circuit}: no such node"
    if not 0 <= circuit.port < machine.ports:
        return f"{circuit}: no such port"
    first, count, distance = circuit.wavelengths
    if first < 0 or count < 1 or first + (count - 1) * distance >= machine.wavelengths:
        return f"{circuit}: no such wavelength"
    return ""


def _crowded(machine: Machine, circuits: list[Circuit], chunks: Mapping[Transfer, list[int]]) -> Iterator[str]:
    """Cells that have no room for all circuits or signals.

    Args:
        machine: that they are on.
        circuits: of a round.
        chunks: of the transfers.
    """
    taken: dict[Hashable, int] = defaultdict(int)
    signals: dict[Hashable, set[Hashable]] = defaultdict(set)
    for circuit in circuits:
        for use in machine.uses(circuit):
            if use.splits:
                signals[use.cell].add(circuit.signal(chunks))
            taken[use.cell] = len(signals[use.cell]) if use.splits else taken[use.cell] + use.amount
            if taken[use.cell] > use.most:
                yield f"{circuit}: {use.cell} has no room"


def _clashes(needed: Iterable[tuple[Hashable, Hashable]], stands: dict[Hashable, Hashable]) -> Iterator[str]:
    """Devices that two circuits need in two settings.

    Args:
        needed: device and setting.
        stands: of each device; the settings are added.
    """
    for device, setting in needed:
        if stands.setdefault(device, setting) != setting:
            yield f"{device} set to {stands[device]} and {setting}"
