"""Every command of the README and of docs/ runs as it is printed, in a folder with the shipped examples and studies alone."""

import re
import shlex
import shutil
import subprocess
import sys

import pytest
from tests.docs.pages import EXAMPLES, PAGES, STUDIES, blocks, commands
from tests.execute.launch import mpiexec, needs_mpi

LANGUAGES = {"sh", "python", "toml", "text"}

MANY_SCHEDULERS = (
    "opticcl machine traffic -f ramp:groups=4,racks=4,wavelengths=16 --load 0.5 --load 0.8 --load 0.9 --load 0.95 --skew 1 "
    "--skew 6 --scheduler native --scheduler native:iterations=2 --scheduler rack --scheduler cyclic --scheduler cyclic:hops=2 "
    "--slots 6000 -o traffic.svg"
)

MANY_POLICIES = (
    "opticcl jobs -f lightpath:shape=8x8 --arrivals poisson:load=0.85,count=60 --policy first --policy best --policy buddy "
    "--policy any --policy exact --seed 1 -o jobs.svg"
)

DEEP = {
    "opticcl compare --nodes 16 --size 1KB --sensitivity": (
        "every value halved and doubled, 2 s; tests/plans/test_ranks.py has fewer fabrics"
    ),
    "opticcl study run examples/who-wins.toml --dry-run": "counts and estimates 1,245 points, 2 s; a small study remains",
    "opticcl compare --nodes 64 --size 1MB --algorithm all --equal rate=2.4Tb/s -o out.html": "250 plans, 20 s",
    "opticcl compare --nodes 64 --size 100MB --out answer.html --out answer.json": (
        "draws 16 fabrics, 5 s; tests/report writes smaller pages"
    ),
    "opticcl compare --nodes 64 --size 100MB": "all fabrics, 3 s; `make demo` has them, and other pages fewer",
    "opticcl compare --nodes 16 --size 1MB --equal cost=9000": (
        "all fabrics at two numbers of nodes, 2 s; tests/plans/test_equal.py has fewer"
    ),
    "opticcl train -m transformer --target-loss 2.0 --max-devices 65536 --device a100 -f ramp -f fat_tree": (
        "1 s; tests/training/test_target.py has the same answers"
    ),
    "opticcl study papers": "all claims, 10 s; tests/papers judges each",
    "opticcl machine control -f oddl:shape=4 --explore": (
        "all orders of messages, 6 s; tests/operations explores smaller machines"
    ),
    "opticcl machine cost -n 1024 -c all_reduce -s 1GB": "all fabrics at 1,024 nodes, 5 s",
    "opticcl train --model vgg19 --nodes 1024 --equal rate=100Gb/s --samples 1281167 --epochs 20": "the same, 8 s",
    'opticcl train --model "transformer:layers=24,hidden=2048,heads=16" --nodes 512 --tensor 8 --groups machine': (
        "all fabrics at 512 nodes, 5 s"
    ),
    "opticcl machine control -f oddl:shape=8 --processes --loss 0.2 --seed 1": (
        "eight processes, 3 s; tests/operations has the same"
    ),
    "opticcl verify -f ramp:groups=32,racks=32,wavelengths=64 -c all_to_all -s 1GB -a skewed_exchange:steps=1": (
        "4.3e9 circuits, 3 s; tests/verify/test_images.py has smaller machines"
    ),
    "opticcl faults -f sipac:radix=3,levels=2,wavelengths=3 --fail comb_laser:3 --assume compute=none --streamed": (
        "many numbers of pieces, 2 s; tests/cli/test_faults.py has a smaller machine"
    ),
    "opticcl plan -f ocs:nodes=16 -c reduce_scatter -s 1MiB --start plan.parquet --time-limit 10s": (
        "2 s; tests/cli/test_plan.py starts from smaller plans"
    ),
    "opticcl faults -f sipac:radix=3,levels=2 --fail comb_laser:5 --fail switch:3+comb_laser:5": (
        "two answers, 1 s; tests/cli/test_faults.py has smaller machines"
    ),
    "opticcl train --model vgg19 --nodes 64 --local-batch 32 --device a100 --no-overlap --straggler 3=1.2": (
        "all fabrics, 1 s; the README trains on 64 nodes, tests/cli/test_train.py has stragglers"
    ),
    "opticcl train --model resnet50 --nodes 64 --device a100": "the same, another model",
    "opticcl compare --nodes 64 --size 100MB --collective all_reduce": "that of the README, with its default",
    "opticcl faults -f sipac:radix=3,levels=2 --fail comb_laser:5:weak=0.9 --fail comb_laser:5:weak=0.2": (
        "two answers, 1 s; tests/fabrics/test_weak_parts.py has the same"
    ),
    "opticcl plan -f ocs:nodes=16 -c all_to_all -s 1MiB --assumptions published": "1 s; the same plan on common remains",
    "opticcl study tornado examples/who-wins-small.toml --folder small.study": "runs a study, 1 s; two other answers remain",
    "opticcl train --model resnet50 -n 16 -f oddl:shape=4x4 --faults examples/faults.json --spares 1": (
        "1 s; tests/cli/test_train_faults.py has the same"
    ),
    "opticcl compare -n 64 --sizes 1KB:1GB:4": "all fabrics at 12 sizes, 1 s; tests/cli/test_sweep.py has fewer fabrics",
    "opticcl compare -f lightpath:shape=8x8,waveguides=1 -c all_to_all -s 10MB --json": "1 s; smaller ones remain",
    "opticcl study run studies/lumorph-figure-5-left.toml --dry-run": "1 s; another study file is counted",
    "opticcl study breakeven examples/who-wins-small.toml --folder small.study --where nodes=16": (
        "runs a study, 1 s; two other answers of the page remain"
    ),
    "opticcl machine traffic -f ramp:groups=4,racks=4,wavelengths=16 --load 0.4 --slots 600 --beside plan.parquet "
    "--reserve planes=2": ("1 s; tests/cli/test_traffic.py has fewer slots"),
    "opticcl machine control -f oddl:shape=32x32 -a halving_doubling": (
        "1,024 nodes, 1 s; tests/operations has smaller machines"
    ),
    "opticcl plan -f ocs --import examples/swot.toml": "1 s; tests/plans/test_published.py reads the same form",
    "opticcl train --workload examples/graph.fbuf": "1 s; tests/traces/test_graphs.py reads the same form",
    "opticcl train --workload examples/profile.json --compute-scale 2": "1 s; the same without the factor remains",
    "opticcl compare --nodes 64 --as-built": "1 s; --equal cost=9000 on 16 nodes remains",
    "opticcl machine traffic -f ramp:groups=4,racks=4,wavelengths=16 --load 0.9 --slots 600 --verify": (
        "1 s; another load remains"
    ),
    "opticcl study run examples/who-wins-small.toml": "runs a study, 3 s; two answers of the page run it too",
    "opticcl compare --nodes 64 --collective all_to_all --size 1MB --engine flow": (
        "all fabrics, 3 s; docs/engines.md compares two by the same engine"
    ),
    "opticcl study run studies/lumorph-figure-8b.toml": "2 s; its lines are drawn, which runs it",
    "opticcl faults -f oddl:shape=4x4 --replay examples/faults.json --ranks 14 --spares 2 --assume restart=30min "
    "-o replay.svg": ("2 s; tests/cli/test_faults.py replays the same record"),
    "opticcl train --workload examples/layers.txt --nodes 16 --clock 1GHz": (
        "all fabrics, 1 s; tests/cli/test_train.py has a clock"
    ),
    "opticcl compare --workload examples/profile.json": "all fabrics, 1 s; the same trace is trained on",
    "opticcl train --workload examples/profile.json": "1 s; the same with its outputs remains",
    "opticcl compare --nodes 16 --assume endpoint=gpu_nic": "all fabrics, 2 s; --equal cost=9000 on 16 nodes remains",
    "opticcl jobs -f oddl:shape=8x8 --arrivals poisson:load=0.7,count=20 --policy best --json": (
        "1 s; tests/cli/test_jobs_over_time.py has the same"
    ),
    "mpiexec -n 2 opticcl execute --transport mpi -f lightpath:shape=1x2 -s 1kB -s 1MB --compare": (
        "3 s; tests/execute/test_mpi.py has the same"
    ),
    "mpiexec -n 2 opticcl execute --transport mpi -f lightpath:shape=1x2 -s 100kB --pace 50000 -o gantt.svg": (
        "3 s; tests/execute/test_paced.py has the same"
    ),
    "opticcl train --model vgg19 --nodes 64": "all fabrics, 2 s; tests/cli/test_train.py ranks the same model on fewer nodes",
    "opticcl simulate --fabric leaf_spine:nodes=64 --collective all_to_all --size 64MB --engine packet": (
        "1 s; golden records have the engine"
    ),
    "opticcl plan -f ramp:groups=4,racks=2,wavelengths=8 -c broadcast -s 1MB --assumptions published --streamed": (
        "1 s; tests/plans/test_streams.py plans smaller machines"
    ),
    'opticcl compare --nodes 64 --size 100MB --columns "fabric,time,x bound,published,USD per node"': (
        "that of the README, with other columns; tests/cli/test_command.py chooses columns"
    ),
    "opticcl train -m transformer:layers=4,hidden=1024,heads=16 --tensor 4 --pipeline 2 -n 64 -f ramp -f oddl -f torus "
    "--layout auto": ("all layouts, 3 s; tests/cli/test_train.py and tests/training/test_train.py choose among them"),
    MANY_SCHEDULERS: "40 runs, 30 s",
    MANY_POLICIES: "300 jobs, 9 s",
}
"""Commands that `make test-deep` runs, with the reason."""

