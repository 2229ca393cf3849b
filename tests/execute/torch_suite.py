"""PyTorch's own DistributedTest on four processes, by Gloo or by opticcl, in an edited copy; prints the outcomes.

Arguments: an empty folder, the backend, and names of tests if not all are wanted. Edits, the same for both backends:

- every condition on Gloo also admits opticcl (`EDITS`), which is registered as a plugin with the features of Gloo;
- the lists of backends whose ranges a profiler names stay: those of opticcl have names of their own;
- processes are forked and not spawned, so that each test does not import PyTorch again.
"""

import json
import os
import re
import sys
import unittest
from pathlib import Path

EDITS = [
    (r'BACKEND != "gloo"', 'BACKEND not in ("gloo", "opticcl")'),
    (r'BACKEND == "gloo"', 'BACKEND in ("gloo", "opticcl")'),
    (r'require_backend_is_available\(\{"gloo"\}\)', 'require_backend_is_available({"gloo", "opticcl"})'),
]
"""(pattern, replacement) of every condition on Gloo; each must be found."""


def edited_copy(folder):
    """Write the copy, and return its module."""
    from torch.testing._internal.distributed import __path__ as where

    text = (Path(where[0]) / "distributed_test.py").read_text()
    for pattern, replacement in EDITS:
        text, count = re.subn(pattern, replacement, text)
        assert count, f"{pattern} is not found; PyTorch has changed its test"
    (folder / "distributed_copy.py").write_text(text)
    sys.path.insert(0, str(folder))
    import distributed_copy

    return distributed_copy


def main():
    """Run the tests one after the other; a line of progress each on the standard error output."""
    folder, backend, *names = Path(sys.argv[1]), *sys.argv[2:]
    os.environ.update(BACKEND=backend, WORLD_SIZE="4", TEMP_DIR=str(folder), DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="120")
    import torch
    from torch.testing._internal.common_distributed import DistTestCases

    torch.set_num_threads(1)
    features = DistTestCases.backend_feature
    for feature in ("gpu", "cuda", "ddp", "subgroup", "plugin"):
        features[feature].add("opticcl")
    copy = edited_copy(folder)

    class TestCopy(copy.TestDistBackend, copy.DistributedTest._DistTestBase):
        """As test_distributed_spawn.py of PyTorch defines it."""

        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    outcomes = {}
    for name in names or unittest.defaultTestLoader.getTestCaseNames(TestCopy):
        result = unittest.TestResult()
        TestCopy(name).run(result)
        said = [text.strip().splitlines()[-1] for _, text in (*result.failures, *result.errors)]
        outcomes[name] = said[0] if said else "skipped" if result.skipped else "passed"
        print(name, outcomes[name], file=sys.stderr, flush=True)
    print(json.dumps(outcomes), flush=True)


if __name__ == "__main__":
    main()
