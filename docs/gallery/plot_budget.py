"""
What memory buys
================

Rings around each other are by turns of one class and the other. Three labels in ten rows are known, and
half-way the two features are replaced by two mixtures of them. More memory lets experts keep more rows, up
to the point where more do not help.
"""

import matplotlib.pyplot as plt
import numpy as np

from sf2el import SF2EL
from sf2el.evaluate import prequential
from sf2el.streams import evolve

KIB = 1024
budgets = [2, 3, 4, 6, 8, 12, 16, 24, 32, 64]


def rings(seed, rows=3000):
    """Return points of the plane, and on which ring each is."""
    X = np.random.default_rng(seed).normal(size=(rows, 2))
    return X, np.where(np.sin(4 * np.hypot(X[:, 0], X[:, 1])) > 0, "even", "odd")


accuracy = np.zeros((len(budgets), 3))
used = np.zeros(len(budgets))
for place, budget in enumerate(budgets):
    for seed in range(accuracy.shape[1]):
        model = SF2EL(budget=budget * KIB, seed=seed)
        stream = evolve(rings(seed), seed=seed, label_rate=0.3)
        found = prequential(model, stream, metrics=["accuracy"])
        accuracy[place, seed] = found.periods[-1].metrics["accuracy"]
        used[place] = max(used[place], model.memory_usage() / KIB)
    assert used[place] <= budget

# %%
# On the left the accuracy after the swap, each dot a stream. On the right what is in use at the end:
# never more than the budget, and less where more would not help.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for axes in (left, right):
    axes.set_xscale("log", base=2)
    axes.set_xticks(budgets, [str(budget) for budget in budgets])
    axes.minorticks_off()
    axes.set_xlabel("budget, KiB")
    axes.spines[["top", "right"]].set_visible(False)
left.plot(budgets, accuracy, "o", color="#1f5fa8", ms=4, alpha=0.5)
left.plot(budgets, accuracy.mean(axis=1), color="#1f5fa8", lw=1.8)
left.set(ylabel="accuracy after the swap", ylim=(0.5, 1.0))
right.plot(budgets, used, "o-", color="#d1701f", lw=3.5, ms=6, alpha=0.6)
right.plot(budgets, budgets, color="#222222", ls=(0, (4, 3)), lw=1.1)
right.text(0.05, 0.94, "dashed: budget", transform=right.transAxes, va="top", color="#222222")
right.text(0.05, 0.84, "in use at the end", transform=right.transAxes, va="top", color="#d1701f")
right.set(ylabel="KiB", ylim=(0, None))
plt.show()

assert accuracy[-1].mean() > accuracy[0].mean() + 0.1
