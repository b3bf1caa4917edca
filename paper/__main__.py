"""Run missing experiments, then write figures and report: `python -m paper --data DIR`."""

from __future__ import annotations

import argparse
import os

from . import figures, neighborhood, real, report, runtime, scaling, spectrum, synthetic, theory

# Run times come last, when nothing else runs.
PARTS = {
    module.TABLE: module.main
    for module in (theory, spectrum, synthetic, real, scaling, neighborhood, runtime)
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    parser.add_argument(
        "--data",
        metavar="DIR",
        default=os.environ.get("MERCAT_DATA"),
        help="folder with the real data (default: the environment variable MERCAT_DATA)",
    )
    parser.add_argument(
        "--only",
        choices=[*PARTS, "report"],
        action="append",
        help="run only this part; may be repeated ('report': only figures and report)",
    )
    given = parser.parse_args(arguments)
    for name, part in PARTS.items():
        if given.only is None or name in given.only:
            part(given.data)
    for path in (*figures.main(given.data), report.main()):
        print(path)


if __name__ == "__main__":
    main()
