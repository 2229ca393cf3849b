"""Every verb opens with its answer, in a sentence."""

import pytest
from tests.cli.verbs import VERBS

SMALL = "-f lightpath:shape=2x2"
ANSWERS = {
    "machine budget": (SMALL, "light arrives on lightpath"),
    "compare": (f"{SMALL} -f torus:shape=2x2 -s 1MB", "At 800 Gb/s a node, "),
    "compile": (f"{SMALL} -s 1MB", " steps, "),
    "machine control": ("-f oddl:shape=4 -s 1MB", "Control messages take "),
    "machine cost": (SMALL, "lightpath costs "),
    "execute": (f"{SMALL} -s 1MB", "has the right one"),
    "faults": (f"{SMALL} -s 1MB --fail laser:3", "Without laser:3, lightpath takes "),
    "jobs": (f"{SMALL} --place 2", "is verified on lightpath"),
    "list": ("", "OptiCCL knows "),
    "machine netlist": (SMALL, " optical elements"),
    "study papers": ("optree", " claims, reproduced: "),
    "plan": ("-f ocs:nodes=4 -s 1MB", " times the bound"),
    "simulate": (f"{SMALL} -s 1MB", "all_reduce of 1 MB takes "),
    "compare --sizes": (f"1KB:4KB {SMALL}", "At 800 Gb/s a node, lightpath:shape=2x2 takes "),
    "machine traffic": ("-f ramp:groups=2,racks=2,wavelengths=4 --slots 200", "The load is "),
    "train": ("-m lenet -n 4 -f ramp:groups=2,racks=1,wavelengths=2 -f torus:shape=2x2", "At 800 Gb/s a node, "),
    "verify": (
        f"{SMALL} -s 1MB",
        "The plan is right: data, circuits, light through every element. Not judged: power (--budget), times (--time).",
    ),
}
"""Verb -> a small question, and words of the first line of its answer."""

OTHERS = {
    "explore": "serves pages",
    "new": "writes files",
    "synthesize": "tests/synthesis has its answers",
    "trace": "tests/cli/test_trace.py has its answer",
    "warm": "compiles kernels",
}
"""Verb -> why it has no question here."""


def test_every_verb_is_here():
    """Each has a question or a reason."""
    in_tests_of_studies = {verb for verb in VERBS if verb.startswith("study ")}
    assert set(VERBS) <= ANSWERS.keys() | OTHERS.keys() | in_tests_of_studies


@pytest.mark.parametrize("verb", ANSWERS)
def test_the_first_line_answers(opticcl, monkeypatch, verb):
    """A sentence, at any width; no line is wider than the terminal."""
    words, says = ANSWERS[verb]
    monkeypatch.setenv("COLUMNS", "300")
    done = opticcl(*verb.split(), *words.split())
    assert done.returncode in (0, 1), done.stderr
    first = done.stdout.splitlines()[0].strip()
    assert says in first
    assert first.endswith(".")
    monkeypatch.setenv("COLUMNS", "80")
    narrow = opticcl(*verb.split(), *words.split()).stdout
    assert " ".join(narrow.split()).startswith(first)
