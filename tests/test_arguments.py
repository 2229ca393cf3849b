"""What a caller can get wrong at the public face, and what is taken as it is meant."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

import opticcl
from opticcl import OpticclError
from opticcl.errors import ParameterError
from opticcl.fabrics import fabric_at_scale, job
from opticcl.ir.task_graph import Task, TaskGraph
from opticcl.traces import load_job, load_workload
from opticcl.training.partition import partition
from opticcl.training.train import train

IDEAL = opticcl.fabric("ideal:nodes=8")
PLAN = opticcl.compile(IDEAL, "all_reduce", "1MB", algorithm="ring")
JOB = TaskGraph("own", "a test", 8, (Task("forward", compute_s=1e-3),))


def nodes(given):
    """Compile onto some nodes."""
    return opticcl.compile(IDEAL, "all_reduce", "1MB", algorithm="ring", nodes=given)


def compiled(fabric=IDEAL, collective="broadcast", size="1MB", **given):
    """Compile with one argument that is another."""
    return opticcl.compile(fabric, collective, size, **{"algorithm": "tree", **given})


def compared(fabrics=(IDEAL,), collective="all_reduce", size="1MB", **given):
    """Compare with one argument that is another."""
    return opticcl.compare(fabrics, collective, size, **{"algorithm": "ring", **given}).frame()


WRONG = {
    "fabric: None": lambda: opticcl.fabric(None),
    "fabric: 3": lambda: opticcl.fabric(3),
    "fabric: 3 is": lambda: compiled(3),
    "collective: None": lambda: compiled(collective=None),
    "size: None": lambda: compiled(size=None),
    "size: np.True_": lambda: compiled(size=np.bool_(True)),
    "algorithm: None": lambda: compiled(algorithm=None),
    "root: '1'": lambda: compiled(root="1"),
    "root: 1.0": lambda: compiled(root=1.0),
    "root: None": lambda: compiled(root=None),
    "nodes: 0.9": lambda: nodes([0.9, 1]),
    "nodes: np.float64(1.7)": lambda: nodes(np.array([1.7, 2.2])),
    "nodes: True": lambda: nodes([True, 2]),
    "nodes: array([0, 1])": lambda: nodes(np.array([[0, 1]])),
    "nodes: '0-3'": lambda: nodes("0-3"),
    "nodes: 4": lambda: nodes(4),
    "nodes: 1180591620717411303424": lambda: nodes([2**70]),
    "simulate: engine: None": lambda: PLAN.simulate(engine=None),
    "assumptions: None": lambda: PLAN.simulate(assumptions=None),
    "verify: num_chunks: 'a'": lambda: PLAN.verify(num_chunks="a"),
    "verify: seed: 'x'": lambda: PLAN.verify(seed="x"),
    "execute: arrays: None": lambda: PLAN.execute(None),
    "save: None": lambda: PLAN.save(None),
    "load: b'plan.csv'": lambda: opticcl.load(b"plan.csv"),
    "fabric: None is": lambda: compared([IDEAL, None]),
    "compare: no fabric is given": lambda: compared([]),
    "engine: None": lambda: compared(engine=None),
    "assumptions: None ": lambda: compared(assumptions=None),
    "size: None is": lambda: compared(size=None),
    "ideal: num_nodes: '8'": lambda: fabric_at_scale("ideal", "8"),
    "ideal: node_rate_bits_per_s: '100 GB'": lambda: fabric_at_scale("ideal", 8, "100 GB"),
    "fabric: None is no": lambda: fabric_at_scale(None, 8),
    "train: job: None": lambda: train(None, [IDEAL]),
    "train: the number of devices of lenet is missing": lambda: train("lenet", [IDEAL]),
    "partition: model: None": lambda: partition(None, 8),
    "load_job: None": lambda: load_job(None),
    "load_job: num_ranks: '64'": lambda: load_job("resnet50_ddp", num_ranks="64"),
    "load_workload: 3": lambda: load_workload(3),
    "train: algorithm: 3": lambda: train(JOB, IDEAL, algorithm=3),
}


@pytest.mark.parametrize("begins", WRONG)
def test_a_wrong_kind_is_refused_in_one_line_with_its_name(begins):
    """The argument, its value and what to try; never Python's own error from somewhere inside."""
    with pytest.raises(ParameterError) as caught:
        WRONG[begins]()
    text = str(caught.value)
    assert text.startswith(begins)
    assert "\n" not in text
    assert any(hint in text for hint in ("try ", "give ", "write "))


