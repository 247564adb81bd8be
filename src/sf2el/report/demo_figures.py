"""The demo's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sf2el.reproduce import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sf2el.reproduce.demo import Demo


def drawings(demo: Demo) -> dict[str, Figure]:
    """Return the demo's figures by name."""
    return {
        "timeline": timeline(overlap=demo.overlap, rounds=demo.rounds, features=demo.features),
        "old-space": figures.memory_map(
            demo.old_space, xlabel="old sensor 1 (scaled to 0–1)", ylabel="old sensor 2 (scaled to 0–1)"
        ),
        "new-space": figures.memory_map(
            demo.new_space, xlabel="new sensors, first principal axis", ylabel="second principal axis"
        ),
        "risk": figures.along_rounds(demo.risks, ylabel="average risk", least=0.0),
        "weights": figures.along_rounds(
            demo.weights,
            ylabel="weight",
            ylim=(0.0, 1.0),
            labels={"uROGD+MR": "old sensors, recovered (uROGD+MR)", "NOGD+MR": "new sensors (NOGD+MR)"},
        ),
        "buffer-size": figures.by_number(
            demo.accuracies(), xlabel="buffer size (rows)", chance=demo.majority
        ),
    }


def timeline(*, overlap: int, rounds: tuple[int, int], features: tuple[int, int]) -> Figure:
    """Draw which features are read when, and that the old ones are recovered once they are gone."""
    (before, after), last = rounds, sum(rounds)
    old, new = figures.LOOKS["uROGD+MR"].color, figures.LOOKS["NOGD+MR"].color
    with figures.column_axes(1.7) as (figure, axes):
        axes.barh(1, before, color=old, height=0.62)
        axes.barh(1, after, left=before, color="white", edgecolor=old, height=0.62, hatch="//////")
        axes.barh(0, after + overlap, left=before - overlap, color=new, height=0.62)
        plain: dict[str, Any] = {"ha": "center", "va": "center"}
        paper = {"facecolor": "white", "edgecolor": "none", "boxstyle": "square,pad=0.25"}
        axes.text(before / 2, 1, "read", color="white", **plain)
        axes.text(before + after / 2, 1, "recovered", bbox=paper, **plain)
        axes.text(before + after / 2, 0, "read", color="white", **plain)
        axes.annotate(
            f"both read for\n{overlap} rounds",
            (before - overlap / 2, 0.5),
            xytext=(before * 0.66, 0.0),
            arrowprops={"arrowstyle": "-", "color": figures.FAINT, "linewidth": 0.8},
            **plain,
        )
        axes.axvline(before, color=figures.INK, linewidth=0.8, linestyle=":")
        axes.set_yticks([1, 0], [f"{features[0]} old sensors", f"{features[1]} new sensors"])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set(xlabel="round", xlim=(0, last), xticks=[0, before // 2, before, before + after // 2, last])
        return figure
