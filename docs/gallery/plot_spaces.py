"""
What the model makes of features that come and go
=================================================

Five features over 190 rows. Sensor ``b`` fails now and then, and nothing follows from that. At row 80 two
new sensors appear beside the old ones, and at row 100 the old ones are gone: the features have been swapped.
At row 150 the old ones are back, and at row 170 the new ones go.
"""

import random

import matplotlib.pyplot as plt

from sf2el import SF2EL

random.seed(3)
FEATURES = ["a", "b", "c", "u", "v"]
ROWS = 190


def row(t):
    """Return the features that are there at a time."""
    a, b, c = (random.gauss(0, 1) for _ in range(3))
    x = {}
    if t < 100 or t >= 150:
        x |= {"a": a, "b": b, "c": c}
        if random.random() < 0.2:
            del x["b"]
    if 80 <= t < 170:
        x |= {"u": a + b, "v": b - c}
    return x, "up" if a > 0 else "down"


model = SF2EL(budget="16KiB", seed=0)
there = []
for t in range(ROWS):
    x, truth = row(t)
    model.learn_one(x, truth if t % 3 == 0 else None)
    there.append(set(x))

# %%
# Of all events those that are about features:

BEGINS = ("first_space", "opened", "joined", "swapped", "grown", "returned", "closed")
events = [event for event in model.events().last if event.kind in BEGINS]
for event in events:
    print(f"row {event.row:3}, certain in {event.certain:3}: {event.text}")
assert [event.row for event in events] == [0, 80, 100, 151, 170]

# %%
# A bar is a feature that is there. A line is where something began, and a dot the row that made it
# certain.

figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
for place, name in enumerate(FEATURES):
    seen = [t for t in range(ROWS) if name in there[t]]
    color = "#1f5fa8" if name in "abc" else "#d1701f"
    axes.broken_barh([(t, 1) for t in seen], (place - 0.3, 0.6), color=color, lw=0, antialiased=False)
for event in events:
    axes.plot([event.row, event.row], [-0.7, 4.6], color="#444444", lw=1)
    axes.plot(event.certain + 0.45, -0.7, "o", color="#444444", ms=4, clip_on=False)
    word = event.kind.replace("_", " ")
    axes.text(event.row + 0.6, -1.0, word, va="bottom", ha="left", fontsize=10, color="#444444")
axes.set(xlim=(0, ROWS), ylim=(4.6, -1.1), xlabel="row")
axes.set_yticks(range(len(FEATURES)), FEATURES)
axes.spines[["top", "right", "left"]].set_visible(False)
axes.tick_params(axis="y", length=0)
plt.show()
