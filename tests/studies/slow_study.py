"""A script that runs a study whose points take a while and are logged: FILE FOLDER LOG SECONDS_PER_POINT [END]."""

import os
import signal
import sys
import time
from pathlib import Path

from opticcl.studies.space import measure, runner
from opticcl.studies.space.design import read_design
from opticcl.studies.space.measure import Measured


def main(file, folder, log, seconds, ends="-1"):
    """Run it; a process ends by SIGKILL each time it is at point number `ends`."""

    def slowly(_space, _points, numbers):
        for number in numbers:
            if number == int(ends):
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(float(seconds))
            with open(log, "a", encoding="ascii") as lines:
                lines.write(f"{number}\n")
            yield Measured(number, {"total_s": number + 1.0, "verified": True})

    measure.measured = slowly
    print(runner.run_space(read_design(Path(file)), Path(folder), jobs=2).record())


if __name__ == "__main__":
    main(*sys.argv[1:])
