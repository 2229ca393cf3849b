"""SiPCO: all-reduce on the L levels of a SiPAC at once, and the family between it and the least volume.

The message is cut into L groups of r^k chunks. Digit j of a chunk's number within group g, the most significant first,
belongs to level g - j (mod L); a node owns of each group the chunk whose k digits are its own. In every step the groups
are at L different levels, so every link of every node is busy in both directions, and every pair has one transfer.

    step            group g at level   who sends what                                   receiver
    0 ... k-1       g - step           to each peer the chunks that it still may own    adds
    k ... L-1       g - step           the chunk owned, to all peers                    adds
    L ... L+k-1     g - (L+k-1-step)   all it has of the result, to all peers           stores

k = 1 is the paper's SiPCO: L + 1 steps of (r-1) n / (r L) a link. k = L needs the least volume, 2 (p-1)/p n/L a link,
in 2 L steps. In all, a link carries n (2/L (1 - r^-k) + (L-k) (r-1) / (L r^k)).

Source: SiPAC section V-A, algorithm 1, table III. The family is ours.
Reading: algorithm 1 leaves out that step 0 sends each chunk to its owner, that from then on a node sends the chunk it
owns, and that the last step stores instead of adding. Who owns what is free; as in table III, the node of digit x owns
the chunk of digit r - 1 - x.
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import collective as make_collective
from opticcl.ir import Fabric, Op, Schedule, Transfers, concatenate_transfers
from opticcl.schedule import register_algorithm


def accepts(collective: str, fabric: Fabric, k: int = 1) -> str | None:
    """None, or the reason why not."""
    if fabric.name != "sipac":
        return "it needs a sipac fabric"
    if collective != "all_reduce":
        return "it does all_reduce only"
    radix, levels = fabric.parameters["radix"], fabric.parameters["levels"]
    if not 1 <= k <= levels:
        return f"k={k} is not 1 to levels={levels}"
    transfers = fabric.num_nodes * levels * (radix - 1)
    if max(transfers, levels * radix**k) >= 2**31:
        return f"{transfers:,} transfers a step are more than can be numbered"
    return None


def variants(collective: str, fabric: Fabric) -> list[dict[str, int]]:
    """Every k of a SiPAC; on other fabrics one, to be declined."""
    return [{"k": k} for k in range(1, fabric.parameters.get("levels", 1) + 1)]


@register_algorithm("sipco", accepts, variants)
def sipco(collective: str, fabric: Fabric, *, k: int = 1) -> Schedule:
    """SiPCO all-reduce in L + k steps.

    Args: k: digits by which each group is scattered, 1 (the paper's) to L (least volume) [count].
    """
    r, levels = fabric.parameters["radix"], fabric.parameters["levels"]
    node = np.arange(fabric.num_nodes, dtype=np.int32)
    digit = [node // np.int32(r**level) % r for level in range(levels)]

    def held(group: int, digits: int) -> np.ndarray:
        """First of the chunks of a group whose leading digits are the node's own, int32 (num_nodes,)."""
        first = np.full_like(node, group * r**k)
        for j in range(digits):
            first += (r - 1 - digit[(group - j) % levels]) * np.int32(r ** (k - 1 - j))
        return first

    def step(i: int) -> Transfers:
        adding = i < levels
        digits = min(i + 1, k) if adding else levels + k - i
        turn = i if adding else digits - 1
        parts = []
        for level in range(levels):
            src, dst = node[:, None], _peers(node, digit[level], r, level)
            first = held((level + turn) % levels, digits)
            lo = first[dst] if adding else first[src]  # what the receiver may own in the end; what the sender has
            parts.append(Transfers.of(src, dst, lo, r ** (k - digits), Op.REDUCE if adding else Op.COPY))
        return concatenate_transfers(parts)

    num_steps = levels + k if r > 1 else 0
    alike = range(k - 1, levels)  # one chunk to each peer, to be added
    others = [range(i, i + 1) for i in range(num_steps) if i not in alike]
    classes = (*others[: k - 1], alike, *others[k - 1 :]) if num_steps else ()
    return Schedule("sipco", make_collective(collective, fabric.num_nodes, levels * r**k), num_steps, step, classes)


def _peers(node: np.ndarray, digit: np.ndarray, radix: int, level: int) -> np.ndarray:
    """The nodes that differ from each in the digit of that level alone, int32 (num_nodes, radix - 1)."""
    mine = digit[:, None]
    other = (mine + np.arange(1, radix, dtype=np.int32)) % radix
    peers: np.ndarray = node[:, None] + (other - mine) * np.int32(radix**level)
    return peers
