"""`opticcl train` and `opticcl compare --workload` as a user types them."""

import json

import pytest
from tests.optional import shared_file

TWO = ["--fabric", "ideal", "--fabric", "oddl"]


def test_a_model_is_ranked_with_epochs(answer, tmp_path):
    """Fastest first, verified; page, timelines and picture are written whole."""
    page, trace, picture = (tmp_path / name for name in ("page.html", "trace.json", "times.svg"))
    files = ["--out", page, "--trace", trace, "-o", picture]
    found, code = answer(
        "train", "--model", "vgg16", "--nodes", "16", *TWO, "--samples", "1281167", "--epochs", "2", *files
    )
    assert code == 0
    rows = found["rows"]
    assert [row["fabric"] for row in rows] == ["oddl", "ideal"]  # a reference has no rank
    assert all(row["verified"] and row["epoch_s"] == pytest.approx(5005 * row["iteration_s"]) for row in rows)
    assert found["job"]["bytes"] == 4 * 138_357_544
    text = page.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.count("<svg") == 2
    assert "Every plan was verified" in text
    assert picture.read_text("utf-8").startswith("<svg")
    events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["pid"] for event in spans} == {0, 1}
    sent = sum(event["args"].get("bytes", 0) for event in spans if event["pid"] == 0)
    assert sent == found["job"]["bytes"]
    assert max(event["ts"] + event["dur"] for event in spans if event["pid"] == 0) == pytest.approx(
        rows[0]["iteration_s"] * 1e6
    )


def test_a_table_for_people(opticcl):
    """What is trained stands above, the ranking in the middle, what all rows share below."""
    done = opticcl("train", "--workload", "resnet50_ddp", "--nodes", "8", *TWO, "--steps", "1000")
    assert done.returncode == 0
    for word in (
        "fabric",
        "iteration",
        "Communication only",
        "training",
        "as built",
        "ideal",
        "oddl",
        "102.2 MB in 5 calls",
    ):
        assert word in done.stdout


def test_a_fabric_without_such_a_machine_is_left_out(opticcl, answer):
    """Named or not: the others stand, and the reason is told."""
    asked = ("train", "--model", "lenet", "--nodes", "12", *TWO)
    done = opticcl(*asked, "--notes")
    assert done.returncode == 0
    assert "left out: oddl: 12 nodes" in done.stdout
    found, _ = answer(*asked)
    assert [row["fabric"] for row in found["rows"]] == ["ideal"]
    assert [one["fabric"] for one in found["left_out"]] == ["oddl"]


def test_the_layout_of_ranks_is_chosen_and_told(opticcl, answer):
    """On each fabric, with bound and gap; plans of groups have theirs, and the time of a fabric of their size."""
    model = "transformer:layers=2,hidden=64,heads=4,sequence=32"
    words = ("train", "-m", model, "--tensor", "4", "-n", "16", "-f", "torus")
    text, (record, code) = opticcl(*words, "--layout", "auto").stdout, answer(*words, "--layout", "auto")
    (row,) = record["rows"]
    times = {one["layout"]: one["iteration_s"] for one in row["layouts"]}
    assert code == 0
    assert times.keys() == {"tensor,data", "data,tensor"}
    assert row["iteration_s"] == times[row["layout"]] == min(times.values())
    assert "layout: on each fabric the fastest of 2 orders" in text
    assert {"layout", "bound", "scaled"} <= set(text.split())
    assert {plan["group"] for plan in row["plans"]} == {"tensor", "data"}
    for plan in row["plans"]:
        assert plan["gap"] == pytest.approx(plan["total_s"] / plan["lower_bound_s"])
        assert plan["gap"] >= 1
        assert plan["scaled_s"] > 0
    given = opticcl(*words, "--layout", "data")
    assert given.returncode == 2
    assert given.stderr.splitlines()[-1].startswith("opticcl: train: layout=data: tensor of 4 is missing")


def test_calls_of_several_groups_are_told_as_such(opticcl):
    """With tensor groups side by side the bytes are not those of one device; with one group they are."""
    common = ("train", "--model", "transformer", "--nodes", "4", "--fabric", "ideal")
    groups = opticcl(*common, "--tensor", "2", "--groups", "scaled", "--notes").stdout.replace("\n", " ")
    assert "over all groups of devices" in groups
    assert "--groups machine uses its real nodes" in groups
    assert "--groups" not in opticcl(*common, "--tensor", "2", "--notes").stdout
    one = opticcl(*common, "--tensor", "4", "--data", "1", "--notes").stdout.replace("\n", " ")
    assert "over all groups" not in one
    assert "--groups" not in one
    assert (
        "node rates differ"
        in opticcl("train", "--model", "lenet", "--nodes", "4", *TWO, "--as-built", "--notes").stdout
    )


