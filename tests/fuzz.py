"""Read mutated files in a process with limits on memory and time, and count the outcomes.

    python tests/fuzz.py                       # 500 files of each format
    python tests/fuzz.py --number 3000 h5ad zarr
    python tests/fuzz.py --seed 7 --only 123 h5ad --keep /tmp/here

A file is either read or refused with an error that names it. Anything else is a finding: another error, a
crash, a timeout of a minute, too much memory, or something run or written. The last command writes file 123
of that seed again for inspection.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import hostile
from corpus import mutate

FORMATS = {
    "csv": ["csv", "tsv", "csv in gz", "map"],
    "parquet": ["parquet"],
    "feather": ["feather"],
    "npy": ["npy"],
    "npz": ["npz", "in npz", "packed npz", "map npz"],
    "sparse npz": ["sparse npz", "triplets npz", "diagonals npz", "blocks npz"],
    "mtx": ["mtx", "dense mtx", "mtx in gz"],
    "h5ad": ["h5ad", "packed h5ad", "map h5ad"],
    "zarr": ["zarr", "map zarr"],
    "model": ["model", "in model", "model for info"],
    "datasets": [
        "idx", "arff", "mnist.npz", "prepared", "json", "json parts", "paul15", "loom", "hela", "gtf"
    ],
}  # fmt: skip


def finding(answer: dict, path: Path) -> str | None:
    """Describe what is wrong with the outcome of a file, or return None."""
    if answer["outcome"] not in ("read", "refused"):
        return f"{answer['outcome']} {answer['kind']}: {answer['message'][:200]}"
    if answer["seen"]:
        return f"did {answer['seen']}"
    if answer["outcome"] == "refused" and str(path.parent) not in answer["message"]:
        return f"does not name the file: {answer['message'][:200]}"
    if answer["outcome"] == "refused" and len(answer["message"]) > 1000:
        return f"says {len(answer['message'])} characters: {answer['message'][:100]}"
    return None


def fuzz(
    read: hostile.Reader,
    samples: dict[str, hostile.Sample],
    format: str,
    numbers: range,
    seed: int,
    folder: Path,
) -> tuple[Counter, dict[str, list[str]]]:
    """Return the number of files read and refused, and findings by file number."""
    counts: Counter = Counter()
    findings: dict[str, list[str]] = {}
    names = FORMATS[format]
    for number in numbers:
        name = names[number % len(names)]
        path = mutate(name, samples[name], number, seed, folder)
        answer = read(samples[name].reader, path)
        wrong = finding(answer, path)
        counts["wrong" if wrong else answer["outcome"]] += 1
        if wrong:
            findings.setdefault(wrong, []).append(f"{name} {number}")
    return counts, findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("--number", type=int, default=500, help="files of each format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the file of this number alone")
    parser.add_argument("--keep", type=Path, help="folder for the last file")
    given = parser.parse_args()
    unknown = set(given.formats) - set(FORMATS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(FORMATS)}")
    numbers = range(given.number) if given.only is None else range(given.only, given.only + 1)
    total = 0
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "made").mkdir()
        samples = hostile.samples(Path(place) / "made")
        read = hostile.Reader(samples, Path(place) / "warm")
        folder = given.keep or Path(place) / "here"
        for format in given.formats or FORMATS:
            start = time.perf_counter()
            counts, findings = fuzz(read, samples, format, numbers, given.seed, folder)
            took = time.perf_counter() - start
            print(
                f"{format:11} {counts['read']:6} read {counts['refused']:6} refused "
                f"{counts['wrong']:4} wrong, in {took:.0f} s",
                flush=True,
            )
            for wrong, where in findings.items():
                print(f"    {len(where)} x {wrong}\n        {', '.join(where[:6])}", flush=True)
            total += counts["wrong"]
        read.close()
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
