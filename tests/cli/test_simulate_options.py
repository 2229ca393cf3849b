"""`opticcl simulate`: options of the packet engine, what it prints, and what is refused before anything is simulated."""

import os

import pytest

from opticcl.simulate import ENGINES

PAIRS = ["--fabric", "leaf_spine:nodes=16,nodes_per_leaf=4,spines=4", "--collective", "all_to_all", "--size", "1MB"]


def test_every_option_reaches_the_engine(answer):
    """What was assumed is printed; the same seed gives the same time."""
    engine = (
        "packet:cell_bytes=1KiB,queue=input,forwarding=cut_through,buffer_bytes=8KiB,transport=windowed,window=8,"
        "retransmit_s=20us,order=shuffled,seed=5,mode=asynchronous,max_events=1000000"
    )
    found, code = answer("simulate", *PAIRS, "--engine", engine)
    assert code == 0
    told = {
        "mode": "asynchronous", "cell_bytes": 1024, "queue": "input", "forwarding": "cut_through", "buffer_bytes": 8192,
        "transport": "windowed", "window": 8, "retransmit_s": 2e-5, "order": "shuffled", "seed": 5,
    }  # fmt: skip
    assert told.items() <= found["assumptions"].items()
    assert found["total_s"] >= found["lower_bound_s"] > 0


def test_the_table_is_for_people(opticcl):
    """Steps, parts, the bound, and every assumption by its name."""
    done = opticcl("simulate", *PAIRS, "--engine", "packet")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("all_to_all of 1 MB takes 20.58 us on leaf_spine with 16 nodes")
    assert "cell_bytes=4096, queue=output, forwarding=store_and_forward, transport=paced" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine", "flow", "--links", "same.json", "--trace", "./same.json"], "it is the file of --links"),
        (["--links", "plan.json"], "it is the input file"),
        (["--links", "folder.csv"], "it is a folder"),
        (["--out", "closed/load.svg"], "the folder closed is not writable"),
    ],
)
def test_files_in_the_way_are_refused_before_anything_is_simulated(opticcl, monkeypatch, options, words, tmp_path):
    """Two outputs in one file, the plan file itself, a folder, and a folder that is closed."""
    monkeypatch.chdir(tmp_path)
    plan_file = tmp_path / "plan.json"
    opticcl("compile", "-f", "ideal:nodes=3", "-c", "all_gather", "-s", "3KB", "-a", "ring", "--out", plan_file)
    before = plan_file.read_bytes()
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "closed").mkdir()
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path.name != "closed" and may(path, mode))  # root may all
    monkeypatch.setattr("opticcl.simulate.simulate", lambda *a, **k: pytest.fail("it was simulated"))
    done = opticcl("simulate", plan_file, *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert plan_file.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["closed", "folder.csv", "plan.json"]


@pytest.mark.parametrize(
    ("fabric", "collective", "ends"),
    [
        ("lightpath:shape=1x4,dead_tiles=1", "all_reduce", "from node 0 at (row=0, column=0) to node 2"),
        (
            "lightpath:shape=2x2,dead_waveguides=0-1:40+2-3:40",
            "broadcast",
            "from node 0 at (row=0, column=0) to node 1",
        ),
        ("oddl:shape=4x4", "send_recv", "from node (0, 0) to node (1, 1)"),
    ],
)
@pytest.mark.parametrize("engine", ["closed_form", "flow"])
def test_auto_says_why_there_is_nothing_to_choose(opticcl, engine, fabric, collective, ends):
    """Where dead parts cut a grid, or one hop does not lead to everyone: which nodes lie apart, and what to give."""
    done = opticcl("simulate", "--fabric", fabric, "--collective", collective, "--engine", engine)
    assert done.returncode == 2
    assert f"no algorithm does {collective} on" in done.stderr
    assert f"no circuit leads {ends}" in done.stderr
    assert "give a job of nodes that are joined" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("engine", ENGINES.names())
def test_the_options_of_an_engine_are_listed_by_its_name(answer, engine):
    """Names and defaults come from the class of its options."""
    (entry,) = answer("list", engine)[0]["engines"]
    assert [one["name"] for one in entry["parameters"]] == list(ENGINES.get(engine).option_names())
    for one in entry["parameters"]:
        assert one["about"]


def test_the_help_has_topics(opticcl):
    """In the order of a question: what, when, what is written."""
    for verb, topics in {
        "simulate": ["The plan", "Time", "Output"],
        "train": ["The job", "Fabrics", "Time", "Faults", "Output"],
    }.items():
        text = opticcl(verb, "--help").stdout
        places = [text.index(f"\n{topic}:\n") for topic in topics]
        assert places == sorted(places)


def test_the_help_of_train_lists_the_options_of_its_runtime(opticcl):
    """A flag that can be switched off, a size and a choice."""
    text = " ".join(opticcl("train", "--help").stdout.split())
    assert "--overlap / --no-overlap Whether communication overlaps computation [default: overlap]" in text
    assert "--fusion <size> Maximum size of a fused message; a larger gradient is sent alone [default: 16 MB]" in text
    assert "--fusion-mode [greedy|static|none]" in text
