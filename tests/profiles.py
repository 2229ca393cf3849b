"""How many examples property tests draw: the profiles `ci` (the same every time) and `nightly` (random, ten times as many).

`ci` is in force unless `pytest --hypothesis-profile=nightly` says otherwise; `make test-deep` does.
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings

EVERY_TIME = 100
"""Examples of profile `ci` where a test names no number; `examples` scales with it."""

_COMMON: dict[str, Any] = {
    "deadline": None,  # the first example of a process imports and compiles
    "print_blob": True,
    "database": None,  # what failed once is in the printed blob, not in a folder
    "suppress_health_check": [HealthCheck.too_slow],  # a busy machine is no finding
}


def register_profiles() -> None:
    """Register both profiles and load `ci`."""
    settings.register_profile("ci", derandomize=True, max_examples=EVERY_TIME, **_COMMON)
    settings.register_profile("nightly", derandomize=False, max_examples=10 * EVERY_TIME, **_COMMON)
    settings.load_profile("ci")


def examples(count: int, *, suppress: Sequence[HealthCheck] = (), **more: Any) -> settings:
    """Decorator: draw `count` examples in profile `ci`, ten times as many in `nightly`.

    Args:
        count: examples in profile `ci`.
        suppress: health checks that are left out beside the profile's.
        more: other settings of Hypothesis; the profile's where left out.
    """
    return settings(
        max_examples=count * settings.default.max_examples // EVERY_TIME,
        suppress_health_check=[*settings.default.suppress_health_check, *suppress],
        **more,
    )
