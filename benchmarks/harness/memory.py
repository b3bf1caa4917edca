"""Current and peak memory of this process."""

from __future__ import annotations

from pathlib import Path

STATUS = Path("/proc/self/status")


def resident() -> int:
    """Bytes in memory now; where the system does not tell, the most there have been."""
    return _status("VmRSS") if STATUS.exists() else peak()


def peak() -> int:
    """The most bytes in memory since the start, or since `forget_peak`.

    (`ru_maxrss` alone would count what the process that started this one had.)
    """
    if STATUS.exists():
        return _status("VmHWM")
    import resource  # which Windows does not have

    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_maxrss  # in bytes on macOS, which has no /proc


def forget_peak() -> None:
    """Count the peak from now on, where the system can."""
    if STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    lines = STATUS.read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))
