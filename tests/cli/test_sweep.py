"""`compare --sizes` as a user types it."""

TWO = ("compare", "-f", "ideal", "-f", "torus", "-n", "9", "--sizes", "1KB:1MB:10")


def test_one_fabric_has_its_rates(opticcl):
    """As nccl-tests print them."""
    done = opticcl("compare", "-f", "sipac:radix=2,levels=2", "--sizes", "8B:8KB:4")
    assert done.returncode == 0
    for head in ("size", "algorithm", "time", "algbw", "busbw"):
        assert head in done.stdout
    rows = [line.split() for line in done.stdout.splitlines()]
    assert len([row for row in rows if row and row[0][0].isdecimal() and row[1] in ("B", "KB")]) == 5
    assert "all plans" in done.stdout


def test_several_fabrics_have_a_column_each(opticcl, answer):
    """And the same numbers as JSON."""
    done = opticcl(*TWO)
    assert done.returncode == 0
    head = done.stdout.splitlines()[1].split()
    assert head[:2] == ["size", "fastest"]
    assert {"ideal", "torus"} <= set(head)
    found, code = answer(*TWO)
    assert code == 0
    assert [(row["fabric"], row["size_bytes"]) for row in found["rows"]] == [
        (name, size) for name in ("ideal", "torus") for size in (1000, 10_000, 100_000, 1_000_000)
    ]
    assert found["left_out"] == []


def test_what_declines_is_left_out(opticcl):
    """The others have their rows; alone it is refused."""
    done = opticcl(
        "compare", "-f", "terarack_torus:shape=2x3", "-f", "ideal:nodes=6", "-c", "send_recv", "--sizes", "1KB:4KB"
    )
    assert done.returncode == 0
    assert "left out: terarack_torus" in done.stdout
    done = opticcl("compare", "-f", "ideal:nodes=6", "-a", "wrht", "--sizes", "1KB:1GB")
    assert done.returncode == 2
    assert "wrht cannot do all_reduce on ideal" in done.stderr


def test_a_wrong_plan_is_exit_code_1(opticcl):
    """And named below the table."""
    done = opticcl(
        "compare", "-f", "ramp:groups=3,racks=3,wavelengths=6", "-a", "ramp:variant=published", "--sizes", "1KB:1KB"
    )
    assert done.returncode == 1
    assert "WRONG: ramp:variant=published" in done.stdout
