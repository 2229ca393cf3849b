"""The suite itself: what is deep is documented, and numbers of examples scale with the profile."""

import re
from pathlib import Path

from hypothesis import HealthCheck, settings

from tests.profiles import EVERY_TIME, examples

TESTS = Path(__file__).parent
ROOT = TESTS.parent


def test_deep_tests_are_documented():
    """docs/extending/tests.md names every file that holds one, and no other."""
    marked = {path for path in TESTS.rglob("test_*.py") if "pytest.mark." + "deep" in path.read_text("utf-8")}
    named = re.findall(r"^\| `(tests/[\w/]+\.py)`", (ROOT / "docs/extending/tests.md").read_text("utf-8"), re.MULTILINE)
    assert {str(path.relative_to(ROOT)) for path in marked} == set(named)


def test_property_tests_scale_with_the_profile():
    """No test names a number of examples that `nightly` could not multiply."""
    for path in TESTS.rglob("*.py"):
        if path.name not in ("profiles.py", "test_suite.py"):
            assert "max_examples" not in path.read_text("utf-8"), f"{path}: write @examples of tests/profiles.py"


def test_profiles():
    """The usual one repeats itself and neither keeps files nor looks at the clock; the nightly one draws ten times as many."""
    usual, nightly = settings.get_profile("ci"), settings.get_profile("nightly")
    assert (usual.derandomize, nightly.derandomize) == (True, False)
    for profile in (usual, nightly):
        assert (profile.database, profile.deadline, profile.print_blob) == (None, None, True)
    assert nightly.max_examples == 10 * usual.max_examples
    assert examples(7).max_examples == 7 * settings.default.max_examples // EVERY_TIME
    suppressed = examples(7, suppress=[HealthCheck.filter_too_much]).suppress_health_check
    assert {HealthCheck.too_slow, HealthCheck.filter_too_much} <= set(suppressed)
