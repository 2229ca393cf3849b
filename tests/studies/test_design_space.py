"""The file of a design space: what it means, and what is refused before any work."""

import json

import pytest

from opticcl.errors import OpticclError
from opticcl.studies.space.axis_values import DEFAULTS
from opticcl.studies.space.design import MOST_POINTS, read_design

AXES = '[axes]\nfabric = ["ideal", "torus:rate=100Gb/s", "lightpath"]\nnodes = [4, 16]\nsize = "1KB"\n'
TRAINED = '[axes]\nfabric = "torus"\nnodes = 16\nworkload = "vgg19"\n'


@pytest.fixture
def read(tmp_path):
    """Function that reads the text of a study file."""

    def of(text):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return read_design(path)

    return of


def test_the_points_are_the_product_of_the_axes(read):
    """In the order of the file, machines together, the largest first."""
    space = read(AXES + 'assumptions = ["common", "published"]\ncollective = ["all_reduce", "all_to_all"]\n')
    points = list(space.points())
    assert len(points) == space.num_points == 24
    assert len({point.key for point in points}) == 24
    assert points[0].row() == {
        "fabric": "ideal",
        "num_nodes": 4,
        "size_bytes": 1000,
        "collective": "all_reduce",
        "requested_algorithm": "auto",
        "node_rate": 800e9,
        "assumptions": "common",
        "prices": "default",
        "optics": "best",
        "vary": "",
    }
    machines = space.machines(points)
    assert [len(one) for one in machines] == [2] * 12
    assert [points[one[0]].values["nodes"] for one in machines] == [16] * 6 + [4] * 6


def test_several_systems_are_compared_at_one_rate(read):
    """800 Gb/s a node, where times are asked for and the file says no other; one system is as built, and so is a bill alone."""
    assert read(AXES).axes["node_rate"] == (800e9,)
    assert read(AXES + 'node_rate = "built"\n').axes["node_rate"] == ("built",)
    assert "node_rate" not in read(TRAINED).axes
    assert "node_rate" not in read('[axes]\nfabric = ["torus", "torus:rate=100Gb/s"]\nnodes = 16\nsize = "1KB"\n').axes
    bills = 'measure = ["dollars"]\n[axes]\nfabric = ["torus", "lightpath"]\nnodes = 16\n'
    assert "node_rate" not in read(bills).axes


def test_ranges_and_single_keys(read):
    """Sizes by a factor, assumptions and parameters in their units."""
    space = read(
        AXES.replace('"1KB"', '{ from = "1KB", to = "1MB", factor = 10 }')
        + 'assume.endpoint = ["0.5us", 1e-6]\nparameter.reconfiguration = ["1us", "2us"]\nnode_rate = ["built", "800 Gb/s"]\n'
    )
    assert space.axes["size"] == (1000, 10_000, 100_000, 1_000_000)
    assert space.axes["assume.endpoint"] == (0.5e-6, 1e-6)
    assert space.axes["parameter.reconfiguration"] == (1e-6, 2e-6)
    assert space.axes["node_rate"] == ("built", 800e9)


def test_assumptions_are_halved_and_doubled_at_some_points(read):
    """All keys, or those that are named."""
    space = read(AXES + '[vary]\nkeys = ["endpoint", "reconfiguration"]\nnodes = 16\n')
    assert space.num_points == len(list(space.points())) == 6 + 3 * 2 * 2
    varied = [point for point in space.points() if point.values["vary"]]
    assert {point.values["nodes"] for point in varied} == {16}
    assert {point.values["vary"] for point in varied} == {
        "endpoint x 0.5",
        "endpoint x 2",
        "reconfiguration x 0.5",
        "reconfiguration x 2",
    }
    assert len(read(AXES + '[vary]\nkeys = "all"\n').vary) > 5


def test_a_key_is_the_json_of_the_values_that_are_no_defaults(read):
    """Sorted by axis, whatever the order of the file: ledgers of earlier versions know the same points."""
    space = read(
        AXES
        + 'parameter.reconfiguration = ["1us"]\nassume.endpoint = [1e-6, "2us"]\nnode_rate = ["built", "800 Gb/s"]\n'
        'prices = "default"\n[vary]\nkeys = ["hop", "endpoint"]\nnodes = 16\n'
    )
    points = list(space.points())
    assert sum("vary" in json.loads(point.key) for point in points) == 3 * 2 * 2 * 4
    for point in points:
        named = {axis: value for axis, value in point.values.items() if DEFAULTS.get(axis) != value}
        assert point.key == json.dumps(named, sort_keys=True)


