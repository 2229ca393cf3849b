"""The commands of the golden records: every verb with fabrics, collectives, engines and sizes, and refusals."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import cycle

from opticcl.collective import COLLECTIVES

MESSAGES = ("1KB", "1MB", "100MB")
PACKET = ("bcube", "dragonfly", "fat_tree", "ideal", "leaf_spine", "superpod", "torus")
"""Fabrics whose packets share links."""
PAPERS = ("ramp", "sipac", "terarack", "oddl", "lightpath")
CIRCUITS = (*PAPERS, "ocs", "sip_ring", "terarack_torus", "topoopt")
FABRICS = tuple(sorted((*PACKET, *CIRCUITS)))
ENGINES = {
    "closed_form": (),
    "flow": ("--engine", "flow"),
    "flow-asynchronous": ("--engine", "flow", "--mode", "asynchronous"),
    "packet": ("--engine", "packet"),
    "packet-asynchronous": ("--engine", "packet:cell_bytes=9kB", "--mode", "asynchronous"),
    "device": ("--engine", "device"),
}
SMALL = {
    "ramp": "ramp:groups=2,racks=2,wavelengths=4",
    "sipac": "sipac:radix=3,levels=2",
    "terarack": "terarack:nodes=6,wavelengths=4",
    "oddl": "oddl:shape=2x4",
    "lightpath": "lightpath:shape=3x3,waveguides=1",
}
"""A small machine of each paper."""
PART = {
    "ramp": "transmitter:3",
    "sipac": "comb_laser:5",
    "terarack": "modulator:3",
    "oddl": "transmitter:3",
    "lightpath": "laser:80",
}
"""A part of it that may fail."""

NO_RECORD = {
    "warm": "compiles kernels: its answer is of the machine that it runs on",
    "explore": "serves a web application; only its refusals end",
    "new": "writes files, which its tests run; only its refusals write none",
}
"""Verbs without a record of an answer, with the reason."""

INPUTS = {
    "sizes.toml": """\
name = "three messages"

[[calls]]
collective = "all_reduce"
size = "25 MB"
count = 3

[[calls]]
collective = "all_to_all"
size = "64 KB"
""",
    "model.toml": """\
name = "two layers"
sample = "image of 32x32x3"

[[layers]]
name = "conv"
tensors = [9408, 64]
macs = 118013952
outputs = 802816
kind = "conv"

[[layers]]
name = "block"
kind = "attention"
tensors = [1024, 1048576]
split = [false, true]
ways = 4
macs = 2684354560
outputs = 524288
count = 3
""",
    "layers.txt": """\
DATA
2
conv  -1 1200000 NONE 0 1200000 NONE 0 1300000 ALLREDUCE 2359296 20000
block -1 2400000 NONE 0 2400000 NONE 0 2600000 ALLREDUCE 9437184 80000
""",
    "comms.log": """\
AR;67108864;0,1,2,3,4,5,6,7|9.5
AR;16384000;0,1,2,3
L2L;4194304;1;0;0;4
""",
    "jobs.csv": """\
time_s,name,nodes,duration_s
0,a,4,100
10,b,8,50
20,c,8,30
25,d,2,10
""",
    "faults.json": json.dumps(
        [
            {
                "node_id": server,
                "event_time": day,
                "event_type": f"fault_{what}",
                "fault_type": {"Level": "Hardware Failure", "Class": part, "Desc": "down"},
            }
            for server, day, what, part in (
                ("s-00", 3.2, "start", "NIC"),
                ("s-00", 3.9, "end", "NIC"),
                ("s-15", 4.0, "start", "GPU"),
                ("s-02", 5.0, "start", "GPU"),
                ("s-15", 5.1, "end", "GPU"),
                ("s-02", 7.1, "end", "GPU"),
            )
        ]
    ),
    "collective.toml": """\
ranks = 4
chunks = 2
""",
    "space.toml": """\
title = "Two fabrics"

[axes]
fabric = ["torus", "ramp", "lightpath"]
nodes = [16]
size = ["10KB", "100MB"]

