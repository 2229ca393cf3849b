"""Lists of sizes written by hand, the built-in ones among them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import UnknownNameError, WorkloadError
from opticcl.traces import BUILTIN_WORKLOADS, CollectiveCall, builtin, load_workload, sizes

BUCKETS = (8196000, 31502336, 26255360, 26550272, 9724160)
CALL = '[[calls]]\ncollective = "all_reduce"\nsize = {size}\n'


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("sizes") / "job.toml"


def load(path, text):
    """What the reader makes of a file with that text."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_workload(path)


def test_a_list_reads_as_written(path):
    """Names, units, repeats and the source, in order."""
    text = """
        name = "my job"
        source = "profile"
        [[calls]]
        collective = "All-Reduce"
        size = "1 KiB"
        name = "gradients"
        count = 2
        [[calls]]
        collective = "all_reduce"
        size = 5
    """
    read = load(path, text)
    gradients = CollectiveCall("gradients", "all_reduce", 1024, group_source="the list")
    assert read.calls == (gradients, gradients, CollectiveCall("call 2", "all_reduce", 5, group_source="the list"))
    assert (read.name, read.source, read.notes) == ("my job", "profile", ())
    assert (read.total_bytes, read.sizes("all_reduce")) == (2053, (1024, 1024, 5))


def test_without_a_source_the_file_is_the_source(path):
    """A number always says where it comes from."""
    assert str(path) == load(path, 'name = "a"\n' + CALL.format(size=1)).source


def test_whole_numbers_stay_exact(path):
    """2**53 + 1 is no float: a size must not pass through one."""
    assert load(path, 'name = "a"\n' + CALL.format(size=2**53 + 1)).total_bytes == 2**53 + 1


def test_a_list_without_suffix_is_known_by_its_content(tmp_path):
    """No suffix: text is a list of sizes."""
    assert load(tmp_path / "job", 'name = "a"\n' + CALL.format(size='"7 B"')).total_bytes == 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "`name`"),
        ('name = "a"', "`calls`"),
        ('name = "a"\ncalls = []', r"\[\[calls\]\]"),
        ('name = "a"\n[calls]\nsize = 1', "calls: Expected"),
        ("name = 1\n" + CALL.format(size=1), "name: Expected `str`"),
        ('name = "a"\nspeed = 3\n' + CALL.format(size=1), "`speed`"),
        ('name = "a"\n' + CALL.format(size=1) + "siez = 3", r"calls\[0\]: .*`siez`"),
        ('name = "a"\n[[calls]]\nsize = 1', r"calls\[0\]: .*`collective`"),
        ('name = "a"\n[[calls]]\ncollective = "all_reduce"', r"calls\[0\]: .*`size`"),
        ('name = "a"\n[[calls]]\ncollective = "all_redcue"\nsize = 1', r"calls\[0\].collective: .*all_reduce"),
        ('name = "a"\n' + CALL.format(size=1) + CALL.format(size="true"), r"calls\[1\].size: "),
        ('name = "a"\n' + CALL.format(size="1.5"), r"calls\[0\].size: "),
        ('name = "a"\n' + CALL.format(size=-1), r"calls\[0\].size: .*negative"),
        ('name = "a"\n' + CALL.format(size=2**60 + 2**10), r"calls\[0\].size: .*2\*\*60"),
        ('name = "a"\n' + CALL.format(size=10**400), r"calls\[0\].size: .*2\*\*60"),
        ('name = "a"\n' + CALL.format(size='"5 Gb/s"'), r"calls\[0\].size: "),
        ('name = "a"\n' + CALL.format(size='"half a lot"'), r"calls\[0\].size: "),
        ('name = "a"\n' + CALL.format(size=1) + "count = 0", r"calls\[0\].count: "),
        ('name = "a"\n' + CALL.format(size=1) + "count = 1000000000000", r"calls\[0\].count: "),
        ('name = "a"\n' + (CALL.format(size=1) + "count = 600000\n") * 2, r"calls\[1\].count: "),
        ('name = "a"\n\n[[calls]\n', "line 3"),
        ("a = " + "[" * 5000, "not valid TOML"),
        ("a = " + "1" * 5000, "not valid TOML"),
        (b"name = '\xff'", "byte 0xff"),
    ],
)
def test_a_wrong_list_is_refused_with_the_field(path, text, said):
    """One printable line: the file, the field or line, what is wrong."""
    with pytest.raises(WorkloadError, match=said) as caught:
        load(path, text)
    assert str(caught.value).isprintable()
    assert str(caught.value).startswith(f"{path}: ")


def test_a_huge_file_is_refused_unread(path, monkeypatch):
    """A list of sizes is short; anything else is some other file."""
    monkeypatch.setattr(sizes, "MAX_FILE_BYTES", 100)
    with pytest.raises(WorkloadError, match="100 bytes"):
        load(path, "#" * 101)


VALUES = st.one_of(st.integers(), st.booleans(), st.floats(), st.text(max_size=12).map(lambda t: f'"{ascii(t)[1:-1]}"'))


@examples(100)
@given(size=VALUES, count=VALUES, junk=st.text(max_size=20))
def test_any_value_gives_a_workload_or_one_line(path, size, count, junk):
    """Values of every kind, and texts that are no TOML."""
    for text in (
        f'name = "a"\n{CALL.format(size=size)}count = {count}',
        junk,
        f'name = "a"\n{CALL.format(size=1)}{junk}',
    ):
        try:
            read = load(path, text.lower().encode("utf-8", "replace"))
        except WorkloadError as error:
            line = str(error)
        else:
            line = f"{read.total_bytes}"
        assert line.isprintable()


