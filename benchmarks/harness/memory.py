"""Current and peak memory of this process."""

from __future__ import annotations

from pathlib import Path

STATUS = Path("/proc/self/status")


def resident() -> int:
    """Bytes in memory now, or the peak on systems that do not report the current value."""
    return _status("VmRSS") if STATUS.exists() else peak()


def peak() -> int:
    """Peak memory in bytes since the start, or since `forget_peak`.

    (`ru_maxrss` alone would include the memory of the parent process.)
    """
    if STATUS.exists():
        return _status("VmHWM")
    import resource  # not available on Windows

    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_maxrss  # in bytes on macOS, which has no /proc


def forget_peak() -> None:
    """Reset the peak, if the system supports it."""
    if STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    lines = STATUS.read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))
