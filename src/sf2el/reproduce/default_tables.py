"""The study of the default model as JSON, CSV and Markdown; all from the same plain data."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sf2el.reproduce.default_design import KIB
from sf2el.reproduce.default_study import CEILING, OTHERS, OURS, PAPER
from sf2el.reproduce.statistics import spread_text
from sf2el.storage.atomic import write_text

Content = Mapping[str, Any]
Lines = list[str]

REHEARSAL = "- A REHEARSAL: fewer runs than declared (`--runs`), so nothing here is to be relied on."
NOT_RUN = "Not run: it needs river, which is not installed."
FEW_TITLES = (
    *("dataset", "space", "SF2EL", "logistic", "difference"),
    *("standard error", "95 % interval", "runs", "beyond 2 errors"),
)
SHOWN = {OURS: "**SF2EL, 64 KiB**", PAPER: "best of the paper's, tuned", CEILING: "refit ceiling"}


def write_study(folder: Path, content: Content) -> None:
    """Write ``default`` as JSON, CSV and Markdown."""
    write_text(folder / "default.json", json.dumps(content, indent=1, allow_nan=False) + "\n")
    write_text(folder / "default.csv", as_csv(content["cells"]))
    write_text(folder / "default-runs.csv", runs_csv(content["cells"]))
    write_text(folder / "few-labels.csv", few_labels_csv(content["few_labels"]["problems"]))
    parts = [f"# {content['protocol']['title']}"]
    parts += [f"## {TITLES[name]}\n\n{block(content)}" for name, block in BLOCKS.items()]
    write_text(folder / "default.md", "\n\n".join(parts) + "\n")


def as_csv(cells: Sequence[Mapping[str, Any]]) -> str:
    """Return all cells, a row each."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    plain = ("dataset", "label_rate", "method", "budget", "bytes", "runs", "majority")
    scores = ("accuracy", "balanced_accuracy")
    writer.writerow([*plain, *(f"{score}_{part}" for score in scores for part in ("mean", "std"))])
    for cell in cells:
        numbers = [cell[score][part] for score in scores for part in ("mean", "std")]
        writer.writerow([*(cell.get(key) for key in plain), *numbers])
    return out.getvalue()


def runs_csv(cells: Sequence[Mapping[str, Any]]) -> str:
    """Return the accuracy of every single run, a row each."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    plain = ("dataset", "label_rate", "method", "budget")
    writer.writerow([*plain, "seed", "accuracy"])
    for cell in cells:
        writer.writerows([*(cell[key] for key in plain), *run] for run in cell["seeds"].items())
    return out.getvalue()


def few_labels_csv(problems: Sequence[Mapping[str, Any]]) -> str:
    """Return the problems with few labels, a row each."""
    out = io.StringIO()
    keys = ("dataset", "space", "runs", "accuracy", "logistic", "mean", "standard_error", "low", "high")
    writer = csv.DictWriter(out, keys, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(problems)
    return out.getvalue()


# -- blocks of Markdown, each of which can stand in a page of the documentation


def verdict(content: Content) -> str:
    """Return in words the goals and what is reached; nothing is left out."""
    goals, best = content["targets"], content["against_best"]
    lines = [REHEARSAL] if content["protocol"]["rehearsal"] else []
    lines += [f"- {_share(goals)} goals for the accuracy are reached (mean + 1 standard error)."]
    lines += [
        f"    - missed on {row['dataset']} at a label rate of {rate(row)}: {with_error(row)}, "
        f"goal {score(row['asked'])}"
        for row in goals
        if not row["holds"]
    ]
    lines.append(
        f"- On {_share(best)} pairs of dataset and label rate the mean difference to the best of the paper's "
        "methods and FESL-c is within the goal's limit."
    )
    lines += [
        f"    - missed on {row['dataset']} at a label rate of {rate(row)} against {ahead(row)}: "
        f"{signed(row['mean'])} {interval(row)}, goal {signed(row['limit'])}"
        for row in content["differences"]
        if not row.get("holds", True)
    ]
    for row in content["budgets"]:
        if "limit" in row:
            lines.append(
                f"- {row['budget'] // KIB} KiB against {content['protocol']['budget'] // KIB} KiB: "
                f"{signed(row['mean'])} on average, goal {signed(row['limit'])}: "
                f"{'reached' if row['holds'] else 'MISSED'}."
            )
    if content["few_labels"]["problems"]:
        lines.append(f"- {few_labels_said(content)}")
    return "\n".join(lines)


def accuracy(content: Content) -> str:
    """Return mean accuracies by label rate: the model, all others, and the goals."""
    datasets = _datasets(content)
    lines = _head(["label rate", "", *datasets])
    goals = {(row["label_rate"], row["dataset"]): row for row in content["targets"]}
    for label_rate in content["protocol"]["label_rates"]:
        for method in (OURS, *OTHERS):
            values = [mean_of(content, dataset, label_rate, method) for dataset in datasets]
            if any(value is not None for value in values):
                shown = ["" if value is None else score(value) for value in values]
                first = f"{label_rate:g}" if method == OURS else ""
                lines.append(_line([first, SHOWN.get(method, method), *shown]))
        if any((label_rate, dataset) in goals for dataset in datasets):
            row = [goals.get((label_rate, dataset)) for dataset in datasets]
            shown = ["" if one is None else score(one["asked"]) + _missed(one) for one in row]
            lines.append(_line(["", "goal", *shown]))
    return "\n".join(lines)


def spread(content: Content) -> str:
    """Return mean, standard deviation and balanced accuracy of the model."""
    lines = _head(["dataset", "label rate", "runs", "accuracy", "balanced accuracy", "larger class"])
    for cell in content["cells"]:
        if (cell["method"], cell["budget"]) == (OURS, content["protocol"]["budget"]):
            row = [cell["dataset"], rate(cell), str(cell["runs"])]
            row += [spread_text(**cell[what]) for what in SCORES]
            lines.append(_line([*row, f"{cell['majority']:.3f}"]))
    return "\n".join(lines)


def differences(content: Content) -> str:
    """Return the paired differences to the best of the paper's methods and FESL-c."""
    lines = _head(["dataset", "label rate", "best other", "difference", "95 % interval", "runs", ""])
    for row in content["against_best"]:
        mark = "" if row["holds"] else "MISSED"
        numbers = [signed(row["mean"]), interval(row), str(row["runs"]), mark]
        lines.append(_line([row["dataset"], rate(row), ahead(row), *numbers]))
    return "\n".join(lines)


