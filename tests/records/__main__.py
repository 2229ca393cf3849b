"""`make golden`: write the golden records that do not exist yet, or change some.

    make golden                                               records without a line in the file, all where there is no file
    make golden ONLY=simulate/torus/queues                    this record anew; it may become faster
    make golden ONLY='a,b' REASON='issue 40: ...'             these, though slower, with another verdict or another refusal

Nothing is written where one of the records needs a reason and none is given.
"""

import argparse
import sys
import time
from pathlib import Path

from tests.records.differences import differences
from tests.records.file import FILE, changed, made, names, read, write


def main(words: list[str] | None = None, file: Path = FILE) -> int:
    """Write records.

    Args:
        words: of the command line; those of the process if left out.
        file: of the records.
    Returns: exit code: 0, 1 where a reason is missing, 2 for a name that is unknown.
    """
    parser = argparse.ArgumentParser(prog="make golden", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="names of records to write anew, with commas or spaces between them")
    parser.add_argument("--reason", default="", help="why they change; kept in the file")
    given = parser.parse_args(words)
    known, records = names(), read(file)
    only = given.only.replace(",", " ").split()
    unknown = [id for id in only if id not in known]
    if unknown:
        print(f"make golden: ONLY: no record {unknown[0]!r}; the names are in {FILE.name}", file=sys.stderr)
        return 2
    if given.reason and not only:
        print("make golden: REASON is for the records of ONLY; give ONLY=id, or a list of them", file=sys.stderr)
        return 2
    refused = 0
    begun = reported = time.monotonic()
    wanted = only or [id for id in known if id not in records]
    for number, id in enumerate(wanted):
        new, old = made(id), records.get(id)
        if old is None:
            records[id] = new
        else:
            try:
                records[id] = changed(old, new, given.reason)
            except ValueError as why:
                print(f"make golden: {id}: {why}; give REASON='...' if this is intended", file=sys.stderr)
                refused += 1
                continue
            for one in differences(old, new):
                print(f"{id}: {one}")
        if time.monotonic() - reported > 10:
            reported = time.monotonic()
            print(f"{number + 1:,} of {len(wanted):,} records, {reported - begun:.0f} s", file=sys.stderr)
    if refused:
        return 1
    if wanted:
        write(records, file)
    print(f"{len(wanted):,} records written, {len(records):,} in {FILE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
