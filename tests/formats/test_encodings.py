"""Encodings that formats share: values read in pieces of any size are those of the whole text, and damage has its place."""

import io
import json
import re
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces import independent
from tests.traces.test_topoopt import table, tables

from opticcl.formats.encoding import json_stream, protobuf
from opticcl.formats.encoding.flatbuffers import root
from opticcl.formats.encoding.json_stream import JsonStream
from opticcl.reading import DamageError

leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.text(max_size=30), st.floats(allow_nan=False)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
forms = st.sampled_from([{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}])


class Slowly(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def __init__(self, content, step):
        super().__init__(content)
        self.step, self.count = step, 0

    def read(self, size=-1):
        """At most `step` bytes."""
        self.count += 1
        return super().read(self.step if size < 0 else min(size, self.step))


def stream_of(text, step=7):
    """A stream of a text, encoded where it is none of bytes."""
    return JsonStream(Slowly(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"), step))


@examples(60)
@given(listed=st.lists(values, max_size=5), form=forms, step=st.integers(1, 40), mark=st.booleans())
def test_elements_and_their_places(listed, form, step, mark):
    """Whatever the pieces in which the file comes; with a byte order mark, which is no character."""
    text = json.dumps(listed, **form)
    stream = stream_of(b"\xef\xbb\xbf" * mark + text.encode("utf-8", "surrogatepass"), step)
    found, places = [], []
    for at in stream.elements():
        places.append(at)
        found.append(stream.value())
    stream.finish()
    due = json.loads(text.encode("utf-8", "replace")) if "ensure_ascii" in form else listed
    assert json.dumps(found) == json.dumps(due)
    decoder = json.JSONDecoder()
    for at, one in zip(places, listed, strict=True):
        assert decoder.raw_decode(text, at)[0] == one
    assert stream.at == len(text)


@examples(60)
@given(
    members=st.dictionaries(st.text(max_size=5), values, max_size=5),
    form=forms,
    step=st.integers(1, 40),
    data=st.data(),
)
def test_members_and_what_is_skipped(members, form, step, data):
    """Each is taken whole, or skipped."""
    text = json.dumps(members, **form) + "  \n"
    stream, found = stream_of(text, step), {}
    due = json.loads(text.encode("utf-8", "replace")) if "ensure_ascii" in form else members
    skipped = set()
    for key in stream.members():
        if data.draw(st.booleans()):
            stream.skip()
            skipped.add(key)
        else:
            found[key] = stream.value()
    stream.finish()
    assert json.dumps(found) == json.dumps({key: value for key, value in due.items() if key not in skipped})


def taken(stream, names):
    """All elements, or members, of a text."""
    for _ in stream.members() if names else stream.elements():
        stream.value()
    stream.finish()


@pytest.mark.parametrize("step", [1, 1000])
@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        ("[1 2]", 3, "expected ',', found '2'"),
        ("[1,", 3, "no JSON"),
        ("[1", 2, "expected ',', the file ends"),
        ("{", 1, "no JSON"),
        ("[" + " " * 40 + "x" + " " * 40 + "]", 41, "no JSON: Expecting value"),
        ("[1] 2", 4, "more text after the end of the trace"),
        ("[" + "[" * 100_000, 1, "a value nested too deeply"),
        ('["' + "a" * 50, 1, "no JSON: Unterminated string"),
        ("[" + "1" * 5000 + "]", 1, "no JSON: a number with too many digits"),
        ('{"a" 1}', 5, "expected ':', found '1'"),
        ("{1: 2}", 1, "a name in an object that is not text"),
        ('{"a": 1 "b"}', 8, "expected ',', found"),
    ],
)
def test_damage_has_its_place(text, at, said, step):
    """The character from which on the text is none."""
    stream = stream_of(text, step)
    with pytest.raises(DamageError) as caught:
        taken(stream, text.startswith("{"))
    assert caught.value.at == at
    assert caught.value.what.startswith(said)
    for other, names in (("{}", False), ("[]", True)):
        with pytest.raises(DamageError) as caught:
            taken(stream_of(other, step), names)
        assert (caught.value.at, caught.value.what[:8]) == (0, "expected")


@pytest.mark.parametrize("number", ["12.5", "1e5", "-1.5E-3", "120"])
def test_a_number_that_goes_on_behind_a_piece(number):
    """Wherever it is cut."""
    for step in range(1, 12):
        stream = stream_of(f'{{"a": {number}, "b": [{number}]}}', step)
        assert [stream.value() for _ in stream.members()] == [float(number), [float(number)]]


def test_a_value_has_a_largest_size(monkeypatch):
    """A text that goes on is not kept; one as long as allowed is read, and more is skipped, one after the other."""
    monkeypatch.setattr(json_stream, "MAX_VALUE", 100)
    monkeypatch.setattr(json_stream, "CHUNK", 10)
    assert stream_of('"' + "a" * 60 + '"', 10).value() == "a" * 60
    behind = stream_of("[" + "1," * 200 + f'"{"a" * 98}"]', 10)  # what was read before does not count
    assert [behind.value() for _ in behind.elements()] == [*[1] * 200, "a" * 98]
    with pytest.raises(DamageError, match="a value of more than 100 characters"):
        stream_of('"' + "a" * 500, 10).value()
    for text in ("[" + "1, " * 100 + "1]", "{" + '"a": 1, ' * 100 + '"a": 1}'):
        stream = stream_of(text, 10)
        stream.skip()
        stream.finish()
    for gap, ended in ((60, True), (500, False)):
        stream = stream_of("[{" + "x" * gap + "}, {}]", 10)
        for at in stream.elements():
            with pytest.raises(DamageError):
                stream.value()
            assert stream.resume(END) == ended
            assert ended or stream.at == at
            break


def test_no_more_is_read_than_is_needed(monkeypatch):
    """Up to a value or its damage; a long value is taken in few pieces, each as long as all before."""
    monkeypatch.setattr(json_stream, "CHUNK", 10)
    rows = [{"a": 1}, [2, 3], "four", 5, 6.5, None, True] * 100
    file = Slowly(json.dumps(rows).encode(), 10)
    stream = JsonStream(file)
    for _, row in zip(stream.elements(), rows, strict=True):
        assert stream.value() == row
        assert file.tell() <= stream.at + 40
    for text in ("[x", '{"a"!', '["\\u12', '["\\q'):
        file = Slowly(text.encode() + b" " * 1000, 10)
        with pytest.raises(DamageError):
            taken(JsonStream(file), text.startswith("{"))
        assert file.tell() < 60
    for content, end in ((b'"' + b"a" * 10_000 + b'"', None), (b"[" * 10_000 + b"}]", END)):
        file = Slowly(content, 10**6)
        assert JsonStream(file).resume(end) if end else JsonStream(file).value()
        assert file.count < 16


END = re.compile(r"\}(?=\s*,\s*\{|\s*\]\s*\Z)")
names = st.sampled_from(["ts", "args", "no"])
events = st.dictionaries(names, st.text('ab}],{ "', max_size=9) | leaves)


@examples(60)
@given(rows=st.lists(events, max_size=9), form=forms, step=st.sampled_from([50, 10**6]), refused=st.booleans())
def test_elements_together(rows, form, step, refused):
    """As many as are at hand, once, with their places; those of which the decoder accepts none are taken one by one."""
    text = json.dumps([{"first": 0}, *rows], **form)
    stream, lengths, sizes = stream_of(text, step), [], []
    found, places = [], []

    def decode(part):
        lengths.append(len(part))
        try:
            listed = json.loads(part)
        except ValueError:  # the pattern was found in a text
            return ()
        return () if refused and any("no" in one for one in listed) else listed

    for at in stream.elements():
        together = stream.batch(decode, END)
        assert stream.at > at if together else stream.at == at
        places += [*map(stream.position, range(len(together))), stream.at]
        found += [*together, stream.value()]
        sizes.append(len(together))
    stream.finish()
    due = json.loads(text.encode("utf-8", "replace")) if "ensure_ascii" in form else [{"first": 0}, *rows]
    assert json.dumps(found) == json.dumps(due)
    decoder = json.JSONDecoder()
    assert [decoder.raw_decode(text, at)[0] for at in places] == [{"first": 0}, *rows]
    assert sum(lengths) <= len(text) + 2 * len(lengths)
    if step > len(text) and not refused and "}" not in "".join(str(v) for row in rows for v in row.values()):
        assert sizes == [len(rows)]


@examples(30)
@given(
    rows=st.lists(
        st.tuples(st.dictionaries(names, st.none() | st.text('ab],{ "', max_size=9)), st.booleans()), max_size=8
    ),
    form=forms,
    step=st.integers(1, 40),
)
def test_damaged_elements_are_left_out(rows, form, step):
    """Up to the next whole one, wherever the pieces end, such as behind what looks like the end of the list."""
    texts = [json.dumps(one, **form) for one, _ in rows]
    texts = [
        one[:-1] + ' "damage, and behind it" [{}] "b"}' if damaged else one
        for one, (_, damaged) in zip(texts, rows, strict=True)
    ]
    stream, found = stream_of("[" + " ,".join(texts) + "]\n", step), []
    for _ in stream.elements():
        at = stream.at
        try:
            found.append(stream.value())
        except DamageError:
            assert stream.at == at
            assert stream.resume(END)
    stream.finish()
    whole = [text for text, (_, damaged) in zip(texts, rows, strict=True) if not damaged]
    assert found == [json.loads(one.encode("utf-8", "replace")) for one in whole]
    for text in ("[{", "[{} 1]"):
        stream = stream_of(text, step)
        for at in stream.elements():
            assert not stream.resume(END)
            assert stream.at == at
            break


@examples(60)
@given(st.lists(st.integers(0, 2**64 - 1), max_size=8), st.binary(max_size=5))
def test_varints(numbers, behind):
    """Each with the byte behind it, as a parser of the tests reads them."""
    data = b"".join(map(protobuf.written, numbers))
    protobuf.check_varints(data, 0, len(data))
    at, other = 0, 0
    for number in numbers:
        found, at = protobuf.varint(data + behind, at)
        due, other = independent.varint(data, other)
        assert (found, at) == (due, other) == (number, other)
    for damaged in (data + b"\x80", b"\xff" * 10 + data):
        with pytest.raises(DamageError, match="does not end"):
            protobuf.check_varints(damaged, 0, len(damaged))
    for places in ((), (5,)):
        with pytest.raises(DamageError, match="does not end") as caught:
            protobuf.varint(data + b"\xff" * 10, len(data), *places)
        assert caught.value.at == len(data) + sum(places)


parts = st.lists(
    st.tuples(
        st.integers(1, 2**20),
        st.sampled_from([0, 1, 2, 5]),
        st.sampled_from([0, 127, 128, 129, 384]) | st.integers(0, 2**64 - 1),
        st.binary(max_size=20),
    ),
    max_size=6,
)


def field(number, wire, value, content):
    """A field of any wire type."""
    tag = protobuf.written(number << 3 | wire)
    if wire == 0:
        return tag + protobuf.written(value)
    if wire == 2:
        return tag + protobuf.written(len(content)) + content
    return tag + value.to_bytes(8, "little")[: 8 if wire == 1 else 4]


@examples(60)
@given(parts, st.integers(0, 30))
def test_fields(drawn, cut):
    """Numbers and contents of all wire types; a field that is cut is refused where it begins."""
    rows = [field(*one) for one in drawn]
    data = b"".join(rows)
    found = [
        (tag >> 3, value if tag & 7 == 0 else data[value:end])
        for tag, value, end in protobuf.fields(data, 0, len(data))
    ]
    assert found == independent.message(data)
    ends = [end for *_, end in protobuf.fields(data, 0, len(data))]
    starts = [sum(map(len, rows[:i])) for i in range(len(rows))]
    assert ends == [*starts[1:], len(data)][: len(rows)]
    if 0 < cut < len(data) and len(data) - cut not in starts:
        with pytest.raises(DamageError) as caught:
            list(protobuf.fields(data[: len(data) - cut], 0, len(data) - cut))
        assert caught.value.at >= max(one for one in starts if one < len(data) - cut)
    for wire in (3, 4, 6, 7):
        with pytest.raises(DamageError, match=f"there is no wire type {wire}") as caught:
            list(protobuf.fields(data + bytes([8 | wire]), 0, len(data) + 1))
        assert caught.value.at == len(data)
    with pytest.raises(DamageError, match="a field of number 0"):
        list(protobuf.fields(b"\0\1", 0, 2))


@examples(40)
@given(st.lists(st.sampled_from([0, 1, 126, 127, 128, 129, 255, 300]).map(bytes), max_size=5), st.integers(1, 5))
def test_messages(drawn, cut):
    """Each with the byte at which it starts; a cut one is refused with its length."""
    data, places = b"", []
    for one in drawn:
        data += protobuf.written(len(one))
        places.append(len(data))
        data += one
    assert list(protobuf.messages(io.BytesIO(data))) == list(zip(places, drawn, strict=True))
    if drawn and cut <= len(drawn[-1]):
        with pytest.raises(
            DamageError, match=f"a message of {len(drawn[-1]):,} bytes, of which the file has"
        ) as caught:
            list(protobuf.messages(io.BytesIO(data[:-cut])))
        assert caught.value.at == places[-1]
    with pytest.raises(DamageError, match="is too long"):
        list(protobuf.messages(io.BytesIO(data + protobuf.written(protobuf.MAX_MESSAGE + 1))))
    with pytest.raises(DamageError, match="of which the file has 0"):
        list(protobuf.messages(io.BytesIO(data + protobuf.written(protobuf.MAX_MESSAGE))))
    file = io.BytesIO(data + b"\xff" * 12)
    with pytest.raises(DamageError, match="does not end"):
        list(protobuf.messages(file))
    assert file.tell() == len(data) + 10


@st.composite
def flat_files(draw):
    """A FlatBuffers file of one table, where its vtable is, and what it has: numbers or none, u64s, tables of a number."""
    forms = {"<h": 2**15 - 1, "<I": 2**32 - 1, "<Q": 2**64 - 1}
    numbers = draw(
        st.lists(
            st.none()
            | st.sampled_from(sorted(forms)).flatmap(
                lambda form: st.tuples(st.just(form), st.integers(0, forms[form]))
            ),
            max_size=4,
        )
    )
    listed = draw(st.lists(st.integers(0, 2**64 - 1), max_size=4))
    inner = draw(st.lists(st.none() | st.integers(0, 2**16), max_size=3))
    vectors = [
        struct.pack(f"<I{len(listed)}Q", len(listed), *listed),
        tables([table([("<Q", n)][: n is not None]) for n in inner]),
    ]
    n = len(numbers)
    places = [(n, vectors[0]), (n + 1, vectors[1])]
    content, start = table([*numbers, ("<I", 0), ("<I", 0)], draw(st.permutations(places)))
    if draw(st.booleans()):  # the vtable stands behind its table, at the end
        vtable, content = content[:start], content[start:]
        content, start = struct.pack("<i", -len(content)) + content[4:] + vtable, 0
    vtable = 4 + start - struct.unpack_from("<i", content, start)[0]
    return struct.pack("<I", 4 + start) + content, vtable, numbers, listed, inner


def all_of(data, numbers):
    """All that a file of `flat_files` has, by our reader."""
    top, n = root(data), len(numbers)
    found = [top.number(field, one[0] if one else "<Q") for field, one in enumerate(numbers)]
    return found, top.integers(n, 4), [one.number(0) for one in top.tables(n + 1)], top


@examples(80)
@given(flat_files(), st.data())
def test_flat_tables(drawn, data):
    """Wherever the table of places stands; what is cut off by a byte is refused, as is a longer vector than allowed."""
    content, vtable, numbers, listed, inner = drawn
    *found, top = all_of(content, numbers)
    assert found == [[one[1] if one else 0 for one in numbers], tuple(listed), [number or 0 for number in inner]]
    n = len(numbers)
    for absent in (n + 2, n + 9):
        assert (top.number(absent), top.integers(absent, 0), [*top.tables(absent)]) == (0, (), [])
    with pytest.raises(DamageError, match="beyond the file"):
        all_of(content[: data.draw(st.integers(0, len(content) - 1))], numbers)
    with pytest.raises(DamageError, match="beyond the file"):
        all_of(content[:-1], numbers)
    if listed:
        with pytest.raises(DamageError, match=f"a vector of {len(listed)} numbers") as caught:
            top.integers(n, len(listed) - 1)
        assert content[caught.value.at :][:8] == listed[0].to_bytes(8, "little")
    for wrong in (2, 3, 2 * n + 7):
        with pytest.raises(DamageError, match="without a vtable"):
            root(content[:vtable] + struct.pack("<H", wrong) + content[vtable + 2 :])
    with pytest.raises(DamageError, match="beyond the file") as caught:
        root(struct.pack("<I", 4) + struct.pack("<i", 9) + content)
    assert caught.value.at == 0
