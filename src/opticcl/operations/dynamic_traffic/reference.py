"""The reference scheduler: an integer programme with slots and planes, for small machines.

Binary y(p, k): the pair p has a circuit in cell k. Cells z(r) <= c(r) of a request; together those of a pair are at most
sum_k y(p, k). A sender, a receiver and a channel have one circuit a cell. It maximises the ages of the cells that are sent,
sum of age(r) z(r); the linear relaxation bounds what any scheduler can send in that epoch.
"""

from __future__ import annotations

import numpy as np

from opticcl.errors import ParameterError
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import IntArray
from opticcl.ir.epochs import EpochGrants
from opticcl.operations.dynamic_traffic.schedulers import FreeCells, WordScheduler, register_scheduler

__all__ = ["Reference", "ages"]

MOST_VARIABLES = 20_000
"""Binary variables of an epoch [count]."""


def ages(grants: EpochGrants, start: int) -> int:
    """Sum of the ages of the cells that are sent, counted from the first slot `start` of the epoch [slots]."""
    return int(((start - grants.arrival) * grants.cells).sum())


@register_scheduler("reference")
class Reference(WordScheduler):
    """Most of the ages of the waiting cells, by an integer programme."""

    maximal = True

    def __init__(self, machine: Ramp) -> None:
        """Scheduler for a small machine. Args: machine: RAMP with b = 1. Raises: ParameterError: b > 1."""
        super().__init__(machine)
        if machine.transceivers_per_group > 1:
            raise ParameterError(
                f"reference: transceivers_per_group={machine.transceivers_per_group}; it knows planes of 1 transceiver"
            )
        self.reached, self.bound = 0.0, 0.0
        """Sums over the epochs: ages of the cells sent, and their bounds."""

    def schedule(self, epoch: int, free: FreeCells) -> EpochGrants:
        """Solve the programme of an epoch."""
        start = epoch * self.slots
        arrival, src, dst, cells, _ = (column[: self.count].copy() for column in self.waiting)
        pairs, pair = np.unique(src.astype(np.int64) * self.machine.num_nodes + dst, return_inverse=True)
        one, two = np.divmod(pairs, self.machine.num_nodes)
        place = self.parts[0][one] + self.parts[1][two]
        words = free.send[one] & free.receive[two] & free.channel[place]
        bits = np.arange(self.bits)
        is_free = (words[:, bits // 64] >> (bits % 64).astype(np.uint64)) & np.uint64(1) == 1
        of_pair, bit = np.nonzero(is_free)
        if len(of_pair) > MOST_VARIABLES:
            raise ParameterError(
                f"reference: {len(of_pair):,} variables in epoch {epoch} are more than {MOST_VARIABLES:,}; "
                "try fewer nodes, a smaller load or --scheduler native"
            )
        if not len(of_pair):
            return EpochGrants(*(np.zeros(0, np.int32) for _ in range(8)))
        rows = (one[of_pair], self.machine.num_nodes + two[of_pair], 2 * self.machine.num_nodes + place[of_pair])
        chosen, bound = _solve([row * self.bits + bit for row in rows], of_pair, pair, cells, start - arrival)
        self.bound += bound
        sent = self._sent(one, two, of_pair[chosen], bit[chosen], start)
        self.reached += ages(sent, start)
        return sent

    def _sent(self, one: IntArray, two: IntArray, of_pair: IntArray, bit: IntArray, start: int) -> EpochGrants:
        """Grants of the circuits, the oldest cells of each pair first."""
        waiting, n = self.waiting, self.machine.num_nodes
        rows_of: dict[int, list[int]] = {}
        for row in range(self.count):
            rows_of.setdefault(int(waiting.src[row]) * n + int(waiting.dst[row]), []).append(row)
        out, ended = [], []
        for which, cell in sorted(zip(of_pair.tolist(), bit.tolist(), strict=True)):
            rows = rows_of[int(one[which]) * n + int(two[which])]
            if not rows:
                continue
            row = rows[0]
            waiting.cells[row] -= 1
            out.append((one[which], two[which], cell, 1, waiting.arrival[row]))
            if not waiting.cells[row]:
                rows.pop(0)
                ended.append((waiting.arrival[row], waiting.size[row], start + cell // self.machine.groups + 1))
        self._pending -= len(out)
        left = np.flatnonzero(waiting.cells[: self.count])
        for column in waiting:
            column[: len(left)] = column[left]
        self.count = len(left)
        columns = np.array(out, np.int32).reshape(-1, 5).T
        return EpochGrants(*columns, *np.array(ended, np.int32).reshape(-1, 3).T)


def _solve(
    places: list[IntArray], of_pair: IntArray, pair: IntArray, cells: IntArray, age: IntArray
) -> tuple[IntArray, float]:
    """Circuits of the integer programme, as rows of `of_pair`, and the optimum of its relaxation.

    Args:
        places: for each circuit its cell at the sender, the receiver and the channel, int64 (circuits,) each.
        age: of each request [slots].
    """
    import highspy

    num_circuits, num_requests = len(of_pair), len(pair)
    row, column, value = [], [], []
    _, cell = np.unique(np.concatenate(places), return_inverse=True)
    row.append(cell)
    column.append(np.tile(np.arange(num_circuits), 3))
    value.append(np.ones(3 * num_circuits))
    num_cells = int(cell.max()) + 1
    row += [num_cells + pair, num_cells + of_pair]
    column += [num_circuits + np.arange(num_requests), np.arange(num_circuits)]
    value += [np.ones(num_requests), -np.ones(num_circuits)]
    rows, columns, values = np.concatenate(row), np.concatenate(column), np.concatenate(value)
    order = np.lexsort((columns, rows))
    num_rows = num_cells + int(max(pair.max(), of_pair.max())) + 1
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = num_circuits + num_requests, num_rows
    model.col_cost_ = np.concatenate([np.zeros(num_circuits), age.astype(float)])
    model.col_lower_ = np.zeros(model.num_col_)
    model.col_upper_ = np.concatenate([np.ones(num_circuits), cells.astype(float)])
    model.row_lower_ = np.full(num_rows, -highspy.kHighsInf)
    model.row_upper_ = np.concatenate([np.ones(num_cells), np.zeros(num_rows - num_cells)])
    model.sense_ = highspy.ObjSense.kMaximize
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.searchsorted(rows[order], np.arange(num_rows + 1)).astype(np.int32)
    model.a_matrix_.index_ = columns[order].astype(np.int32)
    model.a_matrix_.value_ = values[order]
    bound = _optimum(model)[0]
    model.integrality_ = [highspy.HighsVarType.kInteger] * num_circuits + [
        highspy.HighsVarType.kContinuous
    ] * num_requests
    chosen = _optimum(model)[1][:num_circuits] > 0.5
    return np.flatnonzero(chosen), bound


def _optimum(model: object) -> tuple[float, np.ndarray]:
    """Value and variables of an optimum."""
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("threads", 1)
    solver.passModel(model)
    solver.run()
    return solver.getInfo().objective_function_value, np.array(solver.getSolution().col_value)
