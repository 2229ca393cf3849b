"""Changes to MSCCL XML files that usually make them wrong."""

import copy
import random
from xml.etree import ElementTree

KINDS = ("swapped_offset", "dropped_dependency", "wrong_buffer", "doubled_reduction", "missing_receive")


def mutants(text, kind, count, seed=0):
    """Up to `count` distinct mutants of one kind, as texts."""
    dice = random.Random(f"{kind} {seed}")
    algo = ElementTree.fromstring(text)
    found = {}
    for _ in range(4 * count):
        changed = copy.deepcopy(algo)
        if globals()[kind](changed, dice):
            found.setdefault(ElementTree.tostring(changed, "unicode"))
        if len(found) == count:
            break
    return list(found)


def steps(algo, *types):
    """Steps of the given types, of any where none is given."""
    return [step for step in algo.iter("step") if not types or step.get("type") in types]


def swapped_offset(algo, dice):
    """Two steps of a GPU exchange their offsets, or one gets another."""
    gpu = dice.choice(algo.findall("gpu"))
    one, other = dice.choice(steps(gpu)), dice.choice(steps(gpu))
    name = dice.choice(("srcoff", "dstoff"))
    if one.get(name) == other.get(name):
        one.set(name, str((int(one.get(name)) + 1) % int(algo.get("nchunksperloop"))))
        return True
    mine, its = one.get(name), other.get(name)
    one.set(name, its)
    other.set(name, mine)
    return True


def dropped_dependency(algo, dice):
    """A step no longer waits, or no longer signals."""
    waiting = [step for step in steps(algo) if step.get("depid") != "-1"]
    if not waiting:
        return False
    if dice.random() < 0.2:
        dice.choice([step for step in steps(algo) if step.get("hasdep") == "1"]).set("hasdep", "0")
        return True
    step = dice.choice(waiting)
    step.set("depid", "-1")
    step.set("deps", "-1")
    return True


def wrong_buffer(algo, dice):
    """An operand that the step uses is in another buffer."""
    step = dice.choice([step for step in steps(algo) if step.get("type") != "nop"])
    name = {"s": "srcbuf", "rrs": "srcbuf", "r": "dstbuf", "rcs": "dstbuf"}.get(step.get("type"))
    name = name or dice.choice(("srcbuf", "dstbuf"))
    step.set(name, dice.choice([buffer for buffer in "ios" if buffer != step.get(name)]))
    return True


def doubled_reduction(algo, dice):
    """A contribution is added twice, or where it should be stored."""
    local = steps(algo, "re")
    if local and dice.random() < 0.5:
        block, step = dice.choice([(tb, step) for tb in algo.iter("tb") for step in tb if step.get("type") == "re"])
        place = list(block).index(step)
        twin = copy.deepcopy(step)
        twin.set("hasdep", "0")
        block.insert(place, twin)
        for gpu in algo.iter("gpu"):
            if block in list(gpu):
                _shift_waits(gpu, block, place)
        _renumber(block)
        return True
    kind = {"r": "rrc", "cpy": "re", "rcs": "rrcs"}
    step = dice.choice(steps(algo, *kind) or [None])
    if step is None:
        return False
    step.set("type", kind[step.get("type")])
    if dice.random() < 0.7:  # on top of what is there
        step.set("srcbuf", step.get("dstbuf"))
        step.set("srcoff", step.get("dstoff"))
    return True


def missing_receive(algo, dice):
    """A step that receives is gone, and sometimes its send too."""
    blocks = [(gpu, tb, step) for gpu in algo.iter("gpu") for tb in gpu for step in tb if step.get("type")[0] == "r"]
    gpu, block, step = dice.choice(blocks)
    if step.get("type") == "re":
        return False
    peer, channel, rank = block.get("recv"), block.get("chan"), gpu.get("id")
    place = [one for one in block if one.get("type")[0] == "r" and one.get("type") != "re"].index(step)
    _remove(gpu, block, step)
    if dice.random() < 0.5:
        other = next(one for one in algo.iter("gpu") if one.get("id") == peer)
        for tb in other.iter("tb"):
            if (tb.get("send"), tb.get("chan")) == (rank, channel):
                sends = [one for one in tb if one.get("type") in ("s", "rcs", "rrs", "rrcs")]
                if place < len(sends) and sends[place].get("type") == "s":
                    _remove(other, tb, sends[place])
                    break
    return True


def _remove(gpu, block, step):
    place = list(block).index(step)
    if step.get("hasdep") == "1" and len(block) > 1:
        block[max(place - 1, 0) if place else 1].set("hasdep", "1")
    block.remove(step)
    for tb in gpu.iter("tb"):
        for other in tb:
            if other.get("depid") == block.get("id") and int(other.get("deps")) >= place:
                left = max(int(other.get("deps")) - 1, 0)
                other.set("deps", str(left) if len(block) else "-1")
                other.set("depid", block.get("id") if len(block) else "-1")
    _renumber(block)


def _shift_waits(gpu, block, place):
    """Steps of the GPU that wait for a later step of the block wait for the same one still."""
    for tb in gpu.iter("tb"):
        for other in tb:
            if other.get("depid") == block.get("id") and int(other.get("deps")) >= place:
                other.set("deps", str(int(other.get("deps")) + 1))


def _renumber(block):
    for number, step in enumerate(block):
        step.set("s", str(number))
