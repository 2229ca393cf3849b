"""Workloads and logs of AICB, read by the package and by a parser written here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.damage import one_line, survives_damage

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_steps, load_workload

HEAD = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count"
FILE = f"""{HEAD}
CommType.all_gather,CommGroup.tp_group,2,2048,forward.attention,None,None,,None,None,None,1
CommType.computation,None,None,((4, 6), (6, 10)),forward.mlp,None,None,,None,None,None,1
CommType.isend,CommGroup.pp_group,2,512,forward,None,None,send_next,None,None,None,1
CommType.all_reduce,CommGroup.dp_group,4,4096,backward,None,None,,2.5,3.1,4.0,2
CommType.computation,CommGroup.all,None,0,backward,None,None,,0.25,None,None,1
CommType.barrier,CommGroup.all,None,0,,None,None,,None,None,None,1
CommType.broadcast,CommGroup.dp_group,4,None,last,None,0,,None,None,None,1
CommType.epoch_end,None,None,0,,None,None,,None,None,None,1
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("aicb") / "job.csv"


def load(path, text, **more):
    """What the reader makes of a file with that text."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_workload(path, **more)


def test_calls_with_their_groups(path):
    """Whole messages; groups in Megatron's order; a row of two counts as two; what has no size is counted."""
    read = load(path, FILE)
    assert [(c.name, c.collective, c.size_bytes, c.ranks, c.measured_s) for c in read.calls] == [
        ("forward.attention", "all_gather", 2048, (0, 1), 0),
        ("forward", "send_recv", 512, (0, 8), 0),
        ("backward", "all_reduce", 4096, (0, 2, 4, 6), 2.5e-3),
        ("backward", "all_reduce", 4096, (0, 2, 4, 6), 2.5e-3),
        ("barrier", "barrier", 0, (), 0),
    ]
    assert (read.num_ranks, read.ranks_source, read.compute_s) == (16, "TP * DP * PP of job.csv", 0.25e-3)
    assert any("1 broadcast, without a size" in note for note in read.notes)
    assert load(path, FILE, num_ranks=32).num_ranks == 32


def test_rows_run_one_after_the_other(path):
    """Nothing waits for an isend; a product of matrices without a time has operations and, of two bytes an element, data."""
    path.write_text(FILE)
    job = load_job(path)
    assert [task.after for task in job.tasks] == [(), (0,), (1,), (1,), (3,), (4,), (5,)]
    product = next(task for task in job.tasks if task.operations)
    assert (product.operations, product.memory_bytes, product.phase) == (2 * 4 * 6 * 10, 2 * (24 + 60 + 40), "forward")
    assert job.bound == ""
    path.write_text("\n".join(row for row in FILE.splitlines() if "isend" not in row))
    assert load_job(path).bound == "upper"
    assert any("1 product of matrices; give the device (--device h100)" in note for note in job.notes)


def test_epochs_are_steps(path):
    """Between two ends of an epoch; what is before the first is initialisation."""
    rows = FILE.splitlines()
    path.write_text("\n".join([*rows[:5], rows[8], *rows[1:5], rows[8], rows[4]]))
    assert [(step.step, step.num_calls) for step in load_steps(path)] == [("epoch 1", 4), ("epoch 2", 2)]
    assert "left out: rows of the initialisation, before the first epoch_end" in load_workload(path).notes


def test_stages_of_a_pipeline(path):
    """A section a stage, whose first rank stands for all: its groups, and transfers with the next stage."""
    sections = []
    for stage, ways in enumerate((["isend,send_next", "irecv,recv_next"], ["irecv,recv_prev", "isend,send_prev"])):
        ranks = ", ".join(f"rank{rank}" for rank in range(4 * stage, 4 * stage + 4))
        rows = [
            f"CommType.{kind},CommGroup.pp_group,1,{100 + i},forward,None,None,{way},None,None,None,1"
            for i, (kind, way) in enumerate(one.split(",") for one in ways)
        ]
        group = "CommType.all_reduce,CommGroup.tp_group,2,8,forward,None,None,,None,None,None,1"
        data = "CommType.all_reduce,CommGroup.dp_group,2,16,backward,None,None,,None,None,None,1"
        sections.append("\n".join([f"[ pp_stage{stage}: [{ranks}] ]", HEAD, group, *rows, data]))
    read = load(path, "\n".join(sections))
    assert sorted((c.collective, c.size_bytes, c.ranks) for c in read.calls) == [
        ("all_reduce", 8, (0, 1)),
        ("all_reduce", 8, (4, 5)),
        ("all_reduce", 16, (0, 2)),
        ("all_reduce", 16, (4, 6)),
        ("send_recv", 100, (0, 4)),
        ("send_recv", 101, (4, 0)),
    ]
    assert (read.num_ranks, read.ranks_source) == (8, "the list of ranks of job.csv")
    job = load_job(path)
    assert job.device_ranks == (0, 4)
    assert [task.after for task in job.tasks if task.name == "forward" and task.collective == "send_recv"] == [
        (0, 1)
    ] * 2
    assert all(len(task.after) == 2 for task in job.tasks if task.name == "backward")
    whole = load(path, f"[rank0 ~ rank15]\n{FILE}")
    assert (whole.num_ranks, whole.calls[1].ranks) == (16, (0, 8))


