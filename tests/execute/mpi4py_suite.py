"""Run under mpiexec: mpi4py's own tests of collectives on buffers, by plain MPI or by the Communicator.

Arguments: the folder of mpi4py's tests, and "mpi" or "opticcl". Our communicator takes the place of COMM_SELF and COMM_WORLD;
the classes whose tests make duplicates of these are left out for both. Every kind of array that the suite finds is used. Rank 0
prints the outcomes: a test failed if it failed on some rank, and is skipped if it is skipped on all.
"""

import json
import sys
import unittest
import warnings


def main(folder, library):
    """Run the suite in this folder with these communicators."""
    sys.path.insert(0, folder)
    sys.modules["numba.cuda"] = None  # the suite takes it for a device, also where there is none
    import test_cco_buf  # found by the folder

    del sys.modules["numba.cuda"]
    from mpi4py import MPI

    from opticcl.mpi import Communicator

    warnings.simplefilter("ignore")
    own = MPI.COMM_WORLD.Dup()
    outcomes = {}
    for case in unittest.defaultTestLoader.loadTestsFromModule(test_cco_buf):
        for test in case:
            kind, name = type(test), test.id().partition(".")[2]
            comm = getattr(kind, "COMM", None)
            if comm is None or "setUp" in vars(kind):  # no collectives, or duplicates
                continue
            if library == "opticcl" and not isinstance(comm, Communicator):
                kind.COMM = Communicator(comm, abort=False, time_limit=60.0)
            result = unittest.TestResult()
            test.run(result)
            said = [text for _, text in (*result.failures, *result.errors)]
            all_said = own.allgather((said[0].strip().splitlines()[-1] if said else "", len(result.skipped)))
            failed = next((f"rank {rank}: {line}" for rank, (line, _) in enumerate(all_said) if line), None)
            skipped = all(count for _, count in all_said)
            outcomes[name] = failed or ("skipped" if skipped else "passed")
    if own.rank == 0:
        print(json.dumps(outcomes), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
