"""Libraries above torch.distributed in a group of opticcl, those that are installed; none is a dependency of the package."""

import importlib.util
import re
from pathlib import Path

import pytest
from tests.execute.launch import needs_torch, torchrun

SCRIPT = Path(__file__).parent / "torch_third_parties.py"
NAMES = [name for name in ("accelerate", "transformers", "lightning") if importlib.util.find_spec(name) is not None]


@needs_torch
@pytest.mark.deep
@pytest.mark.skipif(
    not NAMES, reason="no library above torch.distributed is installed: pip install accelerate lightning"
)
@pytest.mark.parametrize("processes", [2, 4])
def test_third_parties(processes):
    """Each trains a model that is the same on all ranks, by its own ways into a group."""
    done = torchrun(processes, SCRIPT, processes, TRANSFORMERS_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"rank (\d+) done: " + " ".join(NAMES), done.stdout)) == list(map(str, range(processes)))
