"""Coverage-guided fuzzing of a reader: Atheris looks for bytes that lead to code not yet reached.

    python tests/fuzz_coverage.py npz -max_total_time=60

Options are those of libFuzzer. The run ends at an unexpected error, after a minute for one file, or
above 3 GB, and leaves the file as crash-*, timeout-* or oom-* in the folder. Atheris is not part of `.[dev]`:
`make fuzz` installs it into a separate environment (on Linux, which it has wheels for).
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["mercat", "zipfile"]):
    import hostile
    import hostile_reader

    READERS = hostile_reader.readers()

FORMATS = {
    "csv": "csv", "npy": "npy", "npz": "npz", "sparse": "sparse npz", "mtx": "mtx", "model": "model",
    "parquet": "parquet", "feather": "feather", "h5ad": "h5ad", "zarr": "zarr",
}  # fmt: skip


def main() -> None:
    warnings.simplefilter("ignore")
    format, *options = sys.argv[1:]
    place = Path(tempfile.mkdtemp(prefix="mercat-fuzz-"))
    for name in ("made", "seeds"):
        (place / name).mkdir()
    sample = hostile.samples(place / "made")[FORMATS[format]]
    parts = list(sample.parts)
    many = sample.assemble is hostile._folder
    path = sample.write(place / "here")
    whole = sample.write(place / "whole")
    # In a folder, one file is replaced; the first byte selects it.
    if many:
        for k, part in enumerate(parts):
            (place / "seeds" / str(k)).write_bytes(bytes([k % 256]) + sample.parts[part])
    else:
        (place / "seeds" / "whole").write_bytes(whole.read_bytes())
    read = READERS[sample.reader]

    def one_input(data: bytes) -> None:
        if many:
            part = path / parts[data[0] % len(parts) if data else 0]
            before = part.read_bytes()
            part.write_bytes(data[1:])
        else:
            path.write_bytes(data)
        outcome, kind, message = hostile_reader.attempt(read, path)
        if many:
            part.write_bytes(before)
        if outcome == "raised" or (outcome == "refused" and str(path.parent) not in message):
            raise RuntimeError(f"{outcome}, {kind}: {message}")

    limits = ["-rss_limit_mb=3000", "-timeout=60", "-detect_leaks=0", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *limits, *options, str(place / "seeds")], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
