"""A passive star: what one node sends on a wavelength, all others receive."""

from dataclasses import dataclass

import numpy as np

import opticcl
from opticcl.circuits import register_rule
from opticcl.errors import FabricError
from opticcl.fabrics import register_fabric
from opticcl.ir import Circuits, ControlPlane, Fabric, FabricNumbers, Op, Part, Resource, Schedule, Transfers, Usage
from opticcl.ir.light import Element, LightPath
from opticcl.optics.values import optics_table
from opticcl.schedule import register_algorithm
from opticcl.units import Rate, Seconds

OPTICS = {
    "launch": {"unit": "dBm", "value": 3.0, "source": "datasheet of the laser"},
    "sensitivity": {"unit": "dBm", "value": -18.0, "source": "datasheet of the photodiode"},
    "modulator": {"loss": {"unit": "dB", "value": 4.0, "source": "datasheet of the modulator"}},
    "coupler": {"loss": {"unit": "dB", "value": 0.5, "source": "excess over 10 log10 N"}},
    "fibre": {"loss": {"unit": "dB", "value": 0.1, "source": "10 m with connectors"}},
}


@register_fabric("star", algorithm="wave")
@dataclass(frozen=True, kw_only=True, repr=False)
class Star(Fabric):
    """Star coupler; every node has a comb of lasers and a photodiode for each wavelength.

    Args:
        nodes: nodes, >= 1 [count].
        wavelengths: lasers and photodiodes of a node [count].
        rate: of one wavelength [bit/s].
        latency: from node to node [s].
        arbitration: of the arbiter that grants wavelengths before a round [s].
    Raises: FabricError: no nodes, no wavelengths or no rate.
    """

    nodes: int = 16
    wavelengths: int = 16
    rate: Rate = 25e9
    latency: Seconds = 1e-6
    arbitration: Seconds = 50e-9

    rate_parameter = "rate"
    source = "an example"
    about = "Light of every node reaches all others; a receiver selects by wavelength."

    def __post_init__(self):
        if self.nodes < 1 or self.wavelengths < 1 or self.rate <= 0:
            raise FabricError(
                f"star: nodes={self.nodes}, wavelengths={self.wavelengths}, rate={self.rate:g}; all are more than 0"
            )

    @property
    def numbers(self):
        w = self.wavelengths
        return FabricNumbers(
            num_nodes=self.nodes,
            num_wavelengths=w,
            lasers_per_port=w,
            rate_bits_per_s=self.rate,
            latency_s=self.latency,
        )

    @property
    def resources(self):
        return (COUPLER,)

    def usage(self, circuits):
        yield Usage(COUPLER, np.zeros(len(circuits), int))  # every signal passes the one coupler

    def faults(self, circuits):
        return ()  # this hardware can make every circuit

    @property
    def light_path(self):
        elements = (Element("modulator"), Element("fibre"), Element("coupler", ways=self.nodes), Element("fibre"))
        once = np.ones((1, len(elements)))
        table = optics_table("star", OPTICS, "examples/star.py")
        return LightPath(table, elements, lambda c: once.repeat(len(c), axis=0), once, ("every circuit",), once[0])

    def parts(self):
        return (
            Part("comb_transceiver", self.nodes, ports=self.wavelengths, rate_bits_per_s=self.wavelengths * self.rate),
            Part("star_coupler", 1, ports=self.nodes),
            Part("fibre", 2 * self.nodes),
        )

    def control_s(self, src, dst):
        return self.arbitration if len(src) else 0.0

    def control_plane(self):
        return ControlPlane("nothing", 0.0, "the arbiter grants wavelengths", "an example")

    def place_name(self, resource, index):
        return "the star coupler"


COUPLER = Resource("subnet", 1, splits=True)  # one signal a wavelength, received by any number of nodes


@register_rule("star")
def wavelengths_of_signals(fabric, schedule):
    """The next free wavelengths for every signal; signals without one wait for the next round."""
    repeated = {steps.start for steps in schedule.step_classes() if len(steps) > 1}

    def rounds(step, t):
        # several nodes may receive a copy, where the same circuits do not carry other chunks in a later step
        alone = np.where((t.op == Op.COPY) & (step not in repeated), -1, t.dst)
        signals, signal = np.unique(np.stack([t.src, t.chunk_lo, t.chunk_n, alone]), axis=1, return_inverse=True)
        width = max(1, fabric.num_wavelengths // signals.shape[1])
        number, first = np.divmod(signal.ravel() * width, fabric.num_wavelengths // width * width)
        circuits = Circuits.of(np.arange(len(t)), t.src, t.dst, 0, first, width)
        return tuple(circuits.take(number == r) for r in range(number.max() + 1))

    return rounds


def accepts(collective, fabric, *, senders: int = 8):
    if collective.name != "all_gather" or not isinstance(fabric.machine, Star):
        return "it does all_gather on a star"
    return None if 1 <= senders <= fabric.num_wavelengths else f"senders={senders}: at least one wavelength for each"


@register_algorithm("wave", accepts)
def wave(collective, fabric, *, senders: int = 8) -> Schedule:
    """In each step `senders` nodes send their block to all others."""
    n = fabric.num_nodes

    def step(i):
        src = np.arange(i * senders, min((i + 1) * senders, n))[:, None]
        return Transfers.of(src, np.arange(n), src, 1, Op.COPY)

    return Schedule("wave", collective.on(n, n), -(-n // senders) if n > 1 else 0, step)


if __name__ == "__main__":
    plan = opticcl.compile("star:nodes=12", "all_gather", "1 MB", algorithm="wave:senders=4")
    plan.verify().raise_if_bad()
    print(plan.simulate())
    print(opticcl.compare(["star", "ideal:nodes=16"], "all_gather", "1 MB"))
