"""After a run of the conformance matrix, tell which of its cells do not exist and why: silence is no success."""

from collections import defaultdict

from tests.matrix import SIZES, cells, compiled


def pytest_terminal_summary(terminalreporter):
    """Print the declined cells of the matrix if it ran."""
    ran = [r for key in ("passed", "failed") for r in terminalreporter.stats.get(key, []) if "conformance" in r.nodeid]
    if not ran:
        return
    terminalreporter.section("declined cells of the conformance matrix")
    for fabric, algorithm in cells():
        reasons: dict[str, list[int]] = defaultdict(list)
        for size in SIZES:
            plan = compiled(fabric, algorithm, size)
            if isinstance(plan, str):
                reasons[plan].append(size)
        if len(reasons) > 4:  # one a size: tell the first
            sizes = [s for at in reasons.values() for s in at]
            reasons = {f"{next(iter(reasons))} (and alike)": sorted(sizes)}
        for reason, at in reasons.items():
            terminalreporter.write_line(f"{fabric:10} {algorithm:22} at {' '.join(map(str, at))}: {reason}")
