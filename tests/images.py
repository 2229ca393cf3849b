"""Plans of machines whose steps are not listed, beside the same step by step."""

from opticcl.circuits import ramp as rule
from opticcl.fabrics import fabric
from opticcl.ir.circuit_plan import LoweredBy, RoundsOfRule
from opticcl.plans.plan import compile


def ramp(shape, **more):
    """A machine of x groups, J racks and L places."""
    return fabric("ramp", **dict(zip(("groups", "racks", "wavelengths"), shape, strict=True)), **more)


def not_listed(monkeypatch, where, collective, algorithm):
    """The plan twice: step by step, and by the circuits of some senders."""
    listed = compile(where, collective, "1MB", algorithm=algorithm)
    with monkeypatch.context() as patch:
        patch.setattr(rule, "MOST_LISTED", 0)
        defined = compile(where, collective, "1MB", algorithm=algorithm)
    return listed, defined


class Made(RoundsOfRule):
    """Circuits of a plan, by another rule, or on another machine."""

    def __init__(self, plan, rule, fabric=None):
        self.plan, self.rule, self.fabric = plan, rule, fabric or plan.fabric

    def __call__(self, i):
        """As of the plan."""
        return self.plan.rounds(i)

    @property
    def lowered_by(self):
        """The other rule."""
        return LoweredBy(self.fabric, self.plan.schedule, self.rule)