def test_the_older_form_has_no_sizes_of_groups(path):
    """They are asked for, and assumed in a note."""
    text = FILE.replace("comm_group_size,", "").replace("_group,2,", "_group,").replace("_group,4,", "_group,")
    text = (
        text.replace("None,None,((", "None,((")
        .replace("all,None,0", "all,0")
        .replace("epoch_end,None,None,0", "epoch_end,None,0")
    )
    read = load(path, text, num_ranks=8)
    assert [(c.collective, c.ranks) for c in read.calls][:2] == [("all_gather", ()), ("send_recv", (-1, -1))]
    assert any("groups assumed: 4 of 5 calls of group 'all', 'dp_group', 'tp_group'" in note for note in read.notes)


# --- drawn files ------------------------------------------------------------------------------------------------------

KINDS = {
    "all_reduce": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "all_to_all": "all_to_all",
    "broadcast": "broadcast",
}


def parsed(text):
    """Calls (collective, bytes, ranks) and computation [ms], by a parser of its own that splits from both ends."""
    calls, compute_ms, sizes = [], 0.0, {}
    rows = [row.replace('"', "") for row in text.splitlines()[1:]]
    for row in rows:
        _, group, size = row.split(",")[:3]
        if size != "None":
            sizes[group.partition(".")[2]] = int(size)
    tp, dp, ep, pp = (sizes.get(f"{name}_group", 1) for name in ("tp", "dp", "ep", "pp"))
    world = tp * dp * pp
    for row in rows:
        kind, group = (part.partition(".")[2] for part in row.split(",")[:2])
        took, _, _, count = row.rsplit(",", 4)[1:]
        if kind == "computation":
            compute_ms += 0.0 if took == "None" else float(took) * int(count)
            continue
        size = int(row.split(",")[3])
        stride = {"tp_group": 1, "dp_group": tp, "ep_group": tp, "ep_dp_group": tp * ep}[group]
        ranks = tuple(range(0, sizes[group] * stride, stride))
        if len(ranks) > 1:
            calls += [(KINDS[kind], size, () if len(ranks) == world else ranks)] * int(count)
    return calls, compute_ms


