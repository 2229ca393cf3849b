"""Every verb opens with its answer, in a sentence."""

import pytest
from tests.cli.verbs import VERBS

SMALL = "-f lightpath:shape=2x2"
ANSWERS = {
    "budget": (SMALL, "light arrives on lightpath"),
    "compare": (f"{SMALL} -f torus:shape=2x2 -s 1MB", "At 800 Gb/s a node, "),
    "compile": (f"{SMALL} -s 1MB", " steps, "),
    "control": ("-f oddl:shape=4 -s 1MB", "Control messages take "),
    "cost": (SMALL, "lightpath costs "),
    "execute": (f"{SMALL} -s 1MB", "has the right one"),
    "faults": (f"{SMALL} -s 1MB --fail laser:3", "Whole, lightpath takes "),
    "jobs": (f"{SMALL} --place 2", "is verified on lightpath"),
    "list": ("", "OptiCCL knows "),
    "netlist": (SMALL, " optical elements"),
    "papers": ("oddl", " claims: "),
    "plan": ("-f ocs:nodes=4 -s 1MB", " times the bound"),
    "simulate": (f"{SMALL} -s 1MB", "all_reduce of 1 MB takes "),
    "sweep": (f"{SMALL} --from 1KB --to 4KB", "lightpath:shape=2x2 takes "),
    "traffic": ("-f ramp:groups=2,racks=2,wavelengths=4 --slots 200", "The load is "),
    "train": ("-m lenet -n 4 -f ramp:groups=2,racks=1,wavelengths=2 -f torus:shape=2x2", "At 800 Gb/s a node, "),
    "verify": (f"{SMALL} -s 1MB", "The plan is right."),
}
"""Verb -> a small question, and words of the first line of its answer."""

OTHERS = {
    "convert": "writes a file",
    "explore": "serves pages",
    "new": "writes files",
    "run": "needs processes of MPI",
    "study": "tests/cli/test_study.py and test_design_space.py have its answers",
    "synthesize": "tests/synthesis has its answers",
    "trace": "tests/cli/test_trace.py has its answer",
    "warm": "compiles kernels",
}
"""Verb -> why it has no question here."""


def test_every_verb_is_here():
    """Each has a question or a reason."""
    assert set(VERBS) <= ANSWERS.keys() | OTHERS.keys()


@pytest.mark.parametrize("verb", ANSWERS)
def test_the_first_line_answers(opticcl, monkeypatch, verb):
    """A sentence, at any width; no line is wider than the terminal."""
    words, says = ANSWERS[verb]
    monkeypatch.setenv("COLUMNS", "300")
    done = opticcl(verb, *words.split())
    assert done.returncode in (0, 1), done.stderr
    first = done.stdout.splitlines()[0].strip()
    assert says in first
    assert first.endswith(".") or verb == "papers"
    monkeypatch.setenv("COLUMNS", "80")
    narrow = opticcl(verb, *words.split()).stdout
    assert " ".join(narrow.split()).startswith(first)
