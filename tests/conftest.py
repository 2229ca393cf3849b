"""After a run of the conformance matrix, tell which of its cells do not exist and why: silence is no success."""

from tests.declined import declined_lines


def pytest_terminal_summary(terminalreporter):
    """Print the declined cells of the matrix if it ran."""
    ran = [r for key in ("passed", "failed") for r in terminalreporter.stats.get(key, []) if "conformance" in r.nodeid]
    if ran:
        terminalreporter.section("declined cells of the conformance matrix")
        for line in declined_lines():
            terminalreporter.write_line(line)
