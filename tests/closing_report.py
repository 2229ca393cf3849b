"""What the end of a run says about tests that it did not run, and why; hooks of pytest that conftest.py takes over."""

from collections import Counter

import pytest

DESELECTED = pytest.StashKey[int]()


def pytest_deselected(items):
    """Tests that `-m` or `-k` leaves out."""
    stash = items[0].config.stash
    stash[DESELECTED] = stash.get(DESELECTED, 0) + len(items)


def pytest_sessionfinish(session):
    """A worker hands the number of tests that it left out to the process that reports."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["deselected"] = session.config.stash.get(DESELECTED, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Workers collect the same tests, so any one's number is that of the run."""
    node.config.stash[DESELECTED] = getattr(node, "workeroutput", {}).get("deselected", 0)


def pytest_terminal_summary(terminalreporter, config):
    """Count skipped tests by reason, and those that the options left out."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", [])
    )
    if deselected := config.stash.get(DESELECTED, 0):
        reasons["left out by the options -m and -k; `make test-deep` leaves none out"] = deselected
    if reasons:
        terminalreporter.section("tests that were not run, and why")
        for reason, count in reasons.most_common():
            terminalreporter.write_line(f"{count:5,}  {reason}")