def losses(content: Content) -> str:
    """Return every place where another is ahead on the mean."""
    if not content["losses"]:
        return "No other is ahead on the mean anywhere."
    lines = _head(["dataset", "label rate", "ahead", "difference", "95 % interval", "runs"])
    for row in content["losses"]:
        numbers = [signed(row["mean"]), interval(row), str(row["runs"])]
        lines.append(_line([row["dataset"], rate(row), ahead(row), *numbers]))
    return "\n".join(lines)


def budgets(content: Content) -> str:
    """Return what each budget costs against that of the comparisons."""
    datasets = _datasets(content)
    lines = _head(["KiB", *datasets, "mean", "goal"])
    for row in content["budgets"]:
        gaps = [signed(row["by_dataset"][name]) if name in row["by_dataset"] else "" for name in datasets]
        goal = signed(row["limit"]) + _missed(row) if "limit" in row else ""
        lines.append(_line([f"{row['budget'] // KIB}", *gaps, signed(row["mean"]), goal]))
    said = [f"{row['dataset']}, {row['budget'] // KIB} KiB: {row['said']}" for row in content["refused"]]
    return "\n".join([*lines, "", *said]).rstrip()


def few_labels(content: Content) -> str:
    """Return the model beside logistic regression after a few labels: what was run, and what came of it."""
    found = content["few_labels"]
    if not found["problems"]:
        return NOT_RUN
    lines = [few_labels_text(content), "", *_head(FEW_TITLES)]
    lines += [_line(cells) for cells in few_labels_cells(found)]
    return "\n".join([*lines, "", few_labels_said(content)])


def few_labels_cells(found: Mapping[str, Any]) -> list[Lines]:
    """Return the table of the problems and of their mean."""
    return [
        [
            row.get("dataset", "mean"),
            row.get("space", ""),
            score(row["accuracy"]),
            score(row["logistic"]),
            signed(row["mean"]),
            "" if row["standard_error"] is None else f"{row['standard_error']:.4f}".removeprefix("0"),
            interval(row),
            str(row["runs"]),
            "BEHIND" if row["behind"] else "ahead" if row["ahead"] else "",
        ]
        for row in [*found["problems"], found["mean"]]
    ]


def few_labels_text(content: Content) -> str:
    """Return what the runs with few labels are."""
    few, budget = content["protocol"]["few_labels"], content["protocol"]["budget"] // KIB
    return (
        "Each dataset's old and its new space are a stream of their own, without a change of features: rows "
        f"in random order, at most {few['rows']}, each labelled with probability {few['label_rate']:g}, up "
        f"to label {few['most'] + 1}. Accuracy is over the rows before which {few['least']} to {few['most']} "
        f"labels had been seen. `SF2EL(budget='{budget}KiB', classes=[-1, 1])` stands beside river's "
        "`StandardScaler() | LogisticRegression()`, both as they come. Both scale features by all rows so "
        "far, labelled or not, and get the same labels. SF2EL is given the classes because logistic "
        "regression knows both of them before the first label too. The mean's interval is over runs of these "
        "problems, not over other problems."
    )


