"""``sf2el doctor``: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

EXTRAS = {
    "matplotlib": ("plot", "matplotlib", "figures and HTML pages"),
    "polars": ("data", "polars", "Parquet files"),
    "river": ("river", "river", "sf2el.adapters.river"),
    "sklearn": ("sklearn", "scikit-learn", "sf2el.adapters.sklearn"),
}
"""Optional module: the extra that installs it, its distribution, and what it is for."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Say what is installed, what is missing and how to get it.

    Leaves with exit code 1 where sf2el cannot work as it is set up.
    """
    found = examine()
    click.echo(json.dumps(found, indent=2) if as_json else "\n".join(describe(found)))
    if found["problems"]:
        ctx.exit(1)


def examine() -> dict[str, Any]:
    """Return the findings: versions, the compiled core, optional extras, the data folder, problems."""
    import sf2el
    from sf2el.cli.compiled import variant_in_use

    problems = []
    try:
        variant = variant_in_use()
    except (ValueError, ImportError) as error:
        variant = None
        problems.append(str(error))
    folder = os.environ.get("SF2EL_DATA")
    if folder and not Path(folder).is_dir():
        problems.append(f"SF2EL_DATA names {folder}, which is not a folder.")
    return {
        "versions": {
            "sf2el": sf2el.__version__,
            "python": platform.python_version(),
            "numpy": _version("numpy"),
        },
        "compiled_core": {"built": _built(), "variant": variant},
        "extras": {
            module: {
                "extra": extra,
                "version": _version(distribution) if find_spec(module) else None,
                "use": use,
                "install": f'pip install "sf2el[{extra}]"',
            }
            for module, (extra, distribution, use) in EXTRAS.items()
        },
        "data_folder": folder,
        "problems": problems,
    }


def describe(found: dict[str, Any]) -> list[str]:
    """Return the findings as lines to read."""
    core = found["compiled_core"]
    lines = [f"{name:<14}{number}" for name, number in found["versions"].items()]
    state = f"{core['variant']} variant" if core["variant"] else "cannot be used"
    lines.append(f"{'compiled core':<14}{state if core['built'] else 'not installed'}")
    for module, extra in found["extras"].items():
        state = extra["version"] or f"not installed ({extra['use']}): {extra['install']}"
        lines.append(f"{module:<14}{state}")
    lines.append(f"{'data folder':<14}{found['data_folder'] or 'not set (SF2EL_DATA)'}")
    return lines + [f"Problem: {problem}" for problem in found["problems"]]


def _built() -> bool:
    from sf2el.core import native

    try:
        native()
    except ImportError:
        return False
    return True


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
