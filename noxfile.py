"""Run the tests with the lowest and the newest versions of the dependencies: `nox`.

`nox -s lowest -- tests/test_angles.py` passes arguments on to pytest.
"""

import re
import tomllib
from pathlib import Path

import nox

PROJECT = tomllib.loads(Path("pyproject.toml").read_text())["project"]
RUNTIME = ("plot", "viewer", "anndata", "cli")  # extras that the tests use
nox.options.sessions = ["lowest", "newest"]
nox.options.stop_on_first_error = False


def lowest_versions():
    """Constraints NAME==VERSION for all run-time requirements NAME>=VERSION."""
    extras = PROJECT["optional-dependencies"]
    requirements = PROJECT["dependencies"] + [line for extra in RUNTIME for line in extras[extra]]
    bounds = [re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\w.]+)", line) for line in requirements]
    return sorted({f"{bound[1]}=={bound[2]}" for bound in bounds if bound})


def run_tests(session, *options):
    session.run("python", "-m", "pip", "list", silent=False)
    arguments = session.posargs or [
        "-n",
        "2",
        "--dist",
        "loadfile",
        "-m",
        "not packaging and not nightly",
    ]
    session.run("python", "-m", "pytest", *options, *arguments)


@nox.session
def lowest(session):
    """Every requirement at the version that pyproject.toml names."""
    constraints = Path(session.create_tmp()) / "lowest.txt"
    # scikit-learn 1.6 reads polars frames by a protocol that polars 2 removed.
    constraints.write_text("\n".join([*lowest_versions(), "polars<2"]) + "\n")
    session.install("--editable", ".[dev]", "--constraint", str(constraints.resolve()))
    # Old packages are deprecated by newer ones around them: there, warnings are not errors.
    run_tests(session, "-W", "default")


@nox.session
def newest(session):
    """Every requirement at its newest release."""
    session.install("--upgrade", "--upgrade-strategy", "eager", "--editable", ".[dev]")
    run_tests(session)