def test_numbers_of_numpy_are_numbers():
    """Sizes, rates, counts, roots and nodes."""
    assert compiled(size=np.int64(1000)).size_bytes == compiled(size=np.float32(1000)).size_bytes == 1000
    assert compiled(root=np.int8(3)).schedule.collective.root == 3
    made = opticcl.fabric("ideal", nodes=np.uint16(8), rate=np.float32(2**38))
    assert made == opticcl.fabric("ideal", nodes=8, rate=float(2**38))
    assert nodes(np.array([5, 2], np.uint8)).fabric.node_of_rank.tolist() == [5, 2]
    assert opticcl.fabric("torus", shape=np.array([2, 3])).parameters["shape"] == (2, 3)
    assert compared(size=np.array([10, 20]))["total_bytes"].to_list() == [30]


def test_one_alone_is_a_list_of_one():
    """A fabric, a text or a size."""
    texts, fabrics = compared("ideal:nodes=8"), compared(IDEAL, size=["1MB"])
    assert texts.equals(fabrics)
    assert train(JOB, "ideal").rows[0].machine == train(JOB, [IDEAL]).rows[0].machine == IDEAL


def test_nodes_may_be_whatever_has_whole_numbers_in_it():
    """Ranges, generators, arrays."""
    for given in (range(3), (n for n in (0, 1, 2)), np.arange(3), (0, np.int32(1), 2)):
        assert job(IDEAL, given) == job(IDEAL, [0, 1, 2])


def test_rates_at_scale_may_be_texts():
    """As everywhere else."""
    assert fabric_at_scale("ideal", 8, "100 Gb/s").node_rate_bits_per_s == 100e9


def test_a_model_is_trained_by_its_name():
    """Partitioned for that many devices, on fabrics of that many nodes."""
    found = opticcl.train("lenet", ["ideal", "torus"], nodes=4)
    assert (found.job.num_ranks, sorted(row.machine.name for row in found.rows)) == (4, ["ideal", "torus"])
    assert {row.machine.num_nodes for row in found.rows} == {4}


def test_the_face_shows_what_there_is():
    """Completion in a notebook, the base of all errors, and the signature of the function that is a room."""
    assert {"compile", "compare", "fabric", "Plan", "OpticclError", "train"} <= set(dir(opticcl))
    assert issubclass(ParameterError, OpticclError)
    assert list(inspect.signature(opticcl.fabric).parameters) == [
        "given",
        "num_nodes",
        "node_rate_bits_per_s",
        "parameters",
    ]


def test_showing_the_face_imports_nothing():
    """`dir` and the errors stay light."""
    code = "import sys, opticcl; dir(opticcl), opticcl.OpticclError; print('numba' in sys.modules, 'polars' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["False", "False"]


def test_what_is_printed_first_is_what_is_asked_first():
    """Polars prints the first four columns and the last four."""
    assert compared().columns[:5] == ["fabric", "algorithm", "total_s", "verified", "node_rate_bits_per_s"]


def test_plans_beside_are_plans():
    """Also on packets, where they do not matter."""
    for wrong in (3, ["ring"]):
        with pytest.raises(OpticclError, match="compile: beside"):
            opticcl.compile("ideal:nodes=4", "all_reduce", "1 MB", beside=wrong)


def test_training_takes_a_number_of_devices_and_of_processes():
    """No number of devices is no number, and no process does no work."""
    with pytest.raises(OpticclError, match=r"train: jobs=0 is less than one process; try 2"):
        opticcl.train("lenet", ["ideal"], nodes=2, jobs=0)
    with pytest.raises(OpticclError, match="lenet: devices=None is not a whole number"):
        partition("lenet", None)