@examples(60)
@given(data=st.data())
def test_drawn_files_by_an_independent_parser(path, data):
    """Drawn sizes of groups, rows, counts, shapes with and without quotes, times and ends of lines."""
    tp, ep, more = (data.draw(st.sampled_from([1, 2, 3])) for _ in range(3))
    sizes = {"tp_group": tp, "dp_group": ep * more, "ep_group": ep, "ep_dp_group": more}
    rows = [
        f"CommType.all_reduce,CommGroup.{name},{size},8,init,None,None,,None,None,None,1"
        for name, size in sizes.items()
    ]
    for _ in range(data.draw(st.integers(0, 8))):
        count, took = data.draw(st.integers(1, 3)), data.draw(st.one_of(st.none(), st.integers(0, 10**6)))
        tail = f"backward.x,None,None,,{None if took is None else took / 1000},None,None,{count}"
        if data.draw(st.booleans()):
            a, b, c = (data.draw(st.integers(1, 99)) for _ in range(3))
            shapes = f"(({a}, {b}), ({b}, {c}))"
            quote = data.draw(st.sampled_from(["", '"']))
            rows.append(f"CommType.computation,None,None,{quote}{shapes}{quote},{tail}")
        else:
            kind, group = data.draw(st.sampled_from(sorted(KINDS))), data.draw(st.sampled_from(sorted(sizes)))
            rows.append(f"CommType.{kind},CommGroup.{group},{sizes[group]},{data.draw(st.integers(0, 10**9))},{tail}")
    text = data.draw(st.sampled_from(["\n", "\r\n"])).join([HEAD, *rows])
    calls, compute_ms = parsed(text)
    if not calls:
        assert "no collective" in one_line(load, path, text)
        return
    read = load(path, text)
    assert [(c.collective, c.size_bytes, c.ranks) for c in read.calls] == calls
    assert read.compute_s == pytest.approx(compute_ms * 1e-3)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (",msg_size", ",size", "line 1: the line before the rows has no msg_size"),
        (",2,2048,forward", ",forward", "line 2: 10 columns, not the 12 of the line before the rows"),
        (",2,2048,", ",2,", "line 2: 11 columns, not the 12 of the line before the rows"),
        (",2,2048,", ",2,-5,", "line 2: msg_size is '-5', not a number from 0"),
        (",2,2048,", ",2,1.5,", "line 2: msg_size is 1.5, not a whole number"),
        (",2,2048,", ",2,2e18,", "line 2: the message is .* not 0 to 2"),
        (",2,2048,", ",nan,2048,", "line 2: comm_group_size is 'nan'"),
        (",2,2048,", ",9e8,2048,", "line 2: comm_group_size is 900,000,000, more than"),
        (",2.5,", ",soon,", "line 5: _elapsed_time is 'soon'"),
        ("4.0,2\n", "4.0,0\n", "line 5: count is 0, not 1 to"),
        ("4.0,2\n", "4.0,1e300\n", "line 5: count is 1e\\+300, not 1 to"),
        ("comm_type,", "[ranks]\ncomm_type,", "line 1: '\\[ranks\\]' lists no ranks"),
        ("dp_group,4,None", "dp_group,8,None", "line 8: dp_group has 8 ranks here, and 4 before"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(path, old, new, said):
    """One printable line."""
    assert old in FILE
    with pytest.raises(WorkloadError, match=said) as caught:
        load(path, FILE.replace(old, new, 1))
    assert str(caught.value).isprintable()


@examples(60)
@given(at=st.integers(0, len(FILE) - 1), byte=st.integers(0, 255), cut=st.integers(0, len(FILE)))
def test_cut_and_flipped_files_raise_nothing_else(path, at, byte, cut):
    """A workload or one line."""
    assert survives_damage(load, path, FILE, at, byte, cut)


def rows(*lines):
    """The text of a file of some rows."""
    return "\n".join([HEAD, *lines])


def row(kind, group="dp_group", size="None", bytes_=8, stage="s", additional="", took="None", count="1"):
    """A row."""
    return f"CommType.{kind},CommGroup.{group},{size},{bytes_},{stage},None,None,{additional},{took},None,None,{count}"


def test_transfers_of_an_unlisted_stage(path):
    """Their ends are those of the first two stages; the number of ranks is not that of the groups without a pipeline's."""
    ways = [("isend", "send_next"), ("irecv", "recv_next"), ("irecv", "recv_prev"), ("isend", "send_prev")]
    transfers = [row(kind, "pp_group", 1, 16, additional=way) for kind, way in ways]
    read = load(path, rows(row("all_reduce", size=3), *transfers))
    assert [c.ranks for c in read.calls] == [(0, 1, 2), (0, 3), (3, 0), (0, 3), (3, 0)]
    assert read.num_ranks == 0
    assert any("taken to be those of the first two stages" in note for note in read.notes)
    assert load(path, rows(row("all_reduce", size=3), *transfers).replace("pp_group,1,", "pp_group,2,")).num_ranks == 6
    listed = load(path, f"[rank0, rank1, rank2]\n{rows(row('all_reduce', size=3), *transfers)}", num_ranks=6)
    assert [c.ranks for c in listed.calls[1:]] == [(0, 3), (3, 0)]
    assert "left out: 1 irecv to or from a stage before the first, 16 bytes in all" in listed.notes
    assert not any("taken to be those of the first two stages" in note for note in listed.notes)
    assert not any("first two stages" in note for note in load(path, rows(row("all_reduce", size=3))).notes)


def test_computation_without_a_time(path):
    """Products of batches; other shapes are counted; a time goes before shapes, and a row without a count is one."""
    shapes = ["((2, 4, 6), (6, 10))", "((2, 3), (4, 5))", "((2,), (2, 3))", "((2, 3), (3, 4), (4, 5))"]
    text = rows(
        row("all_reduce", size=2, count="None"),
        *(row("computation", "all", bytes_=one, stage="backward.x") for one in shapes),
        row("computation", "all", bytes_="((2, 3), (3, 4))", took="0.5", stage="forward"),
    )
    read = load(path, text)
    assert "left out: 3 computations without a time and without two matrices" in read.notes
    assert "computation: of milliseconds in _elapsed_time" in read.notes
    tasks = [task for task in load_job(path).tasks if not task.communicates]
    assert [(t.operations, t.memory_bytes, t.compute_s, t.phase) for t in tasks] == [
        (960, 2 * (48 + 60 + 80), 0, "backward"),
        *([(0, 0, 0, "backward")] * 3),
        (0, 0, 0.5e-3, "forward"),
    ]
    alone = load(path, rows(row("all_reduce", size=2)))
    assert not any("computation" in note for note in alone.notes)
    assert load_job(path).bound == ""
    assert load_steps(path)[0].step == ""


def test_rows_are_bounded(path, monkeypatch):
    """By their count."""
    monkeypatch.setattr("opticcl.traces.aicb.MAX_ROWS", 5)
    assert len(load(path, rows(row("all_reduce", size=2, count="3"), row("all_reduce", size=2, count="2"))).calls) == 5
    with pytest.raises(WorkloadError, match="line 4: more than 5 rows"):
        load(path, rows(row("all_reduce", size=2, count="3"), row("all_reduce"), row("all_reduce", size=2, count="2")))
    with pytest.raises(WorkloadError, match=r"line 2: count is 1\.5, not a whole number"):
        load(path, rows(row("all_reduce", size=2, count="1.5")))
    with pytest.raises(WorkloadError, match=r"line 2: comm_group_size is 1\.5, not a whole number"):
        load(path, rows(row("all_reduce", size=1.5)))


def full_row(kind, group="CommGroup.dp_group", size="4", message="8", took="None", stage="x", count="1", more=""):
    """A row of a group of four."""
    return f"CommType.{kind},{group},{size},{message},{stage},None,None,{more},{took},None,None,{count}"


def rows_of(*rows):
    """A file of such rows."""
    return "\n".join([HEAD, *rows])


@pytest.mark.parametrize(
    ("one", "ranks", "left"),
    [
        (full_row("all_reduce", size=str(2**20)), [()], ()),
        (full_row("all_reduce", count="None"), [(0, 1, 2, 3)], ()),
        (full_row("barrier", message="None"), [(0, 1, 2, 3)], ()),
        (full_row("all_reduce", message="((4, 6), (6, 10))"), [], ("1 all_reduce, without a size",)),
        (full_row("wait"), [], ("1 wait, which moves no data",)),
        (full_row("isend", "CommGroup.pp_group"), [(-1, -1)], ()),
    ],
)
def test_calls_of_single_rows(path, one, ranks, left):
    """The largest group, a row without a count or a size, one that is no call, and a transfer without a direction."""
    read = load(path, rows_of(one, full_row("all_reduce", "CommGroup.x", "2")), num_ranks=2**20)
    assert [call.ranks for call in read.calls] == [*ranks, (0, 1)]
    assert tuple(note[10:] for note in read.notes if note.startswith("left out: ")) == left
    assert "order: rows run one after the other, as AICB runs them; transfers start at once" in read.notes


@pytest.mark.parametrize("kind", ["isend", "irecv"])
def test_transfers_of_one_kind_alone(path, kind):
    """They are of a pipeline whose length is not known, and nothing waits for what follows them."""
    read = load(
        path, rows_of(full_row("all_reduce"), full_row(kind, "CommGroup.pp_group", "1", more=f"{kind[1:]}_next"))
    )
    assert (len(read.calls), read.num_ranks) == (2, 0)
    assert any("taken to be those of the first two stages" in note for note in read.notes)


@pytest.mark.parametrize("ends", ["", "first", "middle", "late", "last", "both"])
def test_where_the_initialisation_ends(path, ends):
    """At the first end of an epoch, if rows follow it; what follows the last is a step too."""
    one, two, three = (full_row("all_reduce", message=str(8 * i)) for i in (1, 2, 3))
    end = "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1"
    rows = {"": [one, two, three], "first": [end, one, two, three], "middle": [one, end, two, three]}
    rows |= {"last": [one, two, three, end], "both": [one, end, two, end, three]}
    rows["late"] = [one, two, end, three]
    load(path, rows_of(*rows[ends]))
    steps = {
        "": [[8, 16, 24]],
        "first": [[8, 16, 24]],
        "middle": [[16, 24]],
        "last": [[8, 16, 24]],
        "both": [[16], [24]],
    }
    steps["late"] = [[24]]
    found = load_steps(path)
    assert [[task.size_bytes for task in step.tasks] for step in found] == steps[ends]
    assert [step.step for step in found] == (["epoch 1", "epoch 2"] if ends == "both" else [""])
    left = "left out: rows of the initialisation, before the first epoch_end"
    assert (left in load_workload(path).notes) == (ends in ("first", "middle", "late", "both"))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([full_row("all_reduce"), full_row("all_reduce", size="2")], "line 3: dp_group has 2 ranks here, and 4 before"),
        ([full_row("all_reduce", size="1"), full_row("all_reduce")], "line 3: dp_group has 4 ranks here, and 1 before"),
        ([full_row("all_reduce", message="8.5")], "line 2: msg_size is 8.5, not a whole number"),
        ([full_row("all_reduce", size="2.5")], "line 2: comm_group_size is 2.5, not a whole number"),
        ([full_row("all_reduce", count="0")], "line 2: count is 0, not 1 to"),
        ([full_row("all_reduce", count="1.5")], "line 2: count is 1.5, not a whole number"),
        ([full_row("all_reduce", took="-1")], "line 2: _elapsed_time is '-1', not a number from 0"),
        ([full_row("all_reduce", took="inf")], "line 2: _elapsed_time is 'inf', not a number from 0"),
        ([full_row("all_reduce", message="many")], "line 2: msg_size is 'many', not a number from 0"),
        ([full_row("all_reduce", message=str(2**61))], "line 2: the message is .* bytes, not 0 to 2"),
        ([full_row("all_reduce", size="99999999")], "line 2: comm_group_size is 99,999,999, more than"),
        ([full_row("all_reduce") + ",9"], "line 2: 13 columns, not the 12 of the line before the rows"),
        (["[ranks of none]", HEAD, full_row("all_reduce")], "line 2: .* lists no ranks, such as"),
    ],
)
def test_a_wrong_row_is_refused(path, rows, said):
    """With its line, name and value."""
    with pytest.raises(WorkloadError, match=said) as caught:
        load(path, rows_of(*rows))
    assert str(caught.value).isprintable()