def test_the_devices_are_the_nodes_of_fabrics_of_one_size(answer, opticcl):
    """Twelve of a grid of 4 x 3; sizes that differ are refused."""
    found, _ = answer("train", "--model", "lenet", "-f", "oddl:shape=4x3", "-f", "terarack:nodes=12")
    assert found["job"]["num_ranks"] == 12
    assert len(found["rows"]) == 2
    refused = opticcl("train", "--model", "lenet", "-f", "oddl:shape=4x3", "-f", "terarack:nodes=9")
    assert (refused.returncode, "fabrics of one size" in refused.stderr) == (2, True)


def test_overlap_fusion_and_stragglers_change_the_time(answer):
    """Without overlap longer, with a straggler longer; 16 MB of fusion makes fewer messages than none."""
    common = ["train", "--model", "vgg16", "--nodes", "8", "--fabric", "ideal"]
    usual, serial, alone, late = (
        answer(*common, *more)[0]["rows"][0]
        for more in ([], ["--no-overlap"], ["--fusion", "0"], ["--straggler", "3=1.5"])
    )
    assert serial["iteration_s"] > usual["iteration_s"]
    assert late["iteration_s"] > usual["iteration_s"]
    assert alone["messages"] == 32 > usual["messages"]
    assert serial["iteration_s"] == pytest.approx(serial["compute_s"] + serial["communication_s"])


@pytest.mark.parametrize(
    ("options", "samples"),
    [(["--batch", "32"], 32), (["--global-batch", "32"], 32), (["--local-batch", "32"], 128), ([], 64)],
)
def test_batch_options_mean_what_the_python_names_mean(answer, options, samples):
    """`--batch` and `--global-batch` are samples on all devices, `--local-batch` those of each copy of the model."""
    from opticcl.training.partition import partition

    found, code = answer("train", "--model", "lenet", "--nodes", "4", "--fabric", "ideal", *options)
    assert (code, found["job"]["samples"]) == (0, samples)
    names = {"--batch": "batch", "--global-batch": "batch", "--local-batch": "local_batch"}
    given = {names[options[0]]: 32} if options else {}
    assert partition("lenet", 4, **given).samples == samples


def test_every_parameter_of_the_partition_is_an_option(answer):
    """The optimiser's state takes memory, none is a choice too; a model that does not fit is computed where that is wanted."""
    words = ("train", "--model", "vgg19", "--nodes", "4", "--fabric", "ideal")
    memory = {one: answer(*words, "--optimiser", one)[0]["job"]["memory_bytes"] for one in ("none", "momentum", "adam")}
    weights = memory["momentum"] - memory["none"]
    assert memory["adam"] - memory["momentum"] == weights > 0
    assert answer(*words)[0]["job"]["memory_bytes"] == memory["momentum"]
    small = ("--device", "a100:memory=1GB")
    assert answer(*words, *small, "--no-fit")[1] == 0


def test_a_target_loss_is_answered_with_a_model_and_its_time(answer, opticcl):
    """The first row of RAMP's table 9: model, degrees, batch and steps in the first lines, and the same as JSON."""
    words = ("train", "-m", "transformer", "--target-loss", "2.5", "--max-devices", "100", *TWO)
    found, code = answer(*words)
    target, rows = found["target"], found["rows"]
    assert (code, target["layers"], target["hidden"], target["parameters"]) == (0, 36, 1152, 573_848_064)
    assert (target["tensor"], target["data"], target["batch"], target["steps"]) == (1, 16, 2480, 64892)
    assert found["job"]["num_ranks"] == target["devices"] == 16
    assert found["job"]["samples"] == 2480
    assert target["fastest"] == rows[0]["fabric"]
    assert target["training_s"] == rows[0]["training_s"] == pytest.approx(64892 * rows[0]["iteration_s"])
    lines = opticcl(*words, "--notes").stdout.splitlines()
    first, second, third = lines[-len(lines) + next(i for i, line in enumerate(lines) if "target loss" in line) :][:3]
    assert first.endswith("transformer of 36 layers, width 1,152, 573,848,064 parameters")
    assert second == "tensor 1 x data 16 = 16 devices, batch 2,480 of a critical 2,488, 64,892 steps"
    assert third.startswith("training ")
    assert third.endswith(f"on {target['fastest']}, the fastest")


