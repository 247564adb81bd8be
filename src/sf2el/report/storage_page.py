"""The page of the storage experiments: what a byte is worth, and a budget that changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sf2el.report.page import Block, Cell, Column, Figure, Page, Points, Section, Table, Text
from sf2el.reproduce import figures, storage_figures
from sf2el.reproduce.statistics import signed_text
from sf2el.reproduce.storage import Storage
from sf2el.reproduce.storage_design import KIB, PAPER, PLANNER

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CHANGING = "changing-budget"


def drawings(result: Storage) -> dict[str, Drawing]:
    """Return the figures by name: accuracy by bytes for each dataset, and the changing budget."""
    drawn = {
        f"bytes-{dataset}": storage_figures.by_bytes(
            {name: result.curve(dataset, name) for name in result.design.variants},
            result.curve(dataset, PLANNER),
            {
                cell["rows_old"]: (cell["bytes"], cell["accuracy"]["mean"])
                for cell in result.cells
                if (cell["dataset"], cell["variant"]) == (dataset, PAPER)
            },
            chance=result.datasets[dataset].majority,
            title=_shown(result, dataset),
        )
        for dataset in result.datasets
    }
    moving = result.changing
    largest = max(moving.budget) // KIB
    drawn[CHANGING] = storage_figures.under_budget(
        moving.rounds,
        {"changing budget": moving.accuracy, f"always {largest} KiB": moving.steady},
        moving.nbytes,
        moving.budget,
        swap=moving.t1,
        settled=moving.window // 2,
        title=moving.dataset,
    )
    return drawn


def storage_page(
    result: Storage, drawn: Mapping[str, Drawing], *, version: str, variant: str, seconds: float
) -> Page:
    """Return the page."""
    return Page(
        "What a byte is worth",
        "The same total of bytes, spent in different ways: few rows with their matrices in float64, as the "
        "paper has it, or many rows without them. And one model whose budget changes while it learns.",
        [_glance(result), _curves(result, drawn), _best(result), _changing(result, drawn), _protocol(result)],
        [
            f"sf2el {version}, {variant} variant; {seconds:.0f} s in all.",
            "Hou, Yan, Zhao and Zhou, Storage Fit Learning with Feature Evolvable Streams, AAAI 2021.",
        ],
    )


def _glance(result: Storage) -> Section:
    budgets = result.design.budgets
    rows = []
    for dataset in result.datasets:
        curve = result.curve(dataset, PLANNER)
        shown = (f"{curve[budget]:.3f}" if budget in curve else "" for budget in budgets)
        rows.append([_shown(result, dataset), *shown, f"{result.datasets[dataset].majority:.3f}"])
    chosen = []
    for dataset in result.datasets:
        cells = {
            cell["budget"]: cell
            for cell in result.cells
            if (cell["dataset"], cell["variant"]) == (dataset, PLANNER)
        }
        chosen += [
            [
                _shown(result, dataset),
                f"{budget // KIB}",
                cell["form"],
                f"{cell['rows_old']} / {cell['rows_new']}",
                f"{cell['bytes']}",
            ]
            for budget, cell in cells.items()
        ]
    names = ("dataset", "KiB", "how learners are kept", "rows old / new", "bytes")
    return Section(
        "The planner at a glance",
        [
            Text(result.verdict()),
            Table(
                "Accuracy of SF2EL with the shapes that the product's planner chooses, by total budget; "
                "empty where the budget cannot hold both learners and the map.",
                [
                    Column("dataset", number=False),
                    *(Column(f"{budget // KIB} KiB") for budget in budgets),
                    Column("larger class"),
                ],
                rows,
            ),
            Table(
                "What the planner chose. Rows are capped for time, so that bytes may be left over.",
                [Column(name, number=name in ("KiB", "bytes")) for name in names],
                chosen,
            ),
        ],
    )


def _curves(result: Storage, drawn: Mapping[str, Drawing]) -> Section:
    blocks: list[Block] = [
        Text(
            "Look at the left of each figure first: where bytes are scarce, does green (no matrix) stand "
            "above orange (the paper's exact projection)? The bytes of a matrix buy many more rows. Solid "
            "(float32) against dashed (float64) is the same trade. The grey area holds all ways of keeping "
            "that were measured; where it closes, to the right, the way no longer matters. The bold curve is "
            "what the product's planner chooses; the table above says which way it took where."
        )
    ]
    names = list(result.datasets)
    for first in range(0, len(names), 2):
        pair = names[first : first + 2]
        panels = [
            figures.inline_svg(
                drawn[f"bytes-{name}"], f"bytes-{name}", f"accuracy by total bytes on {_shown(result, name)}"
            )
            for name in pair
        ]
        order = f" ({pair[0]} left, {pair[1]} right)" if len(pair) == 2 else ""
        caption = (
            f"Accuracy by total bytes on {' and '.join(_shown(result, name) for name in pair)}{order}. "
            "Diamonds: the paper's own buffers of 10, 20, 40 and 60 rows, at the bytes they cost; what "
            "stands above a diamond, or left of it at its height, is a better use of its bytes. Means over "
            "runs; deviations are in storage.csv."
        )
        lone = [name for name in pair if len(result.curve(name, PLANNER)) == 1]
        if lone:
            caption += (
                f" On {' and '.join(lone)} the map alone takes so much that one budget is left; there the "
                "ways of keeping stand side by side to be seen, all at that budget."
            )
        blocks.append(Figure(panels, caption))
    return Section("Accuracy by bytes", blocks)


def _best(result: Storage) -> Section:
    """Return the fixed variants' mean gap to the best of them at the same dataset and budget."""
    variants = list(result.design.variants)
    curves = {(name, v): result.curve(name, v) for name in result.datasets for v in variants}
    gaps: dict[str, dict[int, list[float]]] = {v: {} for v in [*variants, PLANNER]}
    for dataset in result.datasets:
        planner = result.curve(dataset, PLANNER)
        for budget in planner:
            here = {v: curves[dataset, v].get(budget) for v in variants} | {PLANNER: planner[budget]}
            if any(value is None for value in here.values()):
                continue  # only where every variant has its two rows
            best = max(value for value in here.values() if value is not None)
            for v, value in here.items():
                assert value is not None
                gaps[v].setdefault(budget, []).append(value - best)
    budgets = sorted({budget for by_budget in gaps.values() for budget in by_budget})
    rows: list[list[Cell | str]] = []
    means = {v: {b: sum(g[b]) / len(g[b]) for b in budgets} for v, g in gaps.items()}
    for v in gaps:
        row: list[Cell | str] = [v]
        for budget in budgets:
            best = max(means[other][budget] for other in variants)
            row.append(Cell(signed_text(means[v][budget]), best=means[v][budget] == best))
        rows.append(row)
    caption = (
        "Distance to the best of these at the same dataset and budget, averaged over the datasets on which "
        "all of them fit; 0 would be best everywhere. Bold: the best fixed way at a budget."
    )
    columns = [Column("kept", number=False), *(Column(f"{budget // KIB} KiB") for budget in budgets)]
    return Section("Which way of keeping is best at which budget", [Table(caption, columns, rows)])


