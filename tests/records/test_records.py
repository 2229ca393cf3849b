"""The golden records: a seeded tenth by `make test`, all by `make test-deep`."""

import zlib

import pytest

from opticcl import cli
from opticcl.cli import words_of_today
from opticcl.collective import COLLECTIVES
from opticcl.fabrics import FABRICS as REGISTERED
from tests.records.cells import cell_names, id_of, parts_of
from tests.records.commands import FABRICS, NO_RECORD, all_commands
from tests.records.differences import differences
from tests.records.file import FILE, made, names, read

SEED = 39
RECORDS = read()


def in_tenth(id):
    """Whether `make test` compares a record; that depends on its name alone, so that another record changes nothing."""
    return zlib.crc32(f"{SEED} {id}".encode()) % 10 == 0


@pytest.mark.parametrize("id", [pytest.param(id, marks=() if in_tenth(id) else pytest.mark.deep) for id in RECORDS])
def test_answers_are_those_of_the_record(id):
    """The same exit code, answer or refusal, times to 1e-9, the same plans and programmes; further fields do not matter."""
    found = list(map(str, differences(RECORDS[id], made(id))))
    assert not found, f"{id}; where this is intended: make golden ONLY='{id}' REASON='...' (docs/extending/tests.md)"


def test_there_is_a_record_for_every_name():
    """The file has every command and every cell of the conformance matrix, sorted, and no other."""
    if not FILE.exists():
        pytest.skip("no golden records: make golden")
    assert list(RECORDS) == names()


def verb_of(words, verbs):
    """The verb of a command, as it is written today; "" for none."""
    now = [word.partition(":")[0] for word in words_of_today(words)[:2]]
    return next((verb for verb in (" ".join(now), now[0]) if verb in verbs), "")


def test_every_verb_has_records():
    """Of answers and of refusals, or a reason why it has none; every fabric and every collective is in a command."""
    verbs = {verb for verb, _ in cli.command_group().walk()}
    commands = all_commands().values()
    answered = {verb_of(command.words, verbs) for command in commands if not command.id.startswith("refused/")}
    of_other_tests = {verb for verb in verbs if verb.startswith("study ")}
    assert answered | NO_RECORD.keys() | of_other_tests == verbs
    assert not answered & NO_RECORD.keys()
    refused = {verb_of(command.words, verbs) for command in commands if command.id.startswith("refused/")}
    assert refused >= verbs - {"warm"} - of_other_tests
    words = {word for command in commands for word in command.words}
    assert set(FABRICS) == set(REGISTERED.names()) <= words
    assert set(COLLECTIVES) <= words


def test_every_cell_of_the_matrix_has_a_record():
    """Whatever the algorithm, the collective and the fabric; names have neither spaces nor commas."""
    ids = cell_names()
    assert [id_of(*parts_of(id)) for id in ids] == list(ids)
    assert len(ids) > 1500
    assert len({id for id in ids if in_tenth(id)}) == pytest.approx(len(ids) / 10, rel=0.2)
    assert not [id for id in names() if set(id) & set(" ,'\"")]
