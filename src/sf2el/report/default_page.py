"""The page of the study of the default model: its goals, how it compares, and where it loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sf2el.report.page import Block, Cell, Column, Facts, Figure, Page, Points, Section, Table, Text
from sf2el.reproduce import figures
from sf2el.reproduce.default_design import KIB
from sf2el.reproduce.default_study import CEILING, FESL, FESL_BY_RATE, OTHERS, OURS, PAPER
from sf2el.reproduce.default_tables import (
    FEW_TITLES,
    NOT_RUN,
    SCORES,
    TITLES,
    ahead,
    few_labels_cells,
    few_labels_said,
    few_labels_text,
    interval,
    mean_of,
    rate,
    score,
    signed,
    with_error,
)
from sf2el.reproduce.statistics import spread_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Content = Mapping[str, Any]
Drawn = Mapping[str, "Drawing"]


def default_page(content: Content, drawn: Drawn, *, version: str, variant: str, seconds: float) -> Page:
    """Return the page."""
    goals, best = content["targets"], content["against_best"]
    budget = content["protocol"]["budget"] // KIB
    clear = sum(row["clear"] for row in content["losses"])
    return Page(
        "The default model beside others",
        f"SF2EL(budget='{budget}KiB') as it comes, untuned, on streams whose features are exchanged "
        "half-way: beside the paper's eight methods tuned to each dataset, linear FESL-c, learners that "
        "start again, and refits that keep every label.",
        [
            _goals(content),
            _against(content, drawn),
            _accuracy(content, drawn),
            _losses(content),
            _few_labels(content, drawn),
            _budgets(content, drawn),
            _drift(content, drawn),
            _spread(content),
            _protocol(content),
        ],
        [
            f"sf2el {version}, {variant} variant; {seconds:.0f} s in all (finished runs are reused).",
            "Hou, Yan, Zhao and Zhou, Storage Fit Learning with Feature Evolvable Streams, AAAI 2021.",
        ],
        Facts(
            [
                (_of(goals), "goals for the accuracy that are reached"),
                (_of(best), "datasets and label rates within the goal's limit to the best other"),
                (f"{clear}", "places where another is clearly ahead"),
            ]
        ),
    )


def _of(rows: Sequence[Mapping[str, Any]]) -> str:
    return f"{sum(row['holds'] for row in rows)} of {len(rows)}"


def _goals(content: Content) -> Section:
    rows = [
        [
            row["dataset"],
            rate(row),
            score(row["asked"]),
            with_error(row),
            f"{row['runs']}",
            _reached(row),
        ]
        for row in content["targets"]
    ]
    budgets = [
        f"{row['budget'] // KIB} KiB: {signed(row['mean'])} on average against "
        f"{content['protocol']['budget'] // KIB} KiB, goal at least {signed(row['limit'])}: "
        f"{'reached' if row['holds'] else 'MISSED'}."
        for row in content["budgets"]
        if "limit" in row
    ]
    names = ("goal", "mean ± standard error", "runs", "reached")
    columns = [Column("dataset", number=False), *map(Column, ("label rate", *names))]
    text = (
        "The project's own goals: an accuracy for each dataset at some label rates, limits to how far the "
        "model may be behind the best other, and limits to what smaller budgets may cost."
    )
    caption = "A goal is reached where mean + 1 standard error reaches it. Bold: missed."
    blocks: list[Block] = [Text(text), Table(caption, columns, rows), Points(budgets)]
    if content["protocol"]["rehearsal"]:
        blocks.insert(
            0, Text("A rehearsal: fewer runs than declared (--runs), so nothing here is to be relied on.")
        )
    return Section("The project's goals, and what is reached", blocks)


def _against(content: Content, drawn: Drawn) -> Section:
    rows = [(row, _reached(row)) for row in content["against_best"]]
    blocks: list[Block] = [
        Text(
            "The best other is chosen in hindsight, on each dataset and label rate, among the eight tuned "
            "methods and FESL-c: a choice that nobody has beforehand, and that favours the others where "
            "they are close to each other."
        ),
        Figure(
            [_svg(drawn, "against-best", "paired differences to the best other, with intervals")],
            "Difference to the best other on the same streams, with its 95 % interval (Student's t over "
            "runs; an arrowhead where it goes on). Right of zero the default model is ahead. Dotted: the "
            "goal's limit; dashed, where it appears: the wider one that holds on some datasets against "
            "the paper's methods. Red crosses: goal missed.",
        ),
        _differences("The same as numbers. Bold: goal missed.", rows, other="best other", last="reached"),
    ]
    return Section("Against the best other", blocks)


def _accuracy(content: Content, drawn: Drawn) -> Section:
    datasets = _datasets(content)
    rows: list[list[Cell | str]] = []
    for label_rate in content["protocol"]["label_rates"]:
        means = {
            method: [mean_of(content, dataset, label_rate, method) for dataset in datasets]
            for method in (OURS, *OTHERS)
        }
        columns_of = zip(*means.values(), strict=True)
        tops = [max(value for value in column if value is not None) for column in columns_of]
        for method, values in means.items():
            if any(value is not None for value in values):
                cells = [
                    Cell("" if value is None else score(value), best=value == top)
                    for value, top in zip(values, tops, strict=True)
                ]
                rows.append([f"{label_rate:g}" if method == OURS else "", _shown(method), *cells])
    columns = [Column("label rate", number=False), Column("method", number=False), *map(Column, datasets)]
    caption = (
        "Mean accuracy; bold: the best of a column at a label rate. River's learners and the refits have "
        "fewer runs, so that their means are over other streams: for them, see the paired differences."
    )
    pairs = _pairs(
        drawn,
        [f"rates-{name}" for name in datasets],
        "accuracy by label rate",
        "Accuracy by label rate on {}. Short black lines: goals. River's learners "
        "and the refits are means over fewer runs. Look at the left: few labels.",
    )
    return Section("Accuracy by label rate", [*pairs, Table(caption, columns, rows)])


def _losses(content: Content) -> Section:
    rows = [(row, Cell("yes" if row["clear"] else "", best=row["clear"])) for row in content["losses"]]
    compared = len(content["differences"])
    return Section(
        "Where it loses",
        [
            Text(
                f"Every place where another is ahead on the mean of the runs that both have: {len(rows)} of "
                f"{compared} comparisons. Clear: the 95 % interval, over three runs or more, excludes zero."
            ),
            _differences("The largest distance first.", rows, other="who is ahead", last="clear"),
            _all_differences(content),
        ],
    )


def _differences(
    caption: str, rows: Sequence[tuple[Mapping[str, Any], Cell]], *, other: str, last: str
) -> Table:
    """Return a table of paired differences, each with a last cell of its own."""
    names = ("dataset", "label rate", other, "difference", "95 % interval", "runs", last)
    columns = [Column(name, number=name not in ("dataset", other)) for name in names]
    cells = [
        [row["dataset"], rate(row), ahead(row), signed(row["mean"]), interval(row), f"{row['runs']}", mark]
        for row, mark in rows
    ]
    return Table(caption, columns, cells)


def _reached(row: Mapping[str, Any]) -> Cell:
    return Cell("yes" if row["holds"] else "NO", best=not row["holds"])


def _all_differences(content: Content) -> Table:
    others = [name for name in OTHERS if any(row["other"] == name for row in content["differences"])]
    found: dict[tuple[str, str], dict[str, Cell]] = {}
    for row in content["differences"]:
        cell = Cell(signed(row["mean"]), best=row["clear"])
        found.setdefault((row["dataset"], rate(row)), {})[row["other"]] = cell
    rows = [[*key, *(cells.get(name, "") for name in others)] for key, cells in found.items()]
    caption = (
        "All paired differences in accuracy, SF2EL minus the other, on the streams that both were run on; "
        "positive where SF2EL is ahead. Bold: clear."
    )
    columns = [Column("dataset", number=False), Column("label rate"), *map(Column, others)]
    return Table(caption, columns, rows)


def _few_labels(content: Content, drawn: Drawn) -> Section:
    if not content["few_labels"]["problems"]:
        return Section(TITLES["few-labels"], [Text(NOT_RUN)])
    columns = [Column(name, number=name not in ("dataset", "space")) for name in FEW_TITLES]
    rows: list[list[Cell | str]] = [
        [*cells[:-1], Cell(cells[-1], best=cells[-1] == "BEHIND")]
        for cells in few_labels_cells(content["few_labels"])
    ]
    return Section(
        TITLES["few-labels"],
        [
            Text(few_labels_text(content).replace("`", "")),
            Text(few_labels_said(content)),
            Figure(
                [_svg(drawn, "few-labels", "paired differences to logistic regression, with intervals")],
                "Difference to logistic regression on the same streams, with its 95 % interval (an arrowhead "
                "where it goes on). Right of zero the default model is ahead. Red crosses: behind by more "
                "than 2 standard errors.",
            ),
            Table("Means over runs; differences are paired.", columns, rows),
        ],
    )


def _budgets(content: Content, drawn: Drawn) -> Section:
    datasets = _datasets(content)
    rows = [
        [
            f"{row['budget'] // KIB}",
            *(signed(row["by_dataset"][name]) if name in row["by_dataset"] else "" for name in datasets),
            signed(row["mean"]),
        ]
        for row in content["budgets"]
    ]
    full = content["protocol"]["budget"] // KIB
    caption = f"Difference to {full} KiB, mean over label rates; empty where the budget is too small."
    columns = [Column("KiB"), *map(Column, datasets), Column("mean")]
    pairs = _pairs(
        drawn, [f"budgets-{name}" for name in datasets], "accuracy by budget", "Accuracy by budget on {}."
    )
    said = [f"{row['dataset']}, {row['budget'] // KIB} KiB: {row['said']}" for row in content["refused"]]
    blocks: list[Block] = [Table(caption, columns, rows), *pairs]
    return Section("Accuracy by budget", [*blocks, Points(said)] if said else blocks)


def _drift(content: Content, drawn: Drawn) -> Section:
    design = content["protocol"]["drift"]
    streams = list(dict.fromkeys(row["stream"] for row in content["drift"]))
    rows: dict[tuple[str, str], list[str]] = {}
    for row in content["drift"]:
        rows.setdefault((row["stream"], rate(row)), []).append(score(row["accuracy"]["mean"]))
    table: list[list[Cell | str]] = [
        [stream, label_rate, *(Cell(one, best=one == max(scores)) for one in scores)]
        for (stream, label_rate), scores in rows.items()
    ]
    forget = [Column(f"forget {value:g}") for value in design["forget"]]
    text = (
        f"Generated streams of {design['rounds']} rounds, {design['features']} features, "
        f"{100 * design['noise']:g} % wrong labels (so that nothing is above {1 - design['noise']:g}). The "
        "class is the side of a plane, bent a little. The plane stays (stationary), turns half a circle from "
        f"the first round to the last (gradual), or is another one, at right angles, after each of "
        f"{design['jumps']} jumps (abrupt). SF2EL(forget=...) makes what was learned uncertain again with "
        "each label; 0, the default, never does."
    )
    caption = (
        "Gain in accuracy over forget = 0 on the {} stream, with 95 % intervals; the same vertical scale for "
        "all. Above zero forgetting pays; on the stationary stream it is what it costs to have it on for "
        "nothing."
    )
    return Section(
        "Concepts that drift: when forgetting pays",
        [
            Text(text),
            *_pairs(drawn, [f"drift-{name}" for name in streams], "gain from forgetting", caption),
            Table(
                "Accuracy over all rounds. Bold: the best of a row.",
                [Column("stream", number=False), Column("label rate"), *forget],
                table,
            ),
        ],
    )


def _spread(content: Content) -> Section:
    rows = [
        [
            cell["dataset"],
            rate(cell),
            f"{cell['runs']}",
            *(spread_text(**cell[what]) for what in SCORES),
            f"{cell['majority']:.3f}",
            f"{cell['bytes']}",
        ]
        for cell in content["cells"]
        if (cell["method"], cell["budget"]) == (OURS, content["protocol"]["budget"])
    ]
    names = ("label rate", "runs", "accuracy", "balanced accuracy", "larger class", "bytes kept")
    columns = [Column("dataset", number=False), *map(Column, names)]
    caption = "Mean ± standard deviation over runs. Those of all other methods are in default.csv."
    return Section("The model's own numbers", [Table(caption, columns, rows)])


def _protocol(content: Content) -> Section:
    protocol = content["protocol"]
    seeds = [
        f"{_shown(kind)}: " + ", ".join(f"{name} {_range(own)}" for name, own in by_dataset.items())
        for kind, by_dataset in protocol["seeds"].items()
    ]
    points = [
        "T1 = n // 2 rounds with the old features, the last "
        f"{protocol['overlap']} of them with both, then only the new ones. Accuracy over all rounds after "
        "the swap, each predicted before it is learned, with hindsight labels. All get the same streams.",
        "SF2EL gets rows, feature names and the labels that are revealed, and nothing else; it "
        "standardises features online and looks at no later row. No setting differs between datasets.",
        f"The paper's methods: {protocol['paper']['reading']} reading, buffer of "
        f"{protocol['paper']['buffer']} rows, tuned to each dataset at a label rate of .3 on other seeds, "
        "and told the label rate. They keep the protocol's look-aheads: features scaled over the whole set, "
        "kernel widths from the median distances of the first 200 rows of each space.",
        f"{FESL}: logistic regression by stochastic gradient in both spaces, features scaled online, a ridge "
        "map from the overlap, a hedge. Step and constant feature are the best of 21 settings for each "
        f"dataset at a label rate of .3, on seeds 100 to 109. {FESL_BY_RATE}: the same chosen for each label "
        "rate apart, more than any other is given; it is shown, but not part of the goals.",
        "River's learners start at the swap and see only the new features; what they say before their first "
        "label counts as +1, as with the paper's methods. Forest: ARF.",
        f"{CEILING.capitalize()}: logistic regression, RBF-SVM, random forest and kNN of scikit-learn, the "
        "best in hindsight, refit on every label of the new space (the overlap's included) whenever labels "
        f"have grown by {100 * protocol['refit_growth']:g} %. It keeps every row, without a budget; but it "
        "does not know the old space, and so is no bound for those who do.",
        *(f"Not installed, and so left out: {name} ({what})." for name, what in protocol["missing"].items()),
        *(f"Seeds, {line}." for line in seeds),
    ]
    return Section("Protocol", [Points(points)])


def _pairs(drawn: Drawn, names: Sequence[str], what: str, caption: str) -> list[Block]:
    """Return figures two by two; ``caption`` has a place for what they are of."""
    blocks: list[Block] = []
    for first in range(0, len(names), 2):
        pair = names[first : first + 2]
        subjects = [name.split("-", 1)[1] for name in pair]
        panels = [
            _svg(drawn, name, f"{what}: {subject}") for name, subject in zip(pair, subjects, strict=True)
        ]
        order = " (left) and ".join(subjects) + (" (right)" if len(pair) == 2 else "")
        blocks.append(Figure(panels, caption.format(order)))
    return blocks


def _svg(drawn: Drawn, name: str, description: str) -> str:
    return figures.inline_svg(drawn[name], name, description)


def _shown(method: str) -> str:
    names = {OURS: "SF2EL, the default", PAPER: "best of the paper's, tuned", "fesl": "FESL-c"}
    return names.get(method, method)


def _range(seeds: Sequence[int]) -> str:
    return f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"


def _datasets(content: Content) -> list[str]:
    return list(dict.fromkeys(cell["dataset"] for cell in content["cells"]))
