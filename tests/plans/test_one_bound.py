"""Every verb prints one bound, with one name, for one plan."""

import json

import pytest

FABRICS = [
    "ramp",
    "sipac",
    "terarack",
    "oddl",
    "lightpath",
    "ocs:nodes=16,planes=2",
    "torus:shape=4x4",
    "topoopt",
    "ideal",
]


def asked(opticcl, verb, where, *more):
    """Algorithm, bound and its name."""
    sized = () if ":" in where else ("-n", 16)
    done = opticcl(verb, "-f", where, *sized, "-s", "1MB", *more, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    found = found["rows"][0] if "rows" in found else found
    return found["algorithm"], found["lower_bound_s"], found["bound_by"]


@pytest.mark.parametrize("collective", ["all_to_all", pytest.param("all_reduce", marks=pytest.mark.deep)])
@pytest.mark.parametrize("where", FABRICS)
def test_plan_simulate_and_compare(opticcl, where, collective):
    """The same plan has the same bound."""
    found = asked(opticcl, "plan", where, "-c", collective)
    assert asked(opticcl, "simulate", where, "-c", collective) == found
    assert asked(opticcl, "compare", where, "-c", collective, "--as-built", "--jobs", 1) == found


def test_switches_that_change_one_by_one(opticcl):
    """`plan --overlap` and the engine that times its plans."""
    where = "ocs:nodes=16,planes=2"
    _, seconds, name = asked(opticcl, "plan", where, "-c", "all_to_all", "--overlap")
    assert asked(opticcl, "simulate", where, "-c", "all_to_all", "--engine", "device")[1:] == (seconds, name)


def test_pieces_that_are_forwarded(opticcl):
    """`plan --streamed` and the engine that times its plans."""
    algorithm, seconds, name = asked(opticcl, "plan", "ramp", "-c", "broadcast", "--streamed")
    more = ("-c", "broadcast", "-a", algorithm, "--engine", "device")
    assert asked(opticcl, "simulate", "ramp", *more) == (algorithm, seconds, name)