ELSEWHERE = {
    "opticcl study run examples/who-wins.toml --scheduler tcp://10.0.0.1:8786": "run by tests/studies/test_space_cluster.py",
    "opticcl study run examples/who-wins.toml --slurm 8 --slurm-set cores=16 --slurm-set memory=64GB": (
        "run by tests/studies/test_space_cluster.py, with scripts in place of SLURM"
    ),
    "make bench ONLY=routes": "measures for minutes; tests/test_benchmarks.py tests the runner",
    "make demo": "run by .ci/run on a clean clone",
    "make test": "runs this very test",
    "opticcl explore": "serves until it is interrupted; tests/explorer/test_serve.py starts it",
    "torchrun --nproc-per-node 2 examples/train_ddp.py --backend opticcl": "run by tests/execute/test_torch.py",
    "torchrun --nproc-per-node 2 examples/train_fsdp.py --backend opticcl": "run by tests/execute/test_torch.py",
    "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e . && .venv/bin/opticcl compare --nodes 64": (
        "run by .ci/run on a clean clone"
    ),
}
"""Commands that no test can run, with the reason."""

ANSWERS_NO = {
    "opticcl machine budget -f oddl --set wss32.loss=17dB --set fibre.length=50m",
    "opticcl machine budget -f terarack -n 64 --optics typical -a wrht",
    "opticcl machine traffic -f ramp:groups=8,racks=8,wavelengths=64 --flows commercial_cloud --load 0.9",
    "opticcl machine traffic -f ramp:groups=8,racks=8,wavelengths=64 --skew 6 --placement group --load 0.9",
    MANY_SCHEDULERS,
    "opticcl verify -f ramp:groups=2,racks=2,wavelengths=4 -c all_reduce -a ramp:variant=published",
    "opticcl verify -f ramp:groups=4,racks=3,wavelengths=4 -c all_reduce -a ramp:variant=published",
}
"""Commands that end with exit code 1: the light does not suffice, or the plan is the one that a paper prints."""

