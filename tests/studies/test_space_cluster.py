"""A study on a dask cluster: the same results as in processes of this computer, whatever becomes of its workers."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import polars
import pytest
from tests.execute.launch import environment

from opticcl.studies.space.design import read_design
from opticcl.studies.space.runner import run_space

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone"),
    pytest.mark.skipif(
        importlib.util.find_spec("distributed") is None,
        reason="the extra cluster is not installed: pip install 'opticcl[cluster]'",
    ),
]

SCRIPT = Path(__file__).with_name("cluster_study.py")
EXAMPLES = Path(__file__).parents[2] / "examples"

SMALL = """
[axes]
fabric = ["ideal", "torus"]
nodes = [4, 6]
size = { from = "1KB", to = "1MB", factor = 1.3 }
"""

ENDS = '''
"""A fabric that ends its process at six nodes."""

import os
import signal
from dataclasses import dataclass

from opticcl.fabrics import register_fabric
from opticcl.fabrics.ideal import Ideal


@register_fabric("ends")
@dataclass(frozen=True, kw_only=True, repr=False)
class Ends(Ideal):
    """An ideal switch, up to five nodes."""

    def __post_init__(self) -> None:
        if self.nodes == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        super().__post_init__()
'''


def on_a_cluster(file, folder, kills, *plugins):
    """Run the study on two workers of a cluster; what it counted."""
    words = [sys.executable, str(SCRIPT), *map(str, (file, folder, kills, *plugins))]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_processes(file, folder):
    """Run the study in processes of this computer."""
    words = [sys.executable, "-m", "opticcl", "study", "run", str(file), "--folder", str(folder), "--jobs", "2"]
    subprocess.run(words, env=environment(), check=True, capture_output=True)


def same(one, other):
    """Whether two folders have the same table and answers."""
    names = sorted(path.name for path in other.glob("*.json"))
    assert names == sorted(path.name for path in one.glob("*.json"))
    for name in names:
        assert json.loads((one / name).read_text()) == json.loads((other / name).read_text()), name
    first, second = (polars.read_parquet(folder / "results.parquet") for folder in (one, other))
    return first.equals(second)


def test_batches_hold_every_point_once(tmp_path):
    """Many points of a machine are divided; few points of small machines are one task."""
    from opticcl.studies.space.cluster import LEAST_POINTS, MOST_POINTS, batches

    file = tmp_path / "mine.toml"
    for text in (SMALL.replace("1.3", "1.01"), SMALL.replace("[4, 6]", "[4, 5, 6, 7]").replace("1.3", "1000")):
        file.write_text(text)
        points = list(read_design(file).points())
        machines = read_design(file).machines(points)
        tasks = list(batches(machines, points))
        assert [number for task in tasks for number in task] == [number for some in machines for number in some]
        assert all(len(task) <= MOST_POINTS + LEAST_POINTS for task in tasks)
        assert all(len({points[number].values["nodes"] for number in task}) == 1 for task in tasks)
    assert len(tasks) < len(machines)


def test_a_killed_worker_changes_nothing(tmp_path):
    """A scheduler and two workers in processes of their own, one of which is killed while it computes."""
    file = tmp_path / "mine.toml"
    file.write_text(SMALL)
    found = on_a_cluster(file, tmp_path / "cluster", 1)
    assert (found["states"], found["computed"], found["killed"]) == ({"done": 108}, 108, 1)
    run_space(read_design(file), tmp_path / "pool")
    assert same(tmp_path / "cluster", tmp_path / "pool")


@pytest.mark.deep
def test_a_point_that_ends_its_workers_is_set_aside(tmp_path):
    """The others of its batch are computed; a plugin is imported by the workers too."""
    file, plugin = tmp_path / "mine.toml", tmp_path / "ends.py"
    file.write_text('[axes]\nfabric = ["ends", "torus"]\nnodes = [4, 6]\nsize = ["1KB", "1MB"]\n')
    plugin.write_text(ENDS)
    found = on_a_cluster(file, tmp_path / "cluster", 0, plugin)
    assert found["states"] == {"done": 6, "set aside": 2}
    assert set(found["set_aside"].values()) == {"its workers ended: a signal, or no memory"}


@pytest.mark.deep
def test_who_wins_on_a_cluster_and_in_processes(tmp_path):
    """Fifteen fabrics at 16 to 4,096 nodes: map, Pareto front and tornado are the same, with two workers killed."""
    file = EXAMPLES / "who-wins.toml"
    found = on_a_cluster(file, tmp_path / "cluster", 2)
    assert (found["killed"], found["states"]) == (2, {"done": 1245})
    in_processes(file, tmp_path / "pool")
    words = [sys.executable, "-m", "opticcl", "study", "run", str(file), "--folder", str(tmp_path / "cluster")]
    subprocess.run(words, env=environment(), check=True, capture_output=True)  # writes the answers, computes nothing
    assert {"map.json", "pareto.json", "tornado.json"} <= {path.name for path in (tmp_path / "pool").iterdir()}
    assert same(tmp_path / "cluster", tmp_path / "pool")


SBATCH = """#!/bin/sh
# Runs a job at once on this computer, as SLURM would on another one.
cp "$1" "$SLURM_HERE/$$.sh"
setsid sh "$SLURM_HERE/$$.sh" >"$SLURM_HERE/$$.log" 2>&1 &
echo $! >>"$SLURM_HERE/jobs"
echo "Submitted batch job $!"
"""
SCANCEL = '#!/bin/sh\nfor job; do kill -- "-$job" 2>/dev/null; done; echo "$@" >>"$SLURM_HERE/cancelled"; true\n'


@pytest.mark.deep
def test_jobs_of_slurm(tmp_path):
    """dask-jobqueue submits them and cancels them; `sbatch` and `scancel` are scripts here, no SLURM is installed."""
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    file = tmp_path / "mine.toml"
    file.write_text(SMALL)
    words = [
        sys.executable,
        "-m",
        "opticcl",
        "study",
        "run",
        str(file),
        "--folder",
        str(tmp_path / "slurm"),
        "--slurm",
        "2",
    ]
    options = ["cores=1", "memory=1GB", "interface=lo", "walltime=00:10:00"]
    run = subprocess.run(
        [*words, *(word for option in options for word in ("--slurm-set", option))],
        env=environment(SLURM_HERE=str(tmp_path), PATH=f"{tmp_path}:{environment()['PATH']}"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "108 done" in run.stdout
    jobs = (tmp_path / "jobs").read_text().split()
    assert len(jobs) == 2
    assert set((tmp_path / "cancelled").read_text().split()) == set(jobs)
    in_processes(file, tmp_path / "pool")
    assert same(tmp_path / "slurm", tmp_path / "pool")


WRONG = {
    "no address": (("--scheduler", "here"), "--scheduler='here' is not an address; write tcp://HOST:8786"),
    "no host": (("--scheduler", "tcp://"), "--scheduler='tcp://' is not an address"),
    "protocol": (("--scheduler", "mail://127.0.0.1:1"), "--scheduler='mail://127.0.0.1:1' is not an address"),
    "both": (("--scheduler", "tcp://a:1", "--slurm", "2"), "one cluster computes the points; leave one out"),
    "jobs": (("--scheduler", "tcp://a:1", "--jobs", "2"), "--jobs is of this computer"),
    "no jobs": (("--slurm", "0"), "--slurm=0 is not within 1 to 10000 jobs"),
    "unknown key": (("--slurm", "1", "--slurm-set", "core=1"), "unknown key 'core'; did you mean 'cores'?"),
    "key alone": (("--slurm-set", "cores=1"), "write --slurm 4 too"),
    "cores": (("--slurm", "1", "--slurm-set", "cores=x"), "cores=x: is not a whole number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options_are_one_line(tmp_path, opticcl, case):
    """Before anything is written."""
    file = tmp_path / "mine.toml"
    file.write_text(SMALL)
    words, message = WRONG[case]
    found = opticcl("study", "run", str(file), "--folder", str(tmp_path / "out"), *words)
    assert found.returncode == 2
    assert message in found.stderr
    assert not (tmp_path / "out").exists()


def test_options_of_a_cluster_are_of_a_file(opticcl):
    """Not of a named study."""
    found = opticcl("study", "map", "overlap", "--scheduler", "tcp://127.0.0.1:1")
    assert found.returncode == 2
    assert "there is no option --scheduler" in found.stderr


@pytest.mark.deep
def test_no_scheduler_is_one_line(tmp_path):
    """In a process of its own: dask starts threads, and processes with threads are not forked."""
    file = tmp_path / "mine.toml"
    file.write_text(SMALL)
    words = ["study", "run", str(file), "--folder", str(tmp_path / "out"), "--scheduler", "tcp://127.0.0.1:1"]
    found = subprocess.run(
        [sys.executable, "-m", "opticcl", *words], env=environment(), capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)
    assert "no scheduler answered in" in found.stderr
    assert not (tmp_path / "out").exists()
