"""`python -m opticcl`: the command line."""

from opticcl.cli import main

if __name__ == "__main__":
    main()
