"""Binary tables of RAMP's network interfaces: the documented layout, read by its numbers alone."""

import struct
import zlib
from types import SimpleNamespace

import numpy as np
import pytest

import opticcl
from opticcl.errors import OutputError, PlanFileError, UnsupportedError
from opticcl.formats import nic_table
from opticcl.formats.nic_table import HEADER_BYTES, ROW, NicShape, nic_rows, read_nic_table, write_nic_table
from opticcl.ir.programme import DeviceTable
from opticcl.ir.tables import DataRows
from opticcl.plans.tables import TableMaker

RAMP = "ramp:groups=2,racks=2,wavelengths=4,transceivers_per_group=2"


@pytest.fixture(scope="module")
def maker():
    """Of an all_reduce on 16 nodes."""
    return TableMaker(opticcl.compile(RAMP, "all_reduce", "100 KB", algorithm="ramp"))


@pytest.fixture
def path(maker, tmp_path):
    """A written table."""
    write_nic_table(tmp_path / "nic.bin", maker.nic_table())
    return tmp_path / "nic.bin"


def test_the_layout_is_the_documented_one(maker, path):
    """Decoded with struct, row by row, and compared with the rows of data and the gates of settings."""
    raw = path.read_bytes()
    assert raw[:8] == b"OPTICNIC"
    version, nodes, transceivers, groups, wavelengths = struct.unpack_from("<5I", raw, 8)
    (slot_s,) = struct.unpack_from("<d", raw, 32)
    count, slots = struct.unpack_from("<QQ", raw, 40)
    (crc,) = struct.unpack_from("<I", raw, 56)
    assert (version, nodes, transceivers, groups, wavelengths) == (1, 16, 4, 2, 4)
    assert slot_s == maker.fabric.slot_s
    assert crc == zlib.crc32(raw[64:])
    first = struct.unpack_from(f"<{nodes + 1}Q", raw, 64)
    assert first[0] == 0
    assert first[-1] == count
    tables = maker.tables()
    s, d = tables.settings, tables.data
    position = tables.fabric.netlist().position
    decoded = set()
    for node in range(nodes):
        before = (-1, 0, 0)
        for row in range(first[node], first[node + 1]):
            at = 64 + 8 * (nodes + 1) + 32 * row
            slot, length, action, op, transceiver, wavelength, gates, lo, n = struct.unpack_from(
                "<IIBBHH2xQII", raw, at
            )
            assert slot + length <= slots
            assert before < (slot, action, transceiver)
            before = slot, action, transceiver
            number = node * transceivers + transceiver
            decoded.add((slot, length, action, op, number, wavelength, lo, n))
            device = position["tx_gate" if action == 0 else "rx_gate"]
            base = (node * groups + transceiver // 2) * groups
            for group in range(groups):
                mine = (s.kind == device) & (s.device == base + group) & (s.begin_s <= slot * slot_s + 1e-12)
                state = s.setting[mine][-1] if mine.any() else 0
                assert (gates >> group) & 1 == state
            assert gates
    slots_of = np.rint(d.from_s / slot_s).astype(int)
    lengths = np.ceil((d.until_s - d.from_s) / slot_s - 1e-6).astype(int)
    columns = (slots_of, lengths, 1 - d.sends, d.op, d.device, d.wavelength, d.chunk_lo, d.chunk_n)
    assert decoded == set(zip(*(np.asarray(column).tolist() for column in columns), strict=True))
    assert count == len(d)


def test_what_is_written_comes_back(maker, path):
    """All rows, node by node."""
    table, again = maker.nic_table(), read_nic_table(path)
    assert again.shape == table.shape
    assert np.array_equal(again.rows, table.rows)
    assert np.array_equal(again.of_node(3), table.rows[table.first[3] : table.first[4]])
    busy = again.of_node(3)
    assert (np.diff(busy["slot"].astype(int)) >= 0).all()


def with_crc(raw):
    """The bytes with a right checksum."""
    return raw[:56] + struct.pack("<I", zlib.crc32(raw[64:])) + raw[60:]


def with_first(raw, node, row):
    """The bytes with another first row of a node."""
    at = 64 + 8 * node
    return raw[:at] + struct.pack("<Q", row) + raw[at + 8 :]


def test_a_node_may_have_no_rows(path):
    """And the largest file is read."""
    raw = path.read_bytes()
    path.write_bytes(with_crc(with_first(raw, 1, 0)))
    table = read_nic_table(path)
    assert (len(table.of_node(0)), len(table.of_node(1))) == (0, struct.unpack_from("<Q", raw, 64 + 16)[0])


def test_the_largest_file(path, monkeypatch):
    """Larger ones are refused unread."""
    size = path.stat().st_size
    for most in (size, size - 1):
        monkeypatch.setattr(nic_table, "MOST_BYTES", most)
        if most == size:
            assert len(read_nic_table(path).rows)
        else:
            with pytest.raises(PlanFileError, match=f"tables of up to {most:,} are read"):
                read_nic_table(path)


def test_more_groups_than_a_row_has_gates():
    """They are refused before anything is computed."""
    with pytest.raises(OutputError, match="65 groups; a row has gates of up to 64"):
        nic_rows(NicShape(1, 65, 65, 1, 1e-8), None, None)
    table = table_of(NicShape(1, 64, 64, 1, 1e-8), device=[], sends=[], from_s=[], until_s=[])
    assert (table.slots, table.first.tolist(), len(table.rows)) == (0, [0, 0], 0)


def table_of(shape, **columns):
    """The table of rows of data on a machine whose gates never open."""
    same = dict.fromkeys(DataRows.KINDS, 0) | {"chunk_n": 1, "wavelength": 1}
    data = DataRows.of(**same | columns)
    return nic_rows(
        shape,
        SimpleNamespace(position={"tx_gate": 0, "rx_gate": 1}),
        SimpleNamespace(settings=DeviceTable.empty(), data=data),
    )


def test_rows_are_in_order():
    """By slot, action and transceiver; a row has as many slots as its data needs."""
    shape = NicShape(2, 4, 2, 2, 1e-8)
    device, sends = [7, 1, 3, 2, 0, 1], [True, False, True, True, True, True]
    begin = np.array([0, 0, 0, 0, 0, 3]) * 1e-8
    lasts = np.array([2, 1, 1, 1.5, 1, 2]) * 1e-8
    table = table_of(shape, device=device, sends=sends, from_s=begin, until_s=begin + lasts)
    assert table.first.tolist() == [0, 5, 6]
    rows = [(row["slot"], row["action"], row["transceiver"], row["slots"]) for row in table.rows]
    assert rows == [(0, 0, 0, 1), (0, 0, 2, 2), (0, 0, 3, 1), (0, 1, 1, 1), (3, 0, 1, 2), (0, 0, 3, 2)]
    assert table.slots == 5


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: raw[:40], "does not begin with OPTICNIC"),
        (lambda raw: b"X" + raw[1:], "does not begin with OPTICNIC"),
        (lambda raw: raw[:8] + struct.pack("<I", 9) + raw[12:], "version=9"),
        (lambda raw: raw[:40] + struct.pack("<Q", 1 << 60) + raw[48:], "rows take"),
        (lambda raw: raw[:-1], "rows take"),
        (lambda raw: raw[:64], "rows take"),
        (lambda raw: with_crc(with_first(raw, 16, struct.unpack_from("<Q", raw, 40)[0] - 1)), "do not ascend"),
        (lambda raw: with_crc(with_first(raw, 1, struct.unpack_from("<Q", raw, 40)[0])), "do not ascend"),
        (lambda raw: with_crc(raw[:-32] + struct.pack("<IIBBHH2xQII", 1, 1, 0, 0, 4, 0, 1, 0, 1)), "transceiver=4"),
        (lambda raw: with_crc(raw[:-32] + struct.pack("<IIBBHH2xQII", 1, 1, 0, 0, 0, 4, 1, 0, 1)), "wavelength=4"),
        (lambda raw: with_crc(raw[:-32] + struct.pack("<IIBBHH2xQII", 1, 1, 2, 0, 0, 0, 1, 0, 1)), "action=2"),
        (lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), "is damaged"),
        (lambda raw: with_crc(raw[:64] + struct.pack("<Q", 1) + raw[72:]), "do not ascend"),
        (lambda raw: with_crc(raw[:-32] + struct.pack("<IIBBHH2xQII", 1, 1, 0, 0, 99, 0, 1, 0, 1)), "transceiver=99"),
        (lambda raw: with_crc(raw[:-32] + struct.pack("<IIBBHH2xQII", 1, 1, 7, 0, 0, 0, 1, 0, 1)), "action=7"),
        (
            lambda raw: with_crc(raw[:-32] + struct.pack("<IIBBHH2xQII", 1, 1, 0, 0, 0, 0, 8, 0, 1)),
            "more than 2 groups",
        ),
        (lambda raw: raw[:32] + struct.pack("<d", 0.0) + raw[40:], "is not the length of a slot"),
    ],
)
def test_damaged_tables_are_refused(path, damage, message):
    """In one line; sizes are compared with the file before anything is read."""
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(PlanFileError, match=message):
        read_nic_table(path)


def test_other_fabrics_have_no_slots(tmp_path):
    """And a file that is not there is named."""
    with pytest.raises(UnsupportedError, match="oddl has no slots"):
        TableMaker(opticcl.compile("oddl:shape=2x4", "all_reduce", "1 KB")).nic_table()
    with pytest.raises(PlanFileError, match="cannot be read"):
        read_nic_table(tmp_path / "none.bin")
    assert (HEADER_BYTES, ROW.itemsize) == (64, 32)
