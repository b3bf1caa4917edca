"""Build the kernels in C for wheels and editable installs, if there is a compiler.

If there is none, or it fails, Mercat is installed without them and uses NumPy; `mercat info` shows which. If
the environment variable MERCAT_WHEEL_FOR is one of the platform tags in CROSS, the `ziglang` package compiles
for that platform, and a failure is an error: tools/build_twice.py builds all wheels in this way.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

VARIABLE = "MERCAT_WHEEL_FOR"


class Target(NamedTuple):
    """A platform, as named by the compiler and by Python."""

    zig: str
    system: str
    machine: str


CROSS = {
    "manylinux_2_17_x86_64": Target("x86_64-linux-gnu.2.17", "linux", "x86_64"),
    "manylinux_2_17_aarch64": Target("aarch64-linux-gnu.2.17", "linux", "aarch64"),
    "macosx_11_0_x86_64": Target("x86_64-macos.11.0", "darwin", "x86_64"),
    "macosx_11_0_arm64": Target("aarch64-macos.11.0", "darwin", "arm64"),
    "win_amd64": Target("x86_64-windows-gnu", "win32", "AMD64"),
}


class KernelsHook(BuildHookInterface):
    """Add the library to a wheel; for an editable install, put it next to its source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        build = _builder(Path(self.root))
        platform_tag = os.environ.get(VARIABLE)
        try:
            if platform_tag:
                target = CROSS[platform_tag]
                path = build.library(system=target.system)
                zig = [sys.executable, "-m", "ziglang", "cc", "-target", target.zig]
                library = build.build(self._scratch() / path.name, zig, machine=target.machine)
            elif version == "editable":
                path = build.library()
                if not path.exists():
                    build.build(path)
                return
            else:
                path = build.library()
                library = build.build(self._scratch() / path.name)
        except build.CannotBuild as error:
            if platform_tag:
                raise
            self.app.display_warning(
                f"Mercat's compiled kernels are left out, and NumPy is used instead: {error}."
            )
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag or _platform()}"
        build_data["force_include"][str(library)] = f"mercat/_kernels/{path.name}"

    def _scratch(self) -> Path:
        self._folder = tempfile.TemporaryDirectory()
        return Path(self._folder.name)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _builder(root: Path) -> ModuleType:
    """The module that compiles, without importing Mercat."""
    path = root / "src" / "mercat" / "_kernels" / "_build.py"
    spec = importlib.util.spec_from_file_location("mercat_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _platform() -> str:
    """The tag of this machine: a library that is built for it alone makes no promise for others."""
    tags = (tag.platform for tag in sys_tags())
    return next(tag for tag in tags if not tag.startswith(("manylinux", "musllinux")))