def test_nothing_is_half_written(opticcl, tmp_path):
    """A folder that is not there."""
    done = opticcl(
        "train", "--model", "lenet", "--nodes", "2", "--fabric", "ideal", "--trace", tmp_path / "no" / "t.json"
    )
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "more", "num_bytes", "has_computation"),
    [
        pytest.param("chakra/resnet50-ddp.rank0.et", ["--nodes", "16"], 102_441_032, True, marks=pytest.mark.deep),
        pytest.param("topoopt/100vgg_16.fbuf", [], 1_157_409_952, True, marks=pytest.mark.deep),
        pytest.param("topoopt/100candle_16.fbuf", [], 23_274_733_580, True, marks=pytest.mark.deep),
        pytest.param("lumorph/ncf-8.log", [], 713_170_952, False, marks=pytest.mark.deep),
        ("astra-sim/dlrm-hybrid-parallel.txt", ["-n", "16", "--clock", "1GHz", *TWO, "-f", "torus"], 3_388_416, True),
    ],
)
def test_real_traces_give_a_ranked_table(answer, name, more, num_bytes, has_computation):
    """Every fabric of that size, or some, with the share of communication; the bytes are those of the file."""
    found, code = answer("train", "--workload", shared_file(name), *more)
    assert code == 0
    assert found["job"]["bytes"] == num_bytes
    totals = [row["iteration_s"] for row in found["rows"] if row["no_rank"] is None]
    assert totals == sorted(totals)
    assert len(totals) >= (2 if "-f" in more else 12)
    for row in found["rows"]:
        assert row["verified"]
        assert (0 < row["communication_share"] < 1) if has_computation else row["communication_share"] is None


# --- compare ----------------------------------------------------------------------------------------------------------


def test_compare_takes_a_clock_and_the_ranks_of_a_trace(opticcl, answer, tmp_path):
    """--clock for files that count cycles; the number of nodes where the file tells it."""
    layers = tmp_path / "layers.txt"
    layers.write_text("DATA\n1\na -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 1000 1\n")
    done = opticcl("compare", "--workload", layers, "--clock", "1GHz", "--nodes", "8", "--fabric", "ideal", "--notes")
    assert "60 ns at 1e+09 Hz" in done.stdout
    log = tmp_path / "comms.log"
    log.write_text("AR;4000;0,1,2,3\nAR;8;0,1\n")
    found, code = answer("compare", "--workload", log)
    rows = found["rows"]
    assert (code, rows[0]["num_nodes"], rows[0]["total_bytes"]) == (0, 4, 4000)
    left_out = "not compared: 1 call, 8 B (8 bytes): all_reduce in groups of 2 ranks"
    assert left_out in opticcl("compare", "--workload", log, "--nodes", "4", "--fabric", "ideal", "--notes").stdout


def test_compare_takes_groups_on_fabrics_of_their_size(opticcl, tmp_path):
    """Two of four ranks: fabrics of two nodes, as a note says; a clock without a workload counts nothing."""
    log = tmp_path / "comms.log"
    log.write_text("AR;8;0,1\nAR;8;2,3\n")
    done = opticcl("compare", "--workload", log, "--nodes", "4", "--fabric", "ideal")
    assert "comms: 2 calls of all_reduce, 16 B (16 bytes), in groups of 2 of the 4 ranks, on 2 nodes" in done.stdout
    done = opticcl("compare", "--clock", "1GHz", "--nodes", "4")
    assert (done.returncode, "--clock" in done.stderr) == (2, True)


def test_messages_planned_together(opticcl, answer):
    """A column and a line; in JSON the three times in order, and the messages with their plans."""
    asked = ["train", "-m", "lenet", "--nodes", "4", "-f", "terarack:nodes=4", "--fusion", "0", "--together"]
    record, code = answer(*asked)
    assert code == 0
    (row,) = record["rows"]
    found = row["together"]
    assert found["iteration_s"] <= found["handed_over_s"] <= found["alone_s"] == row["iteration_s"]
    assert found["saved_s"] > 0
    assert found["verified"]
    assert len(found["messages"]) == row["messages"]
    text = opticcl(*asked, "--notes").stdout
    assert "together" in text
    assert "each message alone" in text


def test_the_dialect_of_a_layer_file(answer, opticcl, tmp_path):
    """--dialect decides what bytes of an all_gather are; without a trace there is none."""
    layers = tmp_path / "layers.txt"
    layers.write_text("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLGATHER 1000 1\n")
    for dialect, size in (("auto", 4000), ("astra", 4000), ("simai", 1000)):
        found, _ = answer("train", "--workload", layers, "--nodes", "4", "--fabric", "ideal", "--dialect", dialect)
        assert found["job"]["bytes"] == size
    done = opticcl("train", "--model", "vgg19", "--nodes", "4", "--dialect", "simai")
    assert (done.returncode, "--dialect: only a layer file has one" in done.stderr) == (2, True)
