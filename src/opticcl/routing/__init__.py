"""Routes on a grid of tiles with few circuits on every edge, and wavelength assignment.

Plain functions over columns: tiles of senders and receivers in, paths out, with a lower bound on the circuits on the most
congested edge. They know grids and edges only, no fabrics, schedules or optical devices. `forest` is about networks of any
form, with links that packets share. One file an idea:

    grid                tiles, edges, closed tiles; `Routes` with their bound
    dimension_order     along the row, then along the column, or the other way round
    paths               a random shortest path, cheapest paths, detours around closed tiles and edges
    bounds              cuts, and prices of edges: lower bounds on the overlap
    least_overlap       as few circuits on the most congested edge as possible (algorithm 2), with the bound
    column_generation   the same by linear programme, where no cut proves it
    k_shortest          the k shortest paths of one pair
    reach               components of a grid, and which of them are connected
    split               circuits to rounds, where an edge has too many (appendix C)
    sharing             laser sets that share waveguides
    transfer_rounds     transfers to rounds, where a tile has too few lasers (algorithm 3), and the fewest rounds
    assign, colouring   first fit and edge colouring

Source: LUMORPH section 3.1, appendices A and C.
"""
