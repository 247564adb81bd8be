"""``sf2el inspect``: what a saved model holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sf2el.model.space import Seat, Space
    from sf2el.model.streaming import StreamModel

FEW = 8
"""Features, labels and events that are shown of a longer list."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def inspect(file: Path, as_json: bool) -> None:
    """Say what a saved model holds: its size by part, features, experts and what happened to it."""
    found = examine(file)
    click.echo(json.dumps(found, indent=2) if as_json else "\n".join(describe(found)))


def examine(file: Path) -> dict[str, Any]:
    """Return what a file holds, as plain values; ValueError if it is no model."""
    from sf2el import SF2EL, SF2ELRegressor
    from sf2el.model.budgeted import MemoryParts
    from sf2el.storage.persist import opened
    from sf2el.storage.persist_strategy import recipe_out

    data = file.read_bytes()
    try:
        content, _ = opened(data)
        kinds: dict[Any, type[StreamModel]] = {cls.KIND: cls for cls in (SF2EL, SF2ELRegressor)}
        kind = content.get("kind", SF2EL.KIND)
        if kind not in kinds:
            raise ValueError(f"It holds a {kind!r}, which this version does not know.")
        model = kinds[kind].from_bytes(data)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    events = model.events()
    parts = model.memory_usage(detail=True)
    assert isinstance(parts, MemoryParts)
    return {
        "file": str(file),
        "file_bytes": len(data),
        "format": content["format"],
        "kind": kind,
        "recipe": recipe_out(model._recipe),
        "budget": model._budget,
        "memory": {"total": sum(parts.values()), "parts": parts, "full_grown": parts.full_grown},
        "rows": model._rows_seen,
        "labels": model._labels_out(),
        "spaces": _spaces(model),
        "maps": _maps(model),
        "risk": model.risk(),
        "events": {
            "total": events.total,
            "last": [{"row": e.row, "certain": e.certain, "text": e.text} for e in events.last],
        },
    }


def _spaces(model: StreamModel) -> list[dict[str, Any]]:
    stage = model._stage
    if stage is None:
        return []
    weights = [float(weight) for weight in stage.weights.weights]
    past = len(stage.past.seats) if stage.past is not None and stage.recovers else 0
    back = stage.upcoming is not None and stage.upcoming is stage.past
    found = [_space("current", stage.current, weights[past:])]
    if stage.past is not None:
        role = "vanished, back beside the current one" if back else "vanished"
        found.append(_space(role, stage.past, weights[:past]))
    if stage.upcoming is not None and not back:
        found.append(_space("appeared beside the current one", stage.upcoming, []))
    return found


def _space(role: str, space: Space, weights: list[float]) -> dict[str, Any]:
    shares: list[float | None] = [*weights] or [None] * len(space.seats)
    return {
        "role": role,
        "size": space.dim,
        "features": list(space.names),
        "covariance": space.moments is not None,
        "experts": [_expert(seat, weight) for seat, weight in zip(space.seats, shares, strict=True)],
    }


def _expert(seat: Seat, weight: float | None) -> dict[str, Any]:
    from sf2el.experts.learner_seat import LearnerSeat
    from sf2el.experts.seats import PosteriorSeat

    found: dict[str, Any] = {"name": seat.name or "learner", "weight": weight, "bytes": seat.nbytes}
    if isinstance(seat, LearnerSeat):
        shape = seat.shape
        found |= {"rows": seat.held, "most_rows": shape.rows, "precision": shape.precision}
        found["matrices"] = shape.settings.keep_gram
    elif isinstance(seat, PosteriorSeat):
        state = seat.posterior.state()
        found |= {"rows": len(state["rows"]), "most_rows": seat.settings.size, "precision": seat.precision}
        found |= {
            "gamma": seat.settings.gamma,
            "outputs": seat.settings.outputs,
            "labels": int(state["labels"]),
        }
    return found


def _maps(model: StreamModel) -> list[dict[str, Any]]:
    stage = model._stage
    if stage is None:
        return []
    roles = {"recovers the vanished features": stage.psi, "is being fitted": stage.overlap}
    return [
        {"role": role, "from": psi.new_dim, "to": psi.old_dim, "rows": psi.rows, "bytes": int(psi.nbytes)}
        for role, psi in roles.items()
        if psi is not None
    ]


def describe(found: dict[str, Any]) -> list[str]:
    """Return what a file holds as lines to read."""
    from sf2el.inputs.rows import few

    recipe, memory = found["recipe"], found["memory"]
    size = f"buffers of {recipe.get('buffer_size')} rows"
    if found["budget"] is not None:
        size = f"{found['budget']:,} bytes, {memory['total']:,} in use"
        size += "; the experts are as large as helps" if memory["full_grown"] else ""
    lines = [
        _line("file", f"{found['file']}, {found['file_bytes']:,} bytes, format {found['format']}"),
        _line("kind", f"{found['kind']}, {'published' if recipe['kind'] == 'paper' else 'default'} recipe"),
        _line("seed", f"{recipe['seed']}"),
        _line("budget", size),
        *(_line(f"  {part}", f"{number:,} bytes") for part, number in memory["parts"].items() if number),
        _line("rows", f"{found['rows']:,}"),
        _line("labels", _labels(found["labels"])),
    ]
    for space in found["spaces"]:
        names = few([str(name) for name in space["features"]], FEW) or "names not kept"
        lines.append(_line("space", f"{space['role']}: {space['size']} features ({names})"))
        lines += [_line("  expert", _expert_line(expert)) for expert in space["experts"]]
    for psi in found["maps"]:
        shape = f"{psi['from']} to {psi['to']} features, {psi['rows']:,} rows, {psi['bytes']:,} bytes"
        lines.append(_line("map", f"{psi['role']}: {shape}"))
    events = found["events"]
    lines.append(_line("events", f"{events['total']:,}"))
    lines += [_line(f"  row {event['row']:,}", event["text"]) for event in events["last"][-FEW:]]
    return lines


def _line(name: str, text: str) -> str:
    return f"{name:<14}{text}"


def _labels(labels: dict[str, Any]) -> str:
    from sf2el.inputs.rows import few

    if "seen" not in labels:
        return f"{labels['count']:,} numbers of mean {labels['mean']:.4g}"
    counted = [f"{label} ({n:,})" for label, n in zip(labels["seen"], labels["counts"], strict=True)]
    return few(counted, FEW) or "none yet"


def _expert_line(expert: dict[str, Any]) -> str:
    text = expert["name"]
    if "rows" in expert and expert["most_rows"]:
        text += f", {expert['rows']:,} of {expert['most_rows']:,} rows"
    text += f", {expert.get('precision', 'float64')}, {expert['bytes']:,} bytes"
    return text if expert["weight"] is None else f"{text}, weight {expert['weight']:.3f}"
