"""A fabric of which some members differ, for tests that need hardware that does not exist."""

import copy


def altered(fabric, **members):
    """A copy of the fabric whose class has other members: values become properties, functions take self first."""
    system = type(fabric)
    body = {
        key: value if callable(value) else property(lambda self, value=value: value) for key, value in members.items()
    }
    made = copy.copy(fabric)
    object.__setattr__(made, "__class__", type(f"Altered{system.__name__}", (system,), body))
    return made
