"""The demo's page: what happened, in plain words, with every number taken from the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sf2el.paper.methods import METHODS
from sf2el.report.page import Cell, Column, Facts, Figure, Page, Points, Section, Table, Text
from sf2el.reproduce import figures
from sf2el.reproduce.demo import BUFFER, BUFFERS, HEDGES, READING, TUNING_SEEDS, Demo, Score, Spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Svg = Callable[[str, str], str]

AFTER_THE_SWAP = {
    ("scratch",): "starts afresh",
    ("updating",): "goes on, recovered",
    ("fixed",): "frozen, recovered",
    ("updating", "scratch"): "does both",
}
EARLY = 50
"""The round after the swap whose numbers the text sets beside the last round's."""


def demo_page(demo: Demo, drawn: Mapping[str, Drawing], *, version: str, variant: str) -> Page:
    """Return the page of a demo and its figures."""

    def svg(name: str, description: str) -> str:
        return figures.inline_svg(drawn[name], name, description)

    settings = ", ".join(f"{name} {value}" for name, value in vars(demo.hyperparameters).items())
    return Page(
        title="When the sensors are replaced",
        lead=f"""A device tells two classes apart. Its {demo.features[0]} sensors wear out, and
            {demo.features[1]} of another kind take their place. Only {demo.label_rate:.0%} of what it reads
            comes with the right answer, and a learner has room for {BUFFER} rows. Here is how eight methods
            cope, on the same {_count(demo.runs, "stream")}.""",
        facts=Facts(
            [
                (
                    f"{_accuracy(demo, 'SF2EL'):.1%}",
                    "correct after the swap with SF2EL, which builds on the past",
                ),
                (f"{_accuracy(demo, 'NOGD+MR'):.1%}", "correct with NOGD+MR, which starts afresh"),
                (f"{BUFFER} rows", "of memory for each learner"),
                (f"{demo.overlap} rounds", "in which old and new sensors are both read"),
            ]
        ),
        sections=[
            _stream(demo, svg),
            _memory(demo, svg),
            _comparison(demo),
            _risk(demo, svg),
            _weights(demo, svg),
            _buffer_size(demo, svg),
            _caveats(demo),
        ],
        footer=[
            f"sf2el {version}, {variant} variant; sf2el demo --runs {demo.runs} makes this page again.",
            f"Settings, the same for all methods (reading “{READING}”): {settings}.",
            """Setting and methods: Hou, Yan, Zhao and Zhou, Storage Fit Learning with Feature Evolvable
            Streams, AAAI 2021.""",
        ],
    )


def _stream(demo: Demo, svg: Svg) -> Section:
    before, after = demo.rounds
    text = f"""Rows arrive one at a time. The device first says which class a row belongs to; then, in
        {demo.label_rate:.0%} of the rounds, it learns the truth. The rows lie on two spirals wound into
        each other, one for each class. Naming the larger class every time would be right in
        {demo.majority:.0%} of the rounds after the swap."""
    swap = f"""For {before - demo.overlap} rounds only the old sensors are read, for {demo.overlap} both,
        and for the last {after} only the new. From the {demo.overlap} shared rounds the device learns a
        linear map that says what the old sensors would have read. Their readings are recovered, and what
        was learned from them stays of use."""
    caption = f"""Which sensors are read when. Look at how short the time with both is: {demo.overlap} of
        {before + after} rounds."""
    bars = svg("timeline", "Bars showing in which rounds the old and the new sensors are read.")
    return Section("The stream", [Text(text), Text(swap), Figure([bars], caption)])


def _memory(demo: Demo, svg: Svg) -> Section:
    text = f"""A learner keeps {BUFFER} rows and forgets all others. Chance decides which, so that every row
        it has met, early or late, with a label or without, is equally likely to be kept. What it thinks of
        a new row depends on the remembered rows near it."""
    caption = f"""The two learners of SF2EL at the end of the first run: one on the old sensors, one on the
        new, drawn along the two directions that hold {demo.new_space.variance_kept:.0%} of their variance.
        Dots are rows, coloured by class. White symbols are remembered rows; diamonds are those recovered
        from the new sensors, {demo.old_space.recovered.sum()} of {len(demo.old_space.buffer)}. The colour
        behind is the class the learner would choose, white where it has no opinion. Look for stretches of a
        spiral without a remembered row: they are pale."""
    seen = "the two spirals, the remembered rows and the class the learner would choose"
    panels = [svg("old-space", f"Old sensors: {seen}."), svg("new-space", f"New sensors: {seen}.")]
    return Section("What is remembered", [Text(text), Figure(panels, caption)])


