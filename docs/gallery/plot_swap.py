"""
The sensors are replaced
========================

A greenhouse is watched by four sensors. At row 3000 they are replaced by five others of another make; for
the 20 rows before that both report. Three rows in a hundred have a label. One model sees the whole stream.
Another one starts when the new sensors are alone, as one would have to do without a map from the new ones to
the old.
"""

import math
import random

import matplotlib.pyplot as plt
import numpy as np

from sf2el import SF2EL

ROWS, SWAP, OVERLAP = 6000, 3000, 20


def readings(seed):
    """Give what is read in each row, the truth, and whether somebody looked."""
    draw = random.Random(seed)
    for t in range(ROWS):
        warm = 15 + 8 * math.sin(t / 40) + draw.gauss(0, 3)
        damp = 65 - 0.5 * (warm - 15) + draw.gauss(0, 12)
        old = {"temp_a": warm, "temp_b": warm - 1, "hum_a": damp, "hum_b": 0.9 * damp}
        new = {
            "t1": 32 + 1.8 * warm,
            "t2": warm / 10,
            "h1": damp / 100,
            "h2": 5 + damp / 4,
            "dew": warm + damp / 5,
        }
        x = (old if t < SWAP else {}) | (new if t >= SWAP - OVERLAP else {})
        noisy = {name: value * (1 + draw.gauss(0, 0.02)) for name, value in x.items()}
        yield noisy, "mould" if damp > 62 and 9 < warm < 24 else "dry", draw.random() < 0.03


# %%
# Every row is predicted first and learned then. Ten streams are averaged, so that the curves are smooth
# enough to read.

RUNS = 10
carried, fresh = np.zeros(ROWS), np.full(ROWS, np.nan)
fresh[SWAP:] = 0.0
for seed in range(RUNS):
    model, newcomer = SF2EL(budget="16KiB", seed=seed), SF2EL(budget="16KiB", seed=seed)
    for t, (x, truth, looked) in enumerate(readings(seed)):
        carried[t] += (model.predict_one(x) == truth) / RUNS
        model.learn_one(x, truth if looked else None)
        if t >= SWAP:
            fresh[t] += (newcomer.predict_one(x) == truth) / RUNS
            newcomer.learn_one(x, truth if looked else None)
    assert model.memory_usage() <= 16 * 1024

# %%
# The accuracy of the last 100 rows, over time:

WINDOW = 100


def moving(values):
    """Return the mean of each window."""
    return np.convolve(values, np.ones(WINDOW) / WINDOW, mode="valid")


figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
rows = np.arange(WINDOW, ROWS + 1)
axes.plot(rows, moving(carried), color="#1f5fa8", lw=1.8)
axes.plot(np.arange(SWAP + WINDOW, ROWS + 1), moving(fresh[SWAP:]), color="#d1701f", lw=1.8)
axes.axvline(SWAP, color="#888888", lw=1, ls="--")
axes.text(SWAP - 60, 0.975, "four old sensors", ha="right", color="#555555")
axes.text(SWAP + 60, 0.975, "five new sensors", ha="left", color="#555555")
axes.text(2000, 0.83, "one model, all along", ha="center", color="#1f5fa8")
axes.text(4000, 0.74, "starts again at the swap", ha="left", color="#d1701f")
axes.set(xlim=(0, ROWS), ylim=(0.5, 1.0), xlabel="row", ylabel=f"accuracy, last {WINDOW} rows")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# In the first 200 rows after the swap:

after = slice(SWAP, SWAP + 200)
print(f"one model {carried[after].mean():.2f}, starting again {fresh[after].mean():.2f}")
assert carried[after].mean() > fresh[after].mean() + 0.1
