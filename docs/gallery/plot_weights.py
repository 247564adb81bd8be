"""
Which experts the model follows
===============================

Right after a swap the experts of the new features know nothing, and those of the old features go on with
what a map recovers from the new ones. Here the new sensors are better than the old: two measure the same
with less noise, and a third one reads more directly what matters. A map cannot bring that to the old experts.
So the weights move from the recovered experts to the current ones as labels come.
"""

import random

import matplotlib.pyplot as plt
import numpy as np

from sf2el import SF2EL

ROWS, SWAP, OVERLAP = 5000, 1500, 15


def stream(seed):
    """Give rows and labels."""
    draw = random.Random(seed)
    for t in range(ROWS):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        old = {"a": a + draw.gauss(0, 0.3), "b": b + draw.gauss(0, 0.3)}
        new = {"x": a + b, "y": a - b, "z": a * a + b * b}
        x = (old if t < SWAP else {}) | (new if t >= SWAP - OVERLAP else {})
        yield x, "in" if a * a + b * b < 1.4 else "out"


runs = []
for seed in range(5):
    model, followed = SF2EL(budget="32KiB", seed=seed), []
    for t, (x, truth) in enumerate(stream(seed)):
        model.learn_one(x, truth if t % 10 == 0 else None)
        if t >= SWAP:
            followed.append(model.weights().get("recovered", 0.0))
    runs.append(followed)
runs = np.array(runs)

# %%
# The weight of all recovered experts together, from the swap on:

figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
rows = np.arange(SWAP, ROWS)
axes.plot(rows, runs.T, color="#1f5fa8", lw=0.8, alpha=0.4)
axes.plot(rows, runs.mean(axis=0), color="#1f5fa8", lw=2)
axes.set_title("thin: five streams; thick: their mean", loc="right", fontsize=10, color="#555555")
axes.set(xlabel="row", ylabel="weight of recovered experts", ylim=(0, 1), xlim=(SWAP, ROWS))
axes.spines[["top", "right"]].set_visible(False)
plt.show()

assert runs[:, 0].mean() > 0.5 > runs[:, -1].mean()