def _comparison(demo: Demo) -> Section:
    text = """After the swap one can start afresh (NOGD), go on with recovered readings and keep learning
        (uROGD) or not (fROGD), or do both and give more weight to whichever does better (FESL-Variant,
        SF2EL). The methods named +MR, and SF2EL, also learn from rows without a label, by asking that rows
        close to each other get similar scores: manifold regularisation."""
    caption = f"""Rounds after the swap, mean ± standard deviation over {_count(demo.runs, "run")}; best in
        bold. Balanced accuracy counts both classes alike. The average risk is what a method tries to keep
        small; learning from all rows adds a part to it, so compare it only among methods that learn from
        the same."""
    columns = [Column("method", number=False)]
    columns += [Column(title) for title in ("accuracy", "balanced accuracy", "average risk")]
    columns += [Column(title, number=False) for title in ("after the swap", "learns from")]
    singles = {name: _accuracy(demo, name) for name, method in METHODS.items() if len(method.experts) == 1}
    single = max(singles, key=lambda name: singles[name])
    gains = ", ".join(f"{_signed(gain.mean)} ({name})" for name, gain in demo.gains.items())
    unclear = sum(not gain.excludes_zero for gain in demo.gains.values())
    reading = f"""SF2EL is right in {_accuracy(demo, "SF2EL"):.1%} of the rounds, the best method with a
        single learner ({single}) in {singles[single]:.1%}. Learning from unlabelled rows as well changes
        the accuracy by {gains}. In {unclear} of {len(demo.gains)} cases the 95% interval of the difference,
        run against run, contains zero: there these runs do not tell whether it helps."""
    return Section("Eight methods", [Text(text), Table(caption, columns, _score_rows(demo)), Text(reading)])


def _score_rows(demo: Demo) -> list[list[Cell | str]]:
    scores = {name: by_buffer[BUFFER] for name, by_buffer in demo.scores.items()}
    return [
        [
            name,
            Cell(show(scores[name].accuracy, demo.runs), is_best(name, scores, "accuracy")),
            Cell(show(scores[name].balanced_accuracy, demo.runs), is_best(name, scores, "balanced_accuracy")),
            show(scores[name].average_risk, demo.runs),
            AFTER_THE_SWAP[method.experts],
            "all rows" if method.manifold else "labelled rows",
        ]
        for name, method in METHODS.items()
    ]


def _risk(demo: Demo, svg: Svg) -> Section:
    def at(name: str, place: int) -> str:
        return f"{demo.risks[name].mean[place]:.2f}"

    text = """The risk of a round says how badly it went: how wrong a labelled row was, how rough the
        learned function is, and how differently it treats rows that are close to each other."""
    caption = f"""Average risk from the swap up to each round, for the methods that learn from all rows:
        mean over runs, and a band of one standard deviation. The very first rounds leave the frame. Look at
        the left: {EARLY} rounds after the swap NOGD+MR, which started afresh, is at
        {at("NOGD+MR", EARLY - 1)}, and uROGD+MR, which went on with recovered readings, at
        {at("uROGD+MR", EARLY - 1)}. At the end they are at {at("NOGD+MR", -1)} and {at("uROGD+MR", -1)},
        and SF2EL at {at("SF2EL", -1)}."""
    curves = svg("risk", "Average risk of four methods in the rounds after the swap.")
    return Section("Risk along the stream", [Text(text), Figure([curves], caption)])


