"""Speed and memory of the whole job, each case in a process of its own: CPU seconds, wall seconds, peak memory, and the mark.

    python benchmarks/run.py [NAME ...]

CPU seconds include importing and loading compiled kernels. Each case runs once before it is counted, so that the kernels
are on disk.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAN_FILE = str(Path(tempfile.gettempdir()) / "opticcl-bench.parquet")
FULL = "ramp:groups=32,racks=32,wavelengths=64"

CASES = {
    "help": ("opticcl --help", "CPU < 0.3 s", "from opticcl.cli import app\napp(['--help'], standalone_mode=False)"),
    "ramp_65536": (
        "RAMP all_reduce, 65,536 nodes, compiled and verified",
        "< 20 s, < 2 GB",
        f"import opticcl\nv = opticcl.compile('{FULL}', 'all_reduce', '1GB', algorithm='ramp').verify()\nassert v.ok\nprint(v)",
    ),
    "ring_65536": (
        "ring all_reduce, 65,536 nodes, closed form (import left out)",
        "< 0.1 s",
        "import opticcl\np = opticcl.compile('ideal:nodes=64', 'all_reduce', '1GB', algorithm='ring').simulate()\n"
        "started = time.process_time()\n"
        "opticcl.compile('ideal:nodes=65536', 'all_reduce', '1GB', algorithm='ring').simulate()",
    ),
    "compare_1024": (
        "opticcl compare --nodes 1024, every system verified",
        "< 10 s",
        "from opticcl.cli import app\napp(['compare', '--nodes', '1024'], standalone_mode=False)",
    ),
    "auto_1024": (
        "auto over all algorithms, SiPAC of 1,024 nodes",
        "< 2 s",
        "import opticcl\np = opticcl.compile('sipac:radix=4,levels=2', 'all_reduce', '1MB')\nstarted = time.process_time()\n"
        "print(opticcl.compile('sipac:radix=32,levels=2', 'all_reduce', '100MB'))",
    ),
    "wrht_4096": (
        "WRHT, 4,096 nodes, all fibre segments checked",
        "< 5 s",
        "import opticcl\nassert opticcl.compile('terarack:nodes=4096', 'all_reduce', '1MB', algorithm='wrht').verify().ok",
    ),
    "lumorph_256": (
        "LUMORPH, 256 nodes, compiled and verified (import left out)",
        "< 1 s",
        "import opticcl\nopticcl.compile('lightpath:shape=4x4', 'all_reduce', 1, algorithm='lumorph').verify()\n"
        "started = time.process_time()\n"
        "assert opticcl.compile('lightpath', 'all_reduce', '1MB', algorithm='lumorph:radix=4').verify().ok",
    ),
    "execute_8": (
        "ring all_reduce run on 8 x 100 MB of float32 (import left out)",
        "< 3 s, < 2 GB",
        "import numpy as np\nimport opticcl\nplan = opticcl.compile('ideal:nodes=8', 'all_reduce', '100MB', algorithm='ring')\n"
        "data = np.ones((8, 25_000_000), np.float32)\nstarted = time.process_time()\n"
        "assert plan.execute(data)[7].max() == 8",
    ),
    "budget_65536": (
        "budgets and limits of every optical fabric, 65,536 nodes",
        "< 0.1 s",
        "from opticcl.estimate.budget import budget\nfrom opticcl.estimate.limits import limits\n"
        "from opticcl.fabrics import fabric, fabric_at_scale\nfrom opticcl.optics.values import optics\n"
        "names = ('lightpath', 'ramp', 'sipac', 'terarack', 'terarack_torus')\n"
        "made = [fabric_at_scale(name, 65536) for name in names] + [fabric('oddl:shape=65536')]\n"
        "values = [optics(one.light_path.table, 'typical') for one in made]\n"
        "started = time.process_time()\n"
        "for one, of in zip(made, values):\n"
        "    budget(one, of), budget(one, of, 'typical'), limits(one, of)",
    ),
    "light_65536": (
        "light of 65,536 circuits of a ring: elements and margin of each",
        "< 0.1 s",
        "from opticcl.circuits import lower\nfrom opticcl.fabrics import fabric_at_scale\n"
        "from opticcl.optics.values import chain_of, optics\nfrom opticcl.schedule import generate\nlit = []\n"
        "for name in ('lightpath', 'ramp', 'terarack'):\n"
        "    one = fabric_at_scale(name, 65536)\n"
        "    circuits = lower(one, generate('ring', 'all_reduce', one)).rounds(0)[0]\n"
        "    lit.append((one.light_path, circuits, optics(one.light_path.table, 'typical')))\n"
        "started = time.process_time()\n"
        "for path, circuits, of in lit:\n"
        "    counts = path(circuits)\n"
        "    assert len(chain_of(path, of, counts.any(axis=0)).margin_db(counts)) == 65536",
    ),
    "cost_65536": (
        "bills of every fabric, 65,536 nodes",
        "< 0.1 s",
        "from opticcl.errors import FabricError\nfrom opticcl.estimate.cost import bill_of\n"
        "from opticcl.fabrics import FABRICS, fabric_at_scale\nmade = []\n"
        "for name in FABRICS.names():\n"
        "    try:\n"
        "        made.append(fabric_at_scale(name, 65536))\n"
        "    except FabricError:\n"
        "        made.append(fabric_at_scale(name, 32768))  # ODDL's largest grid\n"
        "started = time.process_time()\n"
        "for one in made:\n"
        "    if one.parts:\n"
        "        bill_of(one)",
    ),
    "plan_file_write": (
        "RAMP all_reduce plan file, 65,536 nodes, written to Parquet",
        "< 60 s, < 2 GB",
        f"import opticcl\nplan = opticcl.compile('{FULL}', 'all_reduce', '1GB', algorithm='ramp')\n"
        f"print(plan.save({PLAN_FILE!r}))",
    ),
    "plan_file_read": (
        "the same plan file loaded and verified",
        "< 60 s, < 2 GB",
        f"import opticcl\nprint(opticcl.load({PLAN_FILE!r}))",
    ),
}
RAMP_OPERATIONS = (
    "reduce_scatter",
    "all_gather",
    "all_to_all",
    "scatter",
    "gather",
    "reduce",
    "broadcast",
    "barrier",
)
CASES |= {
    f"ramp_{name}": (
        f"RAMP {name}, 65,536 nodes, compiled and verified",
        "< 30 s, < 2 GB",
        f"import opticcl\nv = opticcl.compile('{FULL}', '{name}', '1GB', algorithm='ramp').verify()\nassert v.ok\nprint(v)",
    )
    for name in RAMP_OPERATIONS
}


def run_case(code: str) -> None:
    """Run one case in this process and print its figures as the last line."""
    scope = {"time": time, "started": 0.0}
    begun = time.monotonic()
    exec(code, scope)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "cpu_s": time.process_time() - scope["started"],
        "wall_s": time.monotonic() - begun,
        "peak_mb": usage.ru_maxrss / 1024,
    }
    print(json.dumps(figures))


def main(names: list[str]) -> None:
    """Print a row a case."""
    print(f"{'case':<66}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}  mark")
    for name in names or CASES:
        title, mark, _ = CASES[name]
        for _ in range(2):  # once to compile the kernels, once to count
            done = subprocess.run(
                [sys.executable, __file__, "--case", name], capture_output=True, text=True, check=False
            )
        if done.returncode:
            print(f"{title:<66}  failed: {done.stderr.strip().splitlines()[-1]}")
            continue
        f = json.loads(done.stdout.strip().splitlines()[-1])
        print(f"{title:<66}{f['cpu_s']:>8.2f}{f['wall_s']:>8.2f}{f['peak_mb']:>9.0f}  {mark}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        run_case(CASES[sys.argv[2]][2])
    else:
        main(sys.argv[1:])
