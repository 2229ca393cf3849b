"""Failed parts: what a collective still costs, compared with a restart, and which parts nothing can replace.

answers        kept, reassigned, rescheduled, packed, shrunk or cut, for one set of failed parts
residual       lower bounds from the rates that are left, cuts of the links that are left
least_cuts     the sets of ranks whose links carry least, by maximum flow
relabellings   equal parts, by relabellings that are checked
sweep          every part, one of each class; pairs of parts
"""