def test_sizes_of_groups_that_do_not_count(path):
    """Of rows without a group, and of transfers whose group is given as one rank."""
    transfer = full_row("isend", "CommGroup.pp_group", "1", more="send_next")
    rows = [
        full_row("all_reduce", "None", "7"),
        full_row("all_reduce", "None", "9"),
        transfer,
        full_row("all_reduce", "CommGroup.pp_group", "2"),
    ]
    read = load(path, rows_of(*rows, full_row("all_reduce")), num_ranks=16)
    assert [(c.group, len(c.ranks or range(16))) for c in read.calls] == [
        ("", 7),
        ("", 9),
        ("pp_group", 2),
        ("pp_group", 2),
        ("dp_group", 4),
    ]


def test_rows_without_the_size_of_their_group(path):
    """As those of experts: the size is that of other rows of the group; of a group without any it is unknown."""
    rows = [full_row("all_gather", f"CommGroup.{group}", size) for group, size in (("tp_group", "None"), ("x", "None"))]
    read = load(path, rows_of(*rows, full_row("all_reduce", "CommGroup.tp_group", "2"), full_row("all_reduce")))
    assert [(c.group, c.ranks) for c in read.calls] == [
        ("tp_group", (0, 1)),
        ("x", ()),
        ("tp_group", (0, 1)),
        ("dp_group", (0, 2, 4, 6)),
    ]