[answers.map]
""",
    "broken.toml": "calls = 3\n",
    "broken.json": "{}\n",
    "broken.csv": "step,src\n0,1\n",
}
"""Files that commands read, by their names."""


@dataclass(frozen=True)
class Command:
    """A command whose answer is recorded.

    Args:
        id: name of the record, verb first, without spaces and commas.
        words: of the command line, without the program.
        before: commands that run before it in the same folder, such as one that writes a plan.
        inputs: names of `INPUTS` that are written there first.
    """

    id: str
    words: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    inputs: tuple[str, ...] = ()


@cache
def all_commands() -> dict[str, Command]:
    """All commands by the names of their records."""
    found: dict[str, Command] = {}
    for part in (simulated, verified, compiled, planned, compared, trained, operated, machines, researched, refused):
        for command in part():
            assert command.id not in found, command.id
            assert not set(command.id) & set(" ,*?["), command.id
            found[command.id] = command
    return found


def one(id: str, text: str, *before: str, inputs: str = "") -> Command:
    """A command with `--json` where its verb has that.

    Args:
        id: name of the record.
        text: of the command line, words apart by spaces.
        before: as of `Command`, as texts.
        inputs: as of `Command`, names apart by spaces.
    """
    words = tuple(text.split())
    json = () if words[:1] in (("convert",), ()) or "--help" in words else ("--json",)
    return Command(id, (*words, *json), tuple(tuple(line.split()) for line in before), tuple(inputs.split()))


def simulated() -> Iterator[Command]:
    """Times: every fabric with every collective, engines and sizes in turn; larger machines; options; executions."""
    for i, fabric in enumerate(FABRICS):
        for j in range(6):
            collective = COLLECTIVES[(6 * i + j) % len(COLLECTIVES)]
            engine = list(ENGINES)[(i + j) % len(ENGINES)]
            size = MESSAGES[(i + 2 * j) // 2 % 3]
            size = "1MB" if engine.startswith("packet") and size == "100MB" else size  # of so many cells: seconds
            options = " ".join(ENGINES[engine])
            root = " --root 5" if collective in ("broadcast", "scatter", "reduce", "gather") and i % 2 else ""
            yield one(
                f"simulate/{fabric}-16/{collective}/{size}/{engine}",
                f"simulate -f {fabric} -n 16 -c {collective} -s {size} {options}{root}",
            )
        for nodes, collective, size in (
            (64, "all_to_all", MESSAGES[i % 3]),
            (1024, "all_reduce", MESSAGES[(i + 1) % 3]),
        ):
            yield one(
                f"simulate/{fabric}-{nodes}/{collective}/{size}",
                f"simulate -f {fabric} -n {nodes} -c {collective} -s {size}",
            )
    for name in ("published", "ramp", "sipac", "wrht", "oddl", "lumorph"):
        fabric = {"published": "oddl", "wrht": "terarack", "lumorph": "lightpath"}.get(name, name)
        yield one(f"simulate/{fabric}/assumptions-{name}", f"simulate -f {fabric} -n 64 -s 10MB --assumptions {name}")
    yield one("simulate/oddl/warm", "simulate -f oddl:shape=4x4 -s 1MB --assume initial=warm --assume endpoint=gpu_nic")
    yield one("simulate/oddl/job", "simulate -f oddl:shape=4x4 -s 1MB --job 0-3,8,9")
    yield one(
        "simulate/ocs/digit_shifts", "simulate -f ocs:nodes=64 -c all_to_all -s 1MiB -a digit_shifts:cuts=3,shifts=1x8"
    )
    yield one("simulate/fat_tree/node-rate", "simulate -f fat_tree -n 16 --node-rate 2.4Tb/s -s 1MB")
    yield one(
        "simulate/file/start",
        "simulate -f oddl:shape=4x4 -a ring -s 1MB --start plan.parquet",
        "compile -f oddl:shape=4x4 -a ring -s 1MB -o plan.parquet",
    )
    yield one("simulate/torus/device", "simulate -f torus -n 16 -s 1MB --engine device")
    yield one("simulate/torus/queues", "simulate -f torus:shape=4x4 -c all_to_all -s 1MB --engine packet --queue input")
    yield one(
        "simulate/torus/windowed",
        "simulate -f torus:shape=4x4 -c all_to_all -s 1MB --engine packet --transport windowed --buffer 64kB",
    )
    for fabric, collective in zip((*CIRCUITS, "torus", "fat_tree"), cycle(COLLECTIVES)):
        yield one(f"execute/{fabric}-16", f"execute -f {fabric} -n 16 -c {collective} -s 10KB --seed 3")
    yield one("execute/light", "execute -f oddl:shape=2x4 -s 10kB --transport light")


def verified() -> Iterator[Command]:
    """Verdicts: right, wrong and not judged; with budget and emulator; of files, programmes and tables."""
    for i, fabric in enumerate(FABRICS):
        for j in range(2):
            collective = COLLECTIVES[(3 * i + j) % len(COLLECTIVES)]
            yield one(f"verify/{fabric}-16/{collective}", f"verify -f {fabric} -n 16 -c {collective}")
    for name, small in SMALL.items():
        yield one(f"verify/{name}/emulate", f"verify -f {small} -c all_reduce -s 1MB --emulate")
        yield one(f"verify/{name}/budget", f"verify -f {small} -c all_to_all -s 1MB --budget typical")
        yield one(
            f"verify/{name}/programme",
            "verify plan.json --time times.json",
            f"simulate -f {small} -a ring -s 1MB --programme times.json",
            f"compile -f {small} -a ring -s 1MB -o plan.json",
        )
        yield one(
            f"verify/{name}/tables",
            "verify --tables tables",
            f"compile -f {small} -c all_gather -a ring -s 1KB -o tables/",
        )
    for option in ("exact", "all-chunks", "sample 4"):
        yield one(f"verify/sipac/{option.replace(' ', '-')}", f"verify -f sipac -n 16 --{option}")
    yield one("verify/sipac/isolation", f"verify -f {SMALL['sipac']} --emulate --isolation cross=25dB")
    for suffix in ("parquet", "csv", "json"):
        yield one(
            f"verify/file/{suffix}", f"verify plan.{suffix}", f"compile -f {SMALL['lightpath']} -s 1MB -o plan.{suffix}"
        )
    yield one("verify/file/xml", "verify plan.xml", f"compile -f {SMALL['sipac']} -s 1MB -a sipco -o plan.xml")
    yield one("verify/ramp/published", "verify -f ramp:groups=2,racks=2,wavelengths=4 -a ramp:variant=published")
    yield one("verify/lightpath/job", "verify -f lightpath:shape=4x4 --job 0,1,4,5,9 -c all_to_all")


def compiled() -> Iterator[Command]:
    """Plans as `compile` prints them, files of other formats, schedules that are searched."""
    for fabric, collective in zip(FABRICS, cycle(COLLECTIVES)):
        yield one(f"compile/{fabric}-16", f"compile -f {fabric} -n 16 -c {collective} -s 1MB")
    for name, small in SMALL.items():
        yield one(f"compile/{name}/node", f"compile -f {small} -a ring -c all_gather -s 1KB --node 0,2")
    yield one("compile/sipac/job", "compile -f sipac -n 16 --job 0-3,5 -c all_gather -s 1MB")
    yield one("compile/sipac/failed", "compile -f sipac:radix=3,levels=2,failed=switch:1 -c all_to_all -s 1MB")
    for target in ("plan.xml", "plan.csv"):
        yield one(
            f"convert/{target}",
            f"convert plan.json -o {target}",
            f"compile -f {SMALL['sipac']} -s 1MB -a sipco -o plan.json",
        )
    yield one(
        "convert/xml-on-ramp",
        "convert plan.xml -f ramp:groups=2,racks=2,wavelengths=4 -s 1MB -o plan.parquet",
        "compile -f sipac:radix=2,levels=4 -s 1MB -a sipco -o plan.xml",
    )
    for shape, collective in (("2x2", "all_reduce"), ("2x3", "all_gather"), ("2x2", "all_to_all")):
        yield one(
            f"synthesize/{shape}/{collective}",
            f"synthesize -f lightpath:shape={shape} -c {collective} --method constructed",
        )


def planned() -> Iterator[Command]:
    """Plans with the circuits that stand."""
    for text, size in (("ocs -n 8", "1MB"), ("ocs -n 8", "16KB"), ("oddl:shape=2x4", "10MB"), ("sipac -n 16", "1KB")):
        name = text.replace(" -n ", "-").replace(":shape=", "-")
        yield one(f"plan/{name}/{size}", f"plan -f {text} -s {size}")
    yield one("plan/ocs/all_gather", "plan -f ocs:nodes=8 -c all_gather -s 1MiB --assumptions published")
    yield one("plan/ramp/streamed", f"plan -f {SMALL['ramp']} -c broadcast -s 1MB --assumptions published --streamed")
    yield one("plan/ocs/overlap", "plan -f ocs:nodes=8 -c all_reduce -s 1MB --overlap")
    yield one("plan/lightpath", "plan -f lightpath:shape=3x3 -c all_to_all -s 1MB")


def compared() -> Iterator[Command]:
    """Tables of fabrics and of sizes."""
    for number, group in enumerate((FABRICS[:4], FABRICS[4:8], FABRICS[8:12], FABRICS[12:])):
        fabrics = " ".join(f"-f {name}" for name in group)
        for size, collective in zip(MESSAGES, ("all_reduce", "all_to_all", "all_gather"), strict=True):
            yield one(
                f"compare/{number}/{collective}/{size}", f"compare {fabrics} -n 16 -c {collective} -s {size} --jobs 1"
            )
    yield one("compare/64", "compare -n 64 -s 100MB --jobs 1")
    few = "-f ramp -f lightpath -f torus"
    yield one("compare/all", "compare -f torus -f oddl:shape=2x4 -a all -s 1MB --jobs 1")
    yield one("compare/main", f"compare {few} -f sipac -n 64 -a main -s 1MB --jobs 1")
    yield one("compare/sequence", f"compare {few} -n 16 -s 1KB -s 1MB --jobs 1")
    yield one("compare/workload", f"compare {few} -n 16 -w sizes.toml --jobs 1", inputs="sizes.toml")
    yield one("compare/rate", f"compare {few} -n 16 --equal rate=800Gb/s -s 1MB --jobs 1")
    yield one("compare/cost", f"compare {few} -n 16 --equal cost=9000 -s 1MB --jobs 1")
    yield one("compare/flow", f"compare {few} -n 16 --engine flow -s 1MB --jobs 1")
    yield one("compare/sensitivity", "compare -f ramp -f torus -n 16 -s 1KB --sensitivity --jobs 1")
    yield one("compare/published", "compare -f ramp -f oddl -f sipac -n 64 -s 1MB --assumptions published --jobs 1")
    with_message = [name for name in COLLECTIVES if name not in ("barrier", "send_recv")]
    for fabric, collective in zip(FABRICS, cycle(with_message)):
        yield one(f"sweep/{fabric}-16", f"sweep -f {fabric} -n 16 -c {collective} --factor 1000 --jobs 1")
    yield one("sweep/oddl/flow", "sweep -f oddl:shape=4x4 --from 1MB --to 100MB --factor 10 --engine flow --jobs 1")


def trained() -> Iterator[Command]:
    """Iterations of training."""
    for fabric in ("ramp", "lightpath", "fat_tree", "terarack"):
        yield one(f"train/{fabric}/resnet50", f"train -m resnet50 -n 16 -f {fabric} --jobs 1")
    few = "-f oddl -f torus"
    yield one("train/vgg19", f"train -m vgg19 -n 64 --node-rate 100Gb/s --samples 1281167 --epochs 2 {few} --jobs 1")
    model = "-m transformer:layers=4,hidden=512,heads=8"
    yield one("train/tensor", f"train {model} -n 16 --tensor 4 --groups machine {few} --jobs 1")
    yield one("train/tensor-scaled", f"train {model} -n 16 --tensor 4 --groups scaled {few} --jobs 1")
    yield one("train/pipeline", f"train {model} --groups scaled -n 16 --pipeline 4 --micro-batches 8 {few} --jobs 1")
    yield one("train/zero", f"train {model} -n 16 --zero 3 --device a100 --precision bf16 {few} --jobs 1")
    yield one("train/together", f"train {model} -n 16 --tensor 4 --groups machine -f ocs --together --jobs 1")
    yield one("train/straggler", f"train -m resnet50 -n 16 --no-overlap --straggler 3=1.2 {few} --jobs 1")
    yield one("train/streams", f"train -m resnet50 -n 16 --streams 2 {few} --jobs 1")
    yield one("train/static", f"train -m resnet50 -n 16 --fusion-mode static --fusion 4MB {few} --jobs 1")
    yield one("train/own-model", f"train -m model.toml -n 16 {few} --jobs 1", inputs="model.toml")
    yield one("train/sizes", f"train -w sizes.toml -n 16 {few} --jobs 1", inputs="sizes.toml")
    yield one("train/layers", f"train -w layers.txt -n 16 --clock 1GHz {few} --jobs 1", inputs="layers.txt")
    yield one("train/comms", f"train -w comms.log --groups scaled -n 8 {few} --jobs 1", inputs="comms.log")
    yield one("trace/layers", "trace layers.txt --clock 1GHz -n 16", inputs="layers.txt")
    yield one("trace/comms", "trace comms.log", inputs="comms.log")
    yield one("trace/sizes", "trace sizes.toml -n 16", inputs="sizes.toml")
    yield one("train/faults", "train -m resnet50 -n 16 -f oddl:shape=4x4 --faults faults.json --spares 1 --jobs 1",
              inputs="faults.json")  # fmt: skip


def operated() -> Iterator[Command]:
    """Machines in operation: failed parts, jobs, traffic, control."""
    for name, small in SMALL.items():
        yield one(f"faults/{name}/fail", f"faults -f {small} --fail {PART[name]} -s 1MB")
        yield one(f"faults/{name}/all_gather", f"faults -f {small} --fail {PART[name]} -c all_gather -s 10MB")
    yield one("faults/sipac/weak", "faults -f sipac:radix=3,levels=2 --fail comb_laser:5:weak=0.9 -s 1MB")
    yield one("faults/terarack/sweep", "faults -f terarack:nodes=6,wavelengths=4 -c all_gather -s 10MB --sweep")
    yield one("faults/oddl/sweep", "faults -f oddl:shape=2x2 -s 1MB --sweep")
    yield one("faults/oddl/pairs", "faults -f oddl:shape=2x4 -s 1MB --pairs 3 --seed 2")
    yield one("faults/oddl/replay", "faults -f oddl:shape=4x4 --replay faults.json --ranks 14 --spares 2",
              inputs="faults.json")  # fmt: skip
    yield one("jobs/oddl", "jobs -f oddl:shape=4x4 --place 4 --place big=8 -s 1MB")
    yield one("jobs/lightpath/any", "jobs -f lightpath:shape=4x4 --place 4 --place 6 --place 5 --policy any -s 1MB")
    yield one("jobs/state", "jobs --state jobs.json --free big --place 3",
              "jobs -f oddl:shape=4x4 --place 4 --place big=8 --state jobs.json")  # fmt: skip
    for policy in ("first", "best", "buddy"):
        yield one(
            f"jobs/arrivals/{policy}",
            f"jobs -f oddl:shape=4x4 --arrivals jobs.csv --policy {policy}",
            inputs="jobs.csv",
        )
    yield one("jobs/poisson", "jobs -f oddl:shape=8x8 --arrivals poisson:load=0.7,count=20 --policy best")
    for load in (0.3, 0.7, 1.5):
        yield one(f"traffic/{load}", f"traffic -f ramp:groups=2,racks=2,wavelengths=4 --load {load} --slots 600")
    yield one("traffic/rack", "traffic -f ramp:groups=4,racks=4,wavelengths=8 --load 0.5 --scheduler rack --slots 400")
    yield one("traffic/skew", "traffic -f ramp:groups=2,racks=2,wavelengths=4 --skew 6 --load 0.4 --slots 600 --verify")
    for text in (
        "oddl:shape=4",
        "oddl:shape=2x4",
        "oddl:shape=4x4 --job 0-3",
        "lightpath:shape=2x2",
        "ramp -n 16",
        "sipac -n 16",
        "torus -n 16",
    ):
        name = text.replace(":shape=", "-").replace(" -n ", "-").replace(" --job ", "/job-")
        yield one(f"control/{name}", f"control -f {text} -s 1MB")
    yield one("control/lossy", "control -f oddl:shape=4 -a halving_doubling --loss 0.2 --jitter 20us --seed 1")


def machines() -> Iterator[Command]:
    """Light budgets, bills, netlists, lists."""
    for name in PAPERS:
        yield one(f"budget/{name}-16", f"budget -f {name} -n 16")
        yield one(f"budget/{name}-64/typical", f"budget -f {name} -n 64 --optics typical --path typical")
        yield one(f"budget/{name}-64/plan", f"budget -f {name} -n 64 -a two_sided_ring -c all_reduce")
        yield one(f"netlist/{name}", f"netlist -f {SMALL[name]}")
    yield one("budget/set", "budget -f oddl --set wss32.loss=17dB --set fibre.length=50m")
    yield one("budget/fitted", "budget -f ramp --optics fitted")
    for fabric in FABRICS:
        yield one(f"cost/{fabric}-64", f"cost -f {fabric} -n 64")
    yield one("cost/energy", "cost -f oddl -f torus -n 16 -c all_reduce -s 1GB")
    yield one("cost/prices", "cost -f ramp -n 64 --prices ramp_hpc --set transceiver.w=5")
    for name in ("ramp", "sipco", "resnet50"):
        yield one(f"list/{name}", f"list {name}")


def researched() -> Iterator[Command]:
    """Claims and studies."""
    for name, claim in (("ramp", "RAMP-A-*"), ("sipac", "S1*"), ("wrht", "W2*"), ("oddl", "O1*"), ("lumorph", "L8*")):
        yield one(f"papers/{name}", f"papers {name} --claim {claim}")
    yield one("papers/unreached", "papers wrht --verdict inconsistent")
    yield one("study/beyond", "study beyond:system=lightpath,nodes=16,collective=all_to_all")
    yield one("study/space", "study space.toml --jobs 1", inputs="space.toml")
    yield one("study/map", "study map space.toml", "study space.toml --jobs 1", inputs="space.toml")


def refused() -> Iterator[Command]:
    """Requests that are refused, with their text."""
    with_fabric = (
        "compile", "plan", "verify", "simulate", "execute", "compare", "sweep", "train", "faults", "budget", "cost", "netlist",
        "control", "jobs", "traffic", "synthesize",
    )  # fmt: skip
    for i, verb in enumerate(with_fabric):
        more = " -m resnet50" if verb == "train" else " --place 2" if verb == "jobs" else ""
        name, wrong = ("nodes", "-f ramp -n 63") if i % 2 else ("fabric", "-f rampp -n 16")
        yield one(f"refused/{verb}/{name}", f"{verb} {wrong}{more}")
    for i, verb in enumerate(
        ("compile", "verify", "simulate", "execute", "compare", "sweep", "faults", "control", "jobs")
    ):
        more = " --place 2" if verb == "jobs" else " --fail transmitter:0" if verb == "faults" else ""
        name, wrong = ("algorithm", "-a rings") if i % 2 else ("collective", "-c all_reduced")
        yield one(f"refused/{verb}/{name}", f"{verb} -f ramp -n 16 {wrong}{more}")
    for verb in ("compile", "simulate", "compare", "plan", "execute", "cost"):
        yield one(f"refused/{verb}/size", f"{verb} -f ramp -n 16 -c all_reduce -s 1XB")
    for name in FABRICS:
        yield one(f"refused/parameter/{name}", f"compile -f {name}:spokes=3")
    for name in ("oddl", "ramp", "sipac", "superpod", "torus"):
        yield one(f"refused/shape/{name}", f"compile -f {name} -n 0")
    for text in (
        "simulate -f ramp -n 16 -a sipco", "simulate -f ramp -n 16 --engine packets",
        "simulate -f ramp -n 16 --assumptions rampp", "simulate -f ramp -n 16 --assume endpoint=fast",
        "simulate -f ramp -n 16 --engine packet:queue=both", "simulate -f ramp -n 16 --root 16 -c broadcast",
        "simulate -f ramp -n 16 --job 0-40", "verify -f ramp -n 16 --budget bright", "verify missing.json", "verify",
        "verify -f ramp -n 16 --sample 0", "verify -f torus -n 16 --emulate", "budget -f torus -n 16",
        "budget -f oddl --set nothing=3dB", "cost -f ramp -n 16 --prices cheap", "train -m resnet51 -n 16",
        "train -m resnet50", "trace missing.json",
        "train -w missing.toml -n 16", "compare -n 16 --equal weight=3", "compare -n 16 -w missing.et",
        "sweep -f ramp -n 16 --factor 1", "sweep -f ramp -n 16 --from 1MB --to 1KB", "faults -f ramp -n 16",
        "faults -f ramp -n 16 --fail lamp:3", "faults -f torus -n 16 --fail link:3", "traffic -f torus -n 16",
        "traffic -f ramp -n 16 --scheduler fair", "jobs -f oddl:shape=4x4 --place 17",
        "jobs --state missing.json --place 2", "netlist -f torus -n 16", "list rampp",
        "papers rampp", "papers ramp --claim NOTHING", "new fabric ramp",
        "study beyondd", "study missing.toml", "synthesize -f ramp -n 16",
        "convert missing.json -o plan.xml", "execute -f ramp -n 16 --dtype int7", "plan -f ocs -n 8 --time-limit soon",
        "plan -f torus -n 16 --overlap", "simulated", "simulate --fabrics ramp", "explore --port many", "run --repeat many",
    ):  # fmt: skip
        words = text.replace("/", "-").split()
        yield one("refused/" + "_".join(words).replace(",", "+"), text)
    for name in ("broken.toml", "broken.json", "broken.csv"):
        verb = "train -n 16 -w" if name == "broken.toml" else "verify"
        yield one(f"refused/{name}", f"{verb} {name}", inputs=name)