def test_every_builtin_workload_reads():
    """Each has calls and a source, under its own name."""
    assert "resnet50_ddp" in BUILTIN_WORKLOADS
    for name in BUILTIN_WORKLOADS:
        assert builtin(name).name == name
        assert builtin(name).source
        assert builtin(name).calls


def test_resnet50_has_as_many_bytes_as_gradients():
    """25,557,032 float32 parameters in five buckets."""
    workload = builtin("ResNet50-DDP")
    assert workload.sizes("all_reduce") == BUCKETS
    assert workload.total_bytes == 102_228_128 == 4 * 25_557_032


def test_a_builtin_name_stands_for_its_file(tmp_path, monkeypatch):
    """Where a file is asked for the name will do, unless there is a file of that name."""
    monkeypatch.chdir(tmp_path)
    assert load_workload("resnet50_ddp") == builtin("resnet50_ddp")
    (tmp_path / "resnet50_ddp").write_text('name = "mine"\n' + CALL.format(size=3))
    assert load_workload("resnet50_ddp").total_bytes == 3


def test_an_unknown_builtin_is_answered_with_the_nearest():
    """The text helps on."""
    with pytest.raises(UnknownNameError, match="did you mean 'resnet50_ddp'"):
        builtin("resnet50")


def test_the_forms_in_the_docstring_and_the_page_read(path):
    """What the documentation shows is accepted."""
    page = (Path(__file__).parents[2] / "docs" / "traces.md").read_text("utf-8")
    docstring = "\n".join(line.removeprefix("    ") for line in sizes.__doc__.splitlines()[2:])
    for example in (docstring, page.partition("```toml\n")[2].partition("```")[0]):
        assert load(path, example).total_bytes == 100_000_000


spaces = st.sampled_from(["", " ", "\t "])
texts = st.sampled_from(
    ['"all_reduce"', '"All-Gather"', '"25 MB"', '"ü"', '""', '"a\\tb"', '"[[calls]]"', "'a'", '"""\n[[calls]]\n"""']
)
numbers = st.sampled_from(["0", "8", "1_000", "012", "0x10", "+5", "-1", "1.5", "true", "9" * 18, "9" * 19])
keys = st.sampled_from(["collective", "size", "name", "count", '"size"', "siez", "calls"])
ends = st.sampled_from(["\n", "\r\n", "\n\n", " \n", " # remark\n", "\n \n"])
odd_line = st.tuples(spaces, keys, spaces, st.just("="), spaces, st.one_of(texts, numbers), ends).map("".join)
plain_entry = st.builds(
    lambda size, name, count: f'[[calls]]\ncollective = "all_reduce"\nsize = {size}\n{name}{count}',
    st.sampled_from(["8", '"25 MB"', "0"]),
    st.sampled_from(["", 'name = "a b"\n', "name = 'c'\n"]),
    st.sampled_from(["", "count = 3\n", "count = 0\n"]),
)
head = st.sampled_from(['name = "a"\n', 'name = "a"\nsource = "b"\n\n', "", 'name = """\n', 'calls = []\nname = "a"\n'])


@examples(150)
@given(head, st.lists(plain_entry, min_size=1, max_size=4), st.lists(odd_line, max_size=2), st.integers(0, 4))
def test_the_scan_of_a_list_is_its_toml(head, entries, odd, at):
    """Where the scan takes a list, the parser of TOML says the same; it takes those that a program writes."""
    text = head + "".join(entries[:at]) + "".join(odd) + "".join(entries[at:])
    where = Path("job.toml")
    try:
        right = sizes.parsed(text.replace("\r\n", "\n"), where)
    except (ValueError, WorkloadError):
        right = None
    try:
        found = sizes.scanned(text.replace("\r\n", "\n"), where)
    except WorkloadError:
        found = None
    if found is not None:
        assert right is not None
        assert [*map(list, found[2:])] == [*map(list, right[2:])]
        assert found[:2] == right[:2]
    if right is not None and not odd and "'" not in text and "[]" not in text:
        assert found is not None


@pytest.mark.parametrize(
    "calls",
    [
        ["collective size count", "collective size name count"],
        ["size collective", "size collective name count"],
        ["count size collective name", "size collective"],
    ],
)
def test_lists_of_programs_are_scanned(calls):
    """In the order of the first call, or in the usual one."""
    lines = {"collective": 'collective = "all_reduce"', "size": "size = 8", "name": 'name = "a"', "count": "count = 2"}
    text = 'name = "a"\n' + "".join("\n".join(["[[calls]]", *map(lines.get, one.split()), ""]) for one in calls)
    found, right = (read(text, Path("job.toml")) for read in (sizes.scanned, sizes.parsed))
    assert [*map(list, found)] == [*map(list, right)]


def test_the_largest_number_of_calls(path):
    """A million in all; one more is refused."""
    text = 'name = "a"\n' + CALL.format(size=1) + "count = 999_999\n" + CALL.format(size=2)
    assert load(path, text).total_bytes == 1_000_001
    with pytest.raises(WorkloadError, match=r"calls\[1\]\.count: at least 1, and at most 1,000,000 calls in all"):
        load(path, f"{text}count = 2\n")


def test_a_long_list_is_columns(path):
    """A hundred thousand calls by count, and a name for each entry."""
    text = 'name = "a"\n' + "".join(CALL.format(size=i) + f"count = {5 * i + 1}\n" for i in range(200))
    read = load(path, text)
    assert (len(read.calls), read.total_bytes) == (99_700, sum(i * (5 * i + 1) for i in range(200)))
    assert (read.calls[0].name, read.calls[-1].name, read.calls[-1].size_bytes) == ("call 1", "call 200", 199)