def few_labels_said(content: Content) -> str:
    """Return in a sentence on how many problems the model is behind logistic regression, and ahead of it."""
    few, problems = content["protocol"]["few_labels"], content["few_labels"]["problems"]
    behind, before = (sum(row[side] for row in problems) for side in ("behind", "ahead"))
    return (
        f"With {few['least']} to {few['most']} labels seen, the default is behind online logistic regression "
        f"by more than 2 standard errors on {behind} of {len(problems)} problems, and ahead of it by more "
        f"than 2 on {before}; the mean difference is {signed(content['few_labels']['mean']['mean'])}."
    )


def drift(content: Content) -> str:
    """Return accuracy by stream, label rate and rate of forgetting."""
    forget = content["protocol"]["drift"]["forget"]
    lines = _head(["stream", "label rate", *(f"forget {value:g}" for value in forget)])
    found: dict[tuple[str, str], Lines] = {}
    for row in content["drift"]:
        found.setdefault((row["stream"], rate(row)), []).append(score(row["accuracy"]["mean"]))
    lines += [_line([*key, *scores]) for key, scores in found.items()]
    return "\n".join(lines)


def left_out(content: Content) -> str:
    """Return what could not be run for want of a package."""
    missing = content["protocol"]["missing"]
    if not missing:
        return "Nothing was left out."
    return "\n".join(f"- Without {name}: {what} left out." for name, what in missing.items())


SCORES = ("accuracy", "balanced_accuracy")
BLOCKS = {
    "verdict": verdict,
    "accuracy": accuracy,
    "differences": differences,
    "losses": losses,
    "few-labels": few_labels,
    "budgets": budgets,
    "drift": drift,
    "spread": spread,
    "left-out": left_out,
}
"""What can be put into a page, by name."""
TITLES = {
    "verdict": "The project's goals, and what is reached",
    "accuracy": "Mean accuracy (methods with fewer runs: see the differences)",
    "differences": "Paired differences to the best of the paper's methods and FESL-c",
    "losses": "Where another is ahead on the mean",
    "few-labels": "After a few labels, beside online logistic regression",
    "budgets": "Difference to the budget of the comparisons, mean over label rates",
    "drift": "Accuracy on streams whose concept drifts",
    "spread": "The model's accuracy and balanced accuracy, mean and standard deviation",
    "left-out": "Left out",
}


def mean_of(content: Content, dataset: str, label_rate: float, method: str) -> float | None:
    """Return a method's mean accuracy; the best of several by name."""
    if method in (PAPER, CEILING):
        names = [
            row["method"]
            for row in content["differences"]
            if (row["dataset"], row["label_rate"], row["other"]) == (dataset, label_rate, method)
        ]
        if not names:
            return None
        method = names[0]
    wanted = [dataset, label_rate, method, content["protocol"]["budget"] if method == OURS else None]
    for cell in content["cells"]:
        if [cell[key] for key in ("dataset", "label_rate", "method", "budget")] == wanted:
            mean: float = cell["accuracy"]["mean"]
            return mean
    return None


def _datasets(content: Content) -> list[str]:
    return list(dict.fromkeys(cell["dataset"] for cell in content["cells"]))


def _share(rows: Sequence[Mapping[str, Any]]) -> str:
    return f"{sum(row['holds'] for row in rows)} of {len(rows)}"


def _missed(row: Mapping[str, Any]) -> str:
    return "" if row["holds"] else " (missed)"


def _head(titles: Sequence[str]) -> Lines:
    return [_line(titles), "|" + " --- |" * len(titles)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def score(value: float) -> str:
    """Return a score to read.

    >>> score(0.8404), score(1.0)
    ('.840', '1.000')
    """
    return f"{value:.3f}".removeprefix("0")


def signed(value: float) -> str:
    """Return a difference to read.

    >>> signed(-0.0051), signed(0.012), signed(-1e-9)
    ('-.0051', '+.0120', '.0000')
    """
    shown = f"{value:+.4f}".replace("0.", ".", 1)
    return shown[1:] if float(shown) == 0.0 else shown


def rate(row: Mapping[str, Any]) -> str:
    """Return a row's label rate to read."""
    return f"{row['label_rate']:g}"


def ahead(row: Mapping[str, Any]) -> str:
    """Return whom a difference is to; files of old have the paper's methods without the mark."""
    method = str(row["method"])
    return f"{method} (paper)" if row["other"] == PAPER and not method.endswith("(paper)") else method


def with_error(row: Mapping[str, Any]) -> str:
    """Return a mean with its standard error to read; a single run has none."""
    error = row["standard_error"]
    return score(row["mean"]) + ("" if error is None else f" ± {error:.4f}")


def interval(row: Mapping[str, Any]) -> str:
    """Return a row's interval to read; a single run has none."""
    return "" if row["low"] is None else f"[{signed(row['low'])}, {signed(row['high'])}]"