def _weights(demo: Demo, svg: Svg) -> Section:
    text = """SF2EL adds up the opinions of its two learners. Both start with the same weight, and a learner
        loses weight with the risk it runs up. Nobody has to know beforehand which one will be better."""
    final = {name: band.mean[-1] for name, band in demo.weights.items()}
    caption = f"""Weight of each learner: mean over runs, and a band of one standard deviation. Look at
        which way they part: in the last round the learner on recovered readings has
        {final["uROGD+MR"]:.2f}, the one on the new sensors {final["NOGD+MR"]:.2f}."""
    about_regret = f"""Regret: the risk that the combination summed up over {demo.rounds[1]} rounds, less
        that of its better learner, mean over runs; and two ceilings that theory puts above it, one computed
        from these very risks, the other from the largest of them alone."""
    columns = [Column("method", number=False)]
    columns += [
        Column(title)
        for title in ("regret", "ceiling, these risks", "ceiling, largest risk", "runs below both")
    ]
    curves = svg("weights", "Weights of SF2EL's two learners in the rounds after the swap.")
    return Section(
        "Which learner counts",
        [Text(text), Figure([curves], caption), Table(about_regret, columns, _regret_rows(demo))],
    )


def _regret_rows(demo: Demo) -> list[list[str]]:
    rows = []
    for name in HEDGES:
        runs = [(run.regret, run.certificate, run.bound) for run in demo.regrets[name]]
        below = sum(regret <= min(ceilings) for regret, *ceilings in runs)
        means = [f"{sum(column) / len(runs):.1f}" for column in zip(*runs, strict=True)]
        rows.append([name, *means, f"{below} of {len(runs)}"])
    return rows


def _buffer_size(demo: Demo, svg: Svg) -> Section:
    accuracies = demo.accuracies()
    small, large = (accuracies["SF2EL"][size].mean for size in (BUFFERS[0], BUFFERS[-1]))
    text = """The same streams with less memory. A kernel learner knows only the neighbourhood of the rows
        it keeps, so with few of them parts of the spirals stay unknown to it."""
    caption = f"""Accuracy by the number of rows each learner may keep: mean over runs, with bars of one
        standard deviation. Look at how soon the curve flattens. SF2EL goes from {small:.1%} with
        {BUFFERS[0]} rows to {large:.1%} with {BUFFERS[-1]}."""
    columns = [Column("method", number=False), *(Column(f"{size} rows") for size in BUFFERS)]
    rows = [
        [name, *(show(spread, demo.runs) for spread in sizes.values())] for name, sizes in accuracies.items()
    ]
    table = Table("The same in numbers: accuracy, mean ± standard deviation over runs.", columns, rows)
    curves = svg("buffer-size", "Accuracy of FESL-Variant and SF2EL by buffer size.")
    return Section("How much memory it takes", [Text(text), Figure([curves], caption), table])


def _caveats(demo: Demo) -> Section:
    points = [
        """The experiment looks ahead twice, as the paper's protocol does: the old readings are scaled by
        their smallest and largest value in the whole set, and the kernels' widths come from the first 200
        rows of each space.""",
        f"""The settings were tuned for SF2EL's accuracy on other seeds, {TUNING_SEEDS[0]} to
        {TUNING_SEEDS[-1]}; the runs here have seeds from 0 to {demo.runs - 1}. All eight methods share the
        settings.""",
        """Every run has the same points and the same new sensors. What differs is the order of the rows,
        which of them have a label, and which are remembered. The ± is about these, and says nothing of
        other data.""",
        f"""FESL-Variant and SF2EL run two learners, each with its own {BUFFER} rows; the other methods run
        one.""",
        "Accuracy counts all rounds after the swap, also those whose label the device never saw.",
    ]
    return Section("Before you rely on these numbers", [Points(points)])


def show(spread: Spread, runs: int) -> str:
    """Return a spread to read; one run has none.

    >>> show(Spread(0.9938, 0.0041), 10), show(Spread(0.9938, 0.0), 1)
    ('0.994 ± 0.004', '0.994')
    """
    return f"{spread.mean:.3f} ± {spread.std:.3f}" if runs > 1 else f"{spread.mean:.3f}"


def is_best(name: str, scores: Mapping[str, Score], field: str) -> bool:
    """Whether no other method is better, in the digits that are shown."""
    shown = {other: f"{getattr(score, field).mean:.3f}" for other, score in scores.items()}
    return float(shown[name]) == max(float(text) for text in shown.values())


def _signed(gain: float) -> str:
    """Return a gain with its sign, a true minus, and none where it rounds to 0."""
    return f"{gain:+.3f}".replace("-", "−") if round(gain, 3) else "0.000"


def _accuracy(demo: Demo, name: str) -> float:
    return demo.scores[name][BUFFER].accuracy.mean


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