def _changing(result: Storage, drawn: Mapping[str, Drawing]) -> Section:
    moving = result.changing
    description = f"accuracy and bytes on {moving.dataset} while the budget changes"
    over = sum(used > budget for used, budget in zip(moving.nbytes, moving.budget, strict=True))
    held = "never above it" if not over else f"ABOVE IT at {over} of {len(moving.nbytes)} points"
    budgets = " → ".join(f"{part['budget'] // KIB}" for part in moving.parts)
    rows = [
        [
            f"{part['budget'] // KIB} KiB",
            f"{part['start'] + 1} to {part['stop']}",
            f"{part['accuracy']:.3f}",
            f"{part['steady']:.3f}",
            f"{part['most_bytes']}",
        ]
        for part in moving.parts
    ]
    largest = max(moving.budget) // KIB
    titles = ("rounds", "accuracy", f"always {largest} KiB", "most bytes kept")
    return Section(
        "Storage that changes while a stream runs",
        [
            Text(
                f"The public model, SF2EL(budget=...), on one stream of {moving.dataset}: old features, ten "
                f"rounds with both, then the new ones only. set_budget() is called at equal parts of the "
                f"stream: {budgets} KiB. Each chunk of {moving.chunk} rows is predicted before any of it is "
                "learned, and kernel and scaling look at no later row."
            ),
            Figure(
                [figures.inline_svg(drawn[CHANGING], CHANGING, description)],
                f"Below: bytes kept against the budget line, {held}. Above: accuracy over the last "
                f"{moving.window} rows, beside a model that has {largest} KiB throughout. Look for how far "
                "the bold curve drops below the grey one after a cut, and whether it comes back when bytes "
                "do. The features change at the dotted line in the middle.",
            ),
            Table("The parts of the stream.", [Column("budget", number=False), *map(Column, titles)], rows),
        ],
    )


def _protocol(result: Storage) -> Section:
    design = result.design
    most = max(len(seeds) for seeds in result.seeds.values())
    fewer = [f"{name} ({len(seeds)})" for name, seeds in result.seeds.items() if len(seeds) < most]
    points = [
        "Bytes: both learners, the recovery map and the hedge's weights, as the compiled core allocates "
        "them; both learners get the same number of bytes. A curve begins where both have two rows.",
        f"Rows are capped at {design.most_rows} a learner for time; a capped learner leaves bytes unused, "
        "and its curve is flat from there on.",
        f"{result.reading.name} reading, SF2EL, label rate {design.label_rate:g}, {design.overlap} rounds of "
        "overlap, accuracy over the third period with hindsight labels. The reading was tuned with a buffer "
        "of 60 rows, exact projection, float64.",
        f"Seeds 0 to {most - 1}" + (f"; fewer on {' and '.join(fewer)}." if fewer else "."),
        "Stratified reservoirs: one for labelled and one for unlabelled rows, half the slots each.",
        "The protocol's two look-aheads hold for the curves: features scaled to [0, 1] over the whole set, "
        "and kernel widths from the first 200 rows. The changing budget has neither: its rows come from the "
        "same scaled files, but the model standardises every feature online, which undoes that scaling.",
    ]
    simulated = [name for name, dataset in result.datasets.items() if dataset.simulated]
    if simulated:
        points.append(f"{', '.join(simulated)} is simulated: the paper's data could not be obtained.")
    return Section("Protocol", [Points(points)])


def _shown(result: Storage, dataset: str) -> str:
    return f"{dataset} (simulated)" if result.datasets[dataset].simulated else dataset
