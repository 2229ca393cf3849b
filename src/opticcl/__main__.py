"""`opticcl` and `python -m opticcl`: the command line."""

import sys


def _run() -> None:
    from opticcl.cli import main

    main()


def main() -> None:
    """Entry point: first of all what ends the program after a signal, then everything else."""
    try:
        from opticcl.interrupts import guarded
    except KeyboardInterrupt:  # it is not ready
        sys.exit(130)
    sys.exit(guarded(_run))


if __name__ == "__main__":
    main()