@pytest.mark.parametrize(
    ("shapes", "work"),
    [
        ("((4, 6), (6, 10))", (480, 248)),
        ("((2, 4, 6), (2, 6, 10))", (960, 2 * (48 + 120 + 80))),
        ("((4, 1), (1, 10))", (80, 2 * (4 + 10 + 40))),
        ("((2, 4, 6), (6, 10))", (960, 376)),
        ("((4, 6), (5, 10))", None),
        ("((4,), (4, 6))", None),
        ("((4, 6), (6, 10), (1, 2))", None),
        ("24 floats", None),
    ],
)
def test_products_of_matrices(path, shapes, work):
    """Two operations an element of each pair, two bytes an element; other shapes have none, which is counted."""
    load(path, rows_of(full_row("computation", "None", "None", shapes), full_row("all_reduce")))
    job = load_job(path, num_ranks=4)
    first = job.tasks[0]
    assert (first.operations, first.memory_bytes) == (work or (0, 0))
    notes = "; ".join(job.notes)
    assert ("computation without a time: 1 product of matrices" in notes) == (work is not None)
    assert ("1 computation without a time and without two matrices" in notes) == (work is None)
    load(path, rows_of(full_row("computation", "None", "None", shapes, took="3", count="2"), full_row("all_reduce")))
    timed = load_job(path, num_ranks=4)
    assert timed.compute_s == pytest.approx(6e-3)
    assert [task.operations for task in timed.tasks] == [0] * 3
    assert "without a time" not in "; ".join(timed.notes)
