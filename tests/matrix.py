"""The conformance matrix: which fabric, which algorithm, which sizes."""

from collections.abc import Iterator

from opticcl.circuits import lower
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabric import FABRICS, fabric_at_scale
from opticcl.ir import CircuitPlan
from opticcl.schedule import ALGORITHMS, generate

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 25, 27, 30, 32, 54, 64)
VARIANTS = {
    "ramp": ("ramp", "ramp:variant=modular"),
    "sipco": ("sipco", "sipco:k=2"),
    "wrht": ("wrht", "wrht:variant=published", "wrht:group_size=3"),
    "lumorph": ("lumorph", "lumorph:radix=4", "lumorph:radix=8"),
}


def cells() -> Iterator[tuple[str, str]]:
    """Every pair of fabric and algorithm, with the algorithm's variants."""
    for fabric in FABRICS.names():
        for algorithm in ALGORITHMS.names():
            for variant in VARIANTS.get(algorithm, (algorithm,)):
                yield fabric, variant


def compiled(fabric: str, algorithm: str, size: int) -> CircuitPlan | str:
    """The plan of a cell at a size, or why there is none."""
    try:
        made = fabric_at_scale(fabric, size)
        return lower(made, generate(algorithm, "all_reduce", made))
    except (FabricError, UnsupportedError) as reason:
        return str(reason)
