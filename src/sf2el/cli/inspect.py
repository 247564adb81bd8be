"""``sf2el inspect``: what a saved model holds."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sf2el.model.engine import Engine
    from sf2el.model.stream import StreamModel

FEW = 8
"""Features, labels and events that are shown of a longer list."""

MAP_FORMS = {0: "none", 1: "bfloat16", 2: "float32", 3: "float64"}
"""How a map is kept."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def inspect(file: Path, as_json: bool) -> None:
    """Say what a saved model holds: its size by part, features, experts and what happened to it."""
    found = examine(file)
    click.echo(json.dumps(found, indent=2) if as_json else "\n".join(describe(found)))


def examine(file: Path) -> dict[str, Any]:
    """Return what a file holds, as plain values; ValueError if it is no model."""
    from sf2el.model.stream import MemoryParts
    from sf2el.storage import files

    data = file.read_bytes()
    try:
        saved = files.read(data)
        model = _kind(saved.kind).from_bytes(data)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    engine, events = model._engine, model.events()
    parts = model.memory_usage(detail=True)
    assert isinstance(parts, MemoryParts)
    return {
        "file": str(file),
        "file_bytes": len(data),
        "kind": saved.kind,
        "strategy": {"name": saved.strategy, **saved.parameters},
        "budget": model.budget,
        "memory": {"total": sum(parts.values()), "parts": parts, "full_grown": parts.full_grown},
        "rung": _rung(engine),
        "rows": model.rows_seen,
        "labels": saved.targets,
        "spaces": _spaces(engine),
        "maps": _maps(engine),
        "risk": model.risk(),
        "events": {"total": events.total, "last": [asdict(event) for event in events.last]},
    }


def _kind(name: str) -> type[StreamModel]:
    from sf2el import SF2EL, SF2ELRegressor

    kinds: dict[str, type[StreamModel]] = {cls.KIND: cls for cls in (SF2EL, SF2ELRegressor)}
    if name not in kinds:
        raise ValueError(f"It holds a {name!r}, which this version does not know.")
    return kinds[name]


def _rung(engine: Engine) -> dict[str, Any] | None:
    """Return the highest rung of the ladder that fits; None where there is no ladder, or no space yet."""
    from sf2el.memory.ladder import RUNGS

    place = engine.rung()
    if place is None:
        return None
    return {"place": place, "of": len(RUNGS), "part": str(RUNGS[place].part)}


def _spaces(engine: Engine) -> list[dict[str, Any]]:
    """Return the spaces, the oldest first, each with its experts."""
    from sf2el.experts.kinds import Kind, code_of
    from sf2el.paper.rows import FORMS

    state, found = engine.state, []
    weights = iter(state.standings()[:, 0].tolist())
    for place in range(state.spaces):
        ids, room, _, _, rows, related = state.space(place)
        experts = []
        for raw, held, labels, nbytes in state.experts(place):
            code = code_of(raw)
            experts.append(
                {
                    "name": code.name,
                    "weight": next(weights),
                    "bytes": nbytes,
                    "held": held,
                    "most": code.size,
                    "of": "rows" if code.kind is Kind.LEARNER else "functions",
                    "labels": labels,
                    "form": FORMS[code.form].text if code.kind is Kind.LEARNER else code.form.name.lower(),
                }
            )
        found.append(
            {
                "role": engine.role(place),
                "size": len(ids),
                "room": room,
                "rows": rows,
                "features": list(state.names(ids)),
                "covariance": related,
                "experts": experts,
            }
        )
    return found


def _maps(engine: Engine) -> list[dict[str, Any]]:
    """Return the maps, each from a space to the one before."""
    state, found = engine.state, []
    for place in range(state.spaces):
        psi = state.map(place)
        if psi is None:
            continue
        new, old, rows, unexplained, form, _, learns, nbytes = psi
        found.append(
            {
                "to": place,
                "role": "of a space that has ended" if engine.role(place) == "recovered" else "being fitted",
                "from_features": new,
                "to_features": old,
                "rows": rows,
                "unexplained": unexplained,
                "form": MAP_FORMS[form],
                "takes_rows": learns,
                "bytes": nbytes,
            }
        )
    return found


def describe(found: dict[str, Any]) -> list[str]:
    """Return what a file holds as lines to read."""
    from sf2el.inputs.rows import few

    strategy, memory, rung = found["strategy"], found["memory"], found["rung"]
    size = f"buffers of {strategy.get('buffer_size')} rows"
    if found["budget"] is not None:
        size = f"{found['budget']:,} bytes, {memory['total']:,} in use"
        size += "; the experts are as large as helps" if memory["full_grown"] else ""
    algorithm = "published" if strategy["name"] == "paper" else "default"
    lines = [
        _line("file", f"{found['file']}, {found['file_bytes']:,} bytes"),
        _line("kind", f"{found['kind']}, {algorithm} algorithm"),
        _line("seed", f"{strategy['seed']}"),
        _line("budget", size),
        *(_line(f"  {part}", f"{number:,} bytes") for part, number in memory["parts"].items() if number),
    ]
    if rung is not None:
        lines.append(_line("room for", f"{rung['part']} (rung {rung['place'] + 1} of {rung['of']})"))
    lines += [_line("rows", f"{found['rows']:,}"), _line("labels", _labels(found["labels"]))]
    for space in found["spaces"]:
        names = few([str(name) for name in space["features"]], FEW)
        lines.append(_line("space", f"{space['role']}: {_features(space['size'])} ({names})"))
        lines += [_line("  expert", _expert_line(expert)) for expert in space["experts"]]
    for psi in found["maps"]:
        shape = f"{psi['from_features']} to {_features(psi['to_features'])}"
        lines.append(_line("map", f"{psi['role']}: {shape}, {psi['rows']:,} rows, {psi['bytes']:,} bytes"))
    events = found["events"]
    lines.append(_line("events", f"{events['total']:,}"))
    lines += [_line(f"  row {event['row']:,}", event["text"]) for event in events["last"][-FEW:]]
    return lines


def _line(name: str, text: str) -> str:
    return f"{name:<14}{text}"


def _features(count: int) -> str:
    return f"{count} feature{'' if count == 1 else 's'}"


def _labels(labels: dict[str, Any]) -> str:
    from sf2el.inputs.rows import few

    if "seen" not in labels:
        return f"{labels['count']:,} numbers of mean {labels['mean']:.4g}"
    counted = [f"{label} ({n:,})" for label, n in zip(labels["seen"], labels["counts"], strict=True)]
    return few(counted, FEW) or "none yet"


def _expert_line(expert: dict[str, Any]) -> str:
    text = expert["name"]
    if expert["most"]:
        text += f", {expert['held']:,} of {expert['most']:,} {expert['of']}"
    return f"{text}, {expert['bytes']:,} bytes, weight {expert['weight']:.3f}"