CHAINS = {
    (*command.before, command.text): command
    for command in sorted(commands(), key=lambda command: command.shown != "")
    if command.text not in ELSEWHERE
}
"""The last command of each chain; a chain that begins another is run with it, if no page shows what it prints."""

BEGUN = {chain[:n] for chain in CHAINS for n in range(1, len(chain)) if chain[-1] not in DEEP}
RUN = [
    command for chain, command in CHAINS.items() if (chain not in BEGUN or command.shown) and command.text not in DEEP
]
RUN_DEEP = [command for command in CHAINS.values() if command.text in DEEP]


def test_no_command_is_left_out():
    """Every command is run by a test, or is in a table above with its reason; the tables hold nothing else."""
    printed = [command.text for command in commands()]
    assert len(printed) > 60
    assert sum(command.shown != "" for command in CHAINS.values()) >= 5
    run = {line for command in (*RUN, *RUN_DEEP) for line in (*command.before, command.text)}
    assert set(printed) - run == ELSEWHERE.keys()
    assert DEEP.keys() | ELSEWHERE.keys() | ANSWERS_NO <= set(printed)


def test_commands_stand_in_blocks_for_a_shell():
    """Every block has a language, and no command is merely indented."""
    assert {str(block) for block in blocks() if block.language not in LANGUAGES} == set()
    for page in PAGES:
        assert not re.search(r"^ {2,}(opticcl|python3?|make) ", page.read_text("utf-8"), re.MULTILINE), page


