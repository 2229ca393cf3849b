"""Reports: tables for the terminal, pictures as SVG, self-contained HTML pages; one module a kind of output.

No result is computed here; every number comes from a comparison, a plan or another result. matplotlib is imported where a
picture is drawn.
"""