def test_defaults_do_not_change_the_key_of_a_point(read):
    """So a ledger knows it when the axis is added."""
    first, second = (
        [p.key for p in read(text).points()] for text in (AXES, AXES + 'assumptions = "common"\noptics = "best"\n')
    )
    assert first == second


WRONG = {
    "nothing": ("", "axes: fabric is missing; write fabric = [...]"),
    "no TOML": ("[axes", "is not valid TOML: "),
    "unknown table": (AXES + "[limits]\n", "unknown key limits; "),
    "unknown axis": (AXES + "node = [3]\n", "unknown key axes.node; did you mean 'nodes'?"),
    "axes of a list": ("axes = [1]", "axes=[1] is not a table"),
    "empty axis": (AXES.replace("[4, 16]", "[]"), "axes.nodes: is empty, so the study has no points"),
    "no size": (AXES.replace('size = "1KB"', ""), "axes: size is missing"),
    "text as nodes": (AXES.replace("[4, 16]", '["many"]'), "axes.nodes: 'many' is not a whole number"),
    "fraction of a node": (AXES.replace("[4, 16]", "[1.5]"), "axes.nodes: 1.5 is not a whole number"),
    "no nodes": (AXES.replace("[4, 16]", "[0]"), "axes.nodes: 0 nodes; there are 1 to"),
    "twice": (AXES.replace("[4, 16]", "[4, 4]"), "axes.nodes: a value is given twice"),
    "size": (AXES.replace('"1KB"', '"1XB"'), "axes.size: "),
    "size zero": (AXES.replace('"1KB"', "0"), "axes.size: 0 is not positive"),
    "size true": (AXES.replace('"1KB"', "true"), "axes.size: True is neither a number nor a text"),
    "range": (AXES.replace('"1KB"', '{ from = "1KB" }'), "axes.size: to is missing"),
    "empty range": (
        AXES.replace('"1KB"', '{ from = "1MB", to = "1KB" }'),
        "axes.size: from 1,000,000 to 1,000 is not ascending from 1 or more",
    ),
    "factor": (AXES.replace('"1KB"', '{ from = 1, to = 9, factor = "x" }'), "axes.size.factor='x' is not a number"),
    "unknown fabric": (AXES.replace('"ideal"', '"idael"'), "unknown fabric 'idael'; did you mean 'ideal'?"),
    "fabric of a number": (AXES.replace('"ideal"', "3"), "axes.fabric: 3 is not text"),
    "unknown parameter": (AXES.replace('"ideal"', '"ideal:rat=1"'), "ideal: unknown parameter 'rat'"),
    "parameter of a kind": (AXES.replace('"ideal"', '"ideal:nodes=x"'), "ideal: nodes: 'x' is not a whole number"),
    "collective": (AXES + 'collective = "all_reduces"\n', "unknown collective 'all_reduces'"),
    "barrier": (AXES + 'collective = "barrier"\n', "a barrier has no message"),
    "algorithm": (AXES + 'algorithm = "rings"\n', "unknown algorithm 'rings'"),
    "assumptions": (AXES + 'assumptions = "comon"\n', "unknown assumptions 'comon'"),
    "prices": (AXES + 'prices = "cheap"\n', "unknown name 'cheap'"),
    "optics": (AXES + 'optics = "cheap"\n', "unknown name 'cheap'"),
    "node rate": (AXES + 'node_rate = "5 kg"\n', "axes.node_rate: "),
    "unknown assumption": (AXES + 'assume.endpoin = "1us"\n', "unknown assumption 'endpoin'; did you mean 'endpoint'?"),
    "assumption of a kind": (AXES + 'assume.endpoint = "1 kg"\n', "endpoint"),
    "assumption without effect": (AXES + 'assumptions = "published"\nassume.hop = "1us"\n', "hop=1us has no effect"),
    "parameter of no fabric": (AXES + 'parameter.tuning = "1us"\n', "no fabric of the study has a parameter 'tuning'"),
    "parameter in both": (
        AXES.replace('"lightpath"', '"lightpath:reconfiguration=1us"') + 'parameter.reconfiguration = "1us"\n',
        "has reconfiguration itself; leave it out there",
    ),
    "measure": ('measure = ["tim"]\n' + AXES, "measure: 'tim'; did you mean 'time'?"),
    "measure of nothing": ("measure = []\n" + AXES, "measure=[]; write a list"),
    "bound alone": ('measure = ["gap"]\n' + AXES, "bound, gap and waiting are of a time"),
    "workload and size": (
        AXES + 'workload = "vgg19"\n',
        "axes: size and workload; messages of a workload have their own",
    ),
    "unknown workload": (TRAINED.replace("vgg19", "vgg91"), "axes.workload: 'vgg91' is neither a model"),
    "bound of a workload": ('measure = ["time", "gap"]\n' + TRAINED, "measure: gap is of a collective; leave the axis"),
    "waiting of a size": ('measure = ["time", "waiting"]\n' + AXES, "measure: waiting is of a workload; add the axis"),
    "vary key": (AXES + '[vary]\nkeys = ["latency"]\n', "vary.keys: 'latency'; "),
    "vary at": (AXES + '[vary]\nkeys = "all"\nnodes = 7\n', "vary.nodes=7 is not on the axis nodes"),
    "vary axis": (AXES + '[vary]\nkeys = "all"\nnode = 7\n', "unknown key vary.node; "),
    "vary without time": (
        'measure = ["watts"]\n' + AXES + '[vary]\nkeys = "all"\n',
        "vary: assumptions are of a time",
    ),
    "light": (AXES + '[constraints]\nlight = "open"\n', "constraints.light='open'; write light = \"closes\""),
    "watts": (
        AXES + '[constraints]\nwatts_per_node = "few"\n',
        "constraints.watts_per_node='few' is not a positive number",
    ),
    "constraint": (AXES + "[constraints]\nwatts = 3\n", "unknown key constraints.watts; "),
    "answer": (AXES + "[answers.mapp]\n", "unknown key answers.mapp; did you mean 'map'?"),
    "answer's option": (AXES + "[answers.map]\nz = 3\n", "unknown key answers.map.z; "),
    "answer's axis": (AXES + '[answers.map]\nx = "sizes"\n', "answers.map.x: 'sizes'; did you mean 'size'?"),
    "answer's place": (AXES + "[answers.map.where]\nnodes = 5\n", "where: nodes=5 is not on the axis"),
    "title": ("title = 3\n" + AXES, "title=3 is not text"),
    "many sizes": (
        AXES.replace('"1KB"', '{ from = 1, to = "1PB", factor = 1.001 }'),
        "axes.size: factor=1.001 makes more than 1000 values; try 2",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_one_line(read, case):
    """It names the file, the place, the value and what to write."""
    text, words = WRONG[case]
    with pytest.raises(OpticclError) as caught:
        read(text)
    message = str(caught.value)
    assert words in message
    assert "mine.toml: " in message
    assert "\n" not in message
    assert caught.value.exit_code == 2


def test_a_thousand_million_points_are_refused_at_once(read):
    """Before any is made."""
    sizes, nodes = list(range(1, 1001)), list(range(1, 1001))
    times = [f"{1 + i}ns" for i in range(1000)]
    text = f'[axes]\nfabric = ["ideal"]\nnodes = {nodes}\nsize = {sizes}\nassume.endpoint = {times}\n'
    with pytest.raises(OpticclError, match=rf"axes: 1,000,000,000 points .*; at most {MOST_POINTS:,}, shorten an axis"):
        read(text)


def test_files_that_cannot_be_read(tmp_path):
    """None, a folder, one that is too large, one that is no text."""
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    for path, words in (
        (tmp_path / "absent.toml", "No such file"),
        (tmp_path, "Is a directory"),
        (large, "more than 1,048,576 bytes"),
        (binary, "is not valid TOML"),
    ):
        with pytest.raises(OpticclError, match=words):
            read_design(path)