def test_commands_within_sentences_name_verbs_and_options(opticcl):
    """`opticcl verify --budget`, in the middle of a line, is a verb and an option of it."""
    known = {}
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for words in re.findall(r"`opticcl\s+([a-z][^`]*)`", text):
            verb, *rest = words.split()
            if verb in ("machine", "study") and rest:
                verb = f"{verb} {rest.pop(0)}"
            if verb not in known:
                done = opticcl(*verb.split(), "--help")
                assert done.returncode == 0, f"{page.name}: opticcl {words}"
                known[verb] = done.stdout
            for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", " ".join(rest)):
                assert option in known[verb], f"{page.name}: opticcl {words}"
    assert len(known) > 5


@pytest.fixture
def folder(tmp_path, monkeypatch, plugins_forgotten):
    """The folder in which a command runs."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    shutil.copytree(STUDIES, tmp_path / "studies")
    monkeypatch.chdir(tmp_path)


def under_mpiexec(words):
    """`mpiexec -n 2 opticcl ...` by the launcher and the Python of this environment; skipped where it has no MPI."""
    if needs_mpi.args[0]:
        pytest.skip(needs_mpi.kwargs["reason"])
    option, processes, program, *arguments = words
    assert (option, program) == ("-n", "opticcl")
    return mpiexec(processes, "-m", "opticcl", *arguments)


def run(command, opticcl, monkeypatch):
    """The command, after those that prepare it."""
    for line in (*command.before, command.text):
        first, *words = shlex.split(line)
        if first == "opticcl":
            done = opticcl(*words)
        elif first == "mpiexec":
            done = under_mpiexec(words)
        elif first == "python":
            done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        else:
            assert first == "export", line
            monkeypatch.setenv(*words[0].split("=", 1))
            done = opticcl("list")
        assert done.returncode == (1 if line in ANSWERS_NO else 0), done.stderr
        assert done.stdout.strip()
    printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    assert printed.startswith(command.shown)


@pytest.mark.parametrize("command", RUN, ids=str)
def test_command(folder, opticcl, monkeypatch, command):
    """It ends well and prints something, and what its page shows first."""
    run(command, opticcl, monkeypatch)


ROWS = re.findall(
    r"^\| `([\w.-]+)` \|.*\| `((?:opticcl|torchrun|jupyter) [^`]*)` \|$",
    (EXAMPLES / "README.md").read_text("utf-8"),
    re.MULTILINE,
)


def test_every_example_has_a_command():
    """The table of examples/README.md lists every file beside it with a command that reads it."""
    assert {name for name, _ in ROWS} == {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    assert all(f"examples/{name}" in command for name, command in ROWS)


DEEP_EXAMPLES = {
    "training-study.toml": "a study, 1 s; a small one remains",
    "who-wins-256.toml": "1 s; another study is counted",
    "comms.log": "all fabrics, 2 s; tests/traces reads the same form",
    "model.toml": "all fabrics, 2 s; tests/training/test_models.py reads the same form",
    "sizes.toml": "all fabrics, 2 s; tests/traces/test_sizes.py reads the same form",
    "resnet50-step.toml": "all fabrics at 64 nodes, 3 s; `make demo` runs it, tests/cli/test_cli.py reads a workload",
    "kernel_sizes.toml": "all fabrics, 2 s; tests/traces/test_kernel_names.py reads the same form",
    "decoder.toml": "1 s; tests/training/test_decoder.py has smaller models",
}
"""Examples that `make test-deep` runs, with the reason."""


@pytest.mark.parametrize(
    ("name", "command"),
    [
        pytest.param(*row, marks=[pytest.mark.deep] * (row[0] in DEEP_EXAMPLES))
        for row in ROWS
        if row[1].startswith("opticcl ") and (row[1],) not in CHAINS
    ],
)
def test_example(folder, opticcl, name, command):
    """Its command ends well, if no page prints it too; others run in tests/execute/test_torch.py and test_shown.py."""
    done = opticcl(*shlex.split(command)[1:])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.deep
@pytest.mark.parametrize("command", RUN_DEEP, ids=str)
def test_long_command(folder, opticcl, monkeypatch, command):
    """The same for those that take long."""
    run(command, opticcl, monkeypatch)
