"""Build an older commit beside this one, and print the path of its Python: what ``rows.py --against`` takes.

    python benchmarks/beside.py [COMMIT] [--folder FOLDER]

Sources and an environment of their own go to a temporary folder, which is kept: a second call finds the first
one's and only prints. A build that was cut short begins again, and of two calls at once one waits.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMIT = "3a948f7"
RIVER = "river==0.26.1"


def run(*command: object) -> str:
    """Run a command away from this tree; its output goes to standard error, and is returned too."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=tempfile.gettempdir(), env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{done.stdout}\n{' '.join(map(str, command))}: failed.")
    return done.stdout


def built(commit: str, folder: Path | None = None) -> Path:
    """Return the path of a Python that has that commit and river, building them where they are not there."""
    full = run("git", "-C", ROOT, "rev-parse", "--verify", f"{commit}^{{commit}}").strip()
    folder = (folder or Path(tempfile.gettempdir(), f"sf2el-{full[:7]}")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    python, done = folder / "env" / "bin" / "python", folder / "done"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists() and done.read_text() == f"{full} {RIVER}" and python.exists():
            return python
        done.unlink(missing_ok=True)
        for part in ("source", "env"):
            shutil.rmtree(folder / part, ignore_errors=True)
        print(f"Building {full[:7]} in {folder}; this takes minutes.", file=sys.stderr)
        (folder / "source").mkdir()
        run("git", "-C", ROOT, "archive", "-o", folder / "source.tar", full)
        run("tar", "-xf", folder / "source.tar", "-C", folder / "source")
        run(sys.executable, "-m", "venv", folder / "env")
        run(python, "-m", "pip", "install", "--quiet", folder / "source", RIVER)
        if "not built" in run(python, "-m", "sf2el", "doctor"):
            raise SystemExit(f"The compiled core of {full[:7]} was not built: its times would mean nothing.")
        done.write_text(f"{full} {RIVER}")
    return python


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default=COMMIT)
    parser.add_argument("--folder", type=Path, help="where to build; a temporary folder by default")
    given = parser.parse_args()
    print(built(given.commit, given.folder))
