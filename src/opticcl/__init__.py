"""OptiCCL finds fast plans of collectives on optical and electrical networks, proves, times and executes them.

    import opticcl

    fabric = opticcl.fabric("ramp", groups=32, racks=32, wavelengths=64)
    plan = opticcl.compile(fabric, "all_reduce", "1 GB")
    plan.verify().raise_if_bad()
    print(plan.simulate())

Importing this imports nothing; everything is imported where it is first used.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # that of typing, which takes as long to import as Python to start

__all__ = [
    "OpticclError",
    "Plan",
    "__version__",
    "compare",
    "compile",
    "errors",
    "fabric",
    "load",
    "plot",
    "synthesize",
    "train",
]

_HOME = {
    "OpticclError": "errors",
    "Plan": "plans.plan",
    "compile": "plans.plan",
    "load": "plans.plan",
    "compare": "plans.compare",
    "fabric": "fabrics",
    "plot": "report.notebook",
    "synthesize": "synthesis",
    "train": "training.train",
}  # the others are modules

if TYPE_CHECKING:
    from typing import Any

    from opticcl import errors
    from opticcl.errors import OpticclError
    from opticcl.fabrics import fabric
    from opticcl.plans.compare import compare
    from opticcl.plans.plan import Plan, compile, load
    from opticcl.report.notebook import plot
    from opticcl.synthesis import synthesize
    from opticcl.training.train import train


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'opticcl' has no attribute {name!r}; if it is a module, import opticcl.{name}")
    import importlib

    module = importlib.import_module(f"opticcl.{_HOME.get(name, name)}")
    return getattr(module, name) if name in _HOME else module


def __dir__() -> list[str]:
    return __all__
