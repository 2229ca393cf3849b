"""An independent interpreter of MSCCL XML on integers: thread blocks in random order, connections of bounded depth.

It shares no code with the library: it has its own reading of the format, and it executes instead of reasoning.
"""

import random
from collections import defaultdict, deque
from xml.etree import ElementTree


def run(text, *, seed=0, depth=4):
    """Execute a file.

    Args:
        text: of the file.
        seed: of the data and of the order in which thread blocks run.
        depth: messages that a connection holds.
    Returns: "right", "wrong", "deadlock" or "broken" (it names what does not exist, or leaves messages behind).
    """
    try:
        return _run(ElementTree.fromstring(text), random.Random(seed), depth)
    except (KeyError, IndexError, TypeError, ValueError):
        return "broken"


def _run(algo, dice, depth):
    n, chunks = int(algo.get("ngpus")), int(algo.get("nchunksperloop"))
    per, in_place = chunks // n, algo.get("inplace") == "1"
    what = algo.get("coll").replace("_", "")  # of reduce_scatter
    memory, data = {}, {}
    for gpu in algo.iter("gpu"):
        r = int(gpu.get("id"))
        num_inputs = per if what == "allgather" else chunks
        data[r] = [dice.randrange(1, 10**12) for _ in range(num_inputs)]
        memory[r] = _buffers(gpu, what, in_place, r, per, chunks, data[r])
        for copy in gpu.iter("copy"):
            memory[r]["o"][int(copy.get("o_off"))] = memory[r]["i"][int(copy.get("i_off"))]
    blocks, flags = {}, defaultdict(lambda: -1)
    for gpu in algo.iter("gpu"):
        for tb in gpu.iter("tb"):
            blocks[int(gpu.get("id")), int(tb.get("id"))] = (tb, list(tb.iter("step")))
    at = dict.fromkeys(blocks, 0)
    wires = defaultdict(deque)
    running = [key for key in blocks if blocks[key][1]]
    while running:
        dice.shuffle(running)
        moved = False
        for key in list(running):
            tb, steps = blocks[key]
            for _ in range(dice.choice((1, 1, 1, 2, 5, 50))):
                if at[key] == len(steps) or not _step(key, tb, steps[at[key]], at[key], memory, wires, flags, depth):
                    break
                at[key] += 1
                moved = True
            if at[key] == len(steps):
                running.remove(key)
        if not moved:
            return "deadlock"
    if any(wires.values()):
        return "broken"
    return "right" if all(_due(what, r, n, per, chunks, data, memory) for r in range(n)) else "wrong"


class _Cells:
    """A buffer that refuses indices outside, negative ones too."""

    def __init__(self, cells, first, count):
        self.cells, self.first, self.count = cells, first, count

    def __getitem__(self, i):
        if not 0 <= i < self.count:
            raise IndexError(i)
        return self.cells[self.first + i]

    def __setitem__(self, i, value):
        if not 0 <= i < self.count:
            raise IndexError(i)
        self.cells[self.first + i] = value


def _buffers(gpu, what, in_place, r, per, chunks, mine):
    scratch = int(gpu.get("s_chunks"))
    found = {"s": _Cells([None] * scratch, 0, scratch)}
    if not in_place:
        outputs = int(gpu.get("o_chunks"))
        found["i"] = _Cells(list(mine) + [None] * (int(gpu.get("i_chunks")) - len(mine)), 0, int(gpu.get("i_chunks")))
        found["o"] = _Cells([None] * outputs, 0, outputs)
        return found
    whole = [None] * chunks
    first = r * per if what == "allgather" else 0
    whole[first : first + len(mine)] = mine
    found["i"] = _Cells(whole, first, per) if what == "allgather" else _Cells(whole, 0, chunks)
    found["o"] = _Cells(whole, r * per, per) if what == "reducescatter" else _Cells(whole, 0, chunks)
    return found


def _step(key, tb, step, number, memory, wires, flags, depth):
    """One step of a thread block; False if it must wait."""
    rank = key[0]
    wait = int(step.get("depid"))
    if wait >= 0 and flags[rank, wait] < int(step.get("deps")):
        return False
    kind, count, channel = step.get("type"), int(step.get("cnt")), int(tb.get("chan"))
    # a send may leave out its target, a receive its source
    source = [memory[rank].get(step.get("srcbuf")), int(step.get("srcoff", -1))]
    target = [memory[rank].get(step.get("dstbuf")), int(step.get("dstoff", -1))]
    incoming = wires[int(tb.get("recv")), rank, channel]
    outgoing = wires[rank, int(tb.get("send")), channel]
    if kind.startswith("r") and kind != "re" and not incoming:
        return False
    if kind in ("s", "rcs", "rrs", "rrcs"):
        if int(tb.get("send")) < 0:
            raise ValueError
        if len(outgoing) >= depth:
            return False
    if kind.startswith("r") and kind != "re":
        value = incoming.popleft()
        if len(value) != count or int(tb.get("recv")) < 0:
            raise ValueError
    else:
        value = [0] * count
    if kind in ("s", "rrc", "rrs", "rrcs", "cpy", "re"):
        value = [a + _read(source, k) for k, a in enumerate(value)]
    if kind == "re":
        value = [a + _read(target, k) for k, a in enumerate(value)]
    if kind in ("r", "rcs", "rrc", "rrcs", "cpy", "re"):
        for k, a in enumerate(value):
            target[0][target[1] + k] = a
    if kind in ("s", "rcs", "rrs", "rrcs"):
        outgoing.append(value)
    if kind not in ("s", "r", "rcs", "rrc", "rrs", "rrcs", "cpy", "re", "nop"):
        raise ValueError
    if step.get("hasdep") == "1":
        flags[key] = number
    return True


def _read(place, k):
    value = place[0][place[1] + k]
    if value is None:
        raise ValueError("a cell that was never written")
    return value


def _due(what, r, n, per, chunks, data, memory):
    out = memory[r]["o"]
    if what == "allreduce":
        due = [sum(data[s][c] for s in range(n)) for c in range(chunks)]
    elif what == "allgather":
        due = [data[c // per][c % per] for c in range(chunks)]
    elif what == "reducescatter":
        due = [sum(data[s][r * per + k] for s in range(n)) for k in range(per)]
    else:
        due = [data[c // per][r * per + c % per] for c in range(chunks)]
    return [out[k] for k in range(len(due))] == due
