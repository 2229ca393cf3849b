"""Links of circuit switches: counted, coloured and shared."""

from opticcl.schedule.balanced_digits import links_to


def test_links_of_a_shift_are_counted():
    """The fewest h with h S = D modulo N, 0 where there is none."""
    for n in range(2, 10):
        for shift in range(1, n):
            for distance in range(1, n):
                due = next((h for h in range(1, n) if h * shift % n == distance), 0)
                assert links_to(shift, (n,))[distance] == due, (distance, shift, n)
