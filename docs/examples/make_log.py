"""Write sensors.csv: a greenhouse whose four sensors are replaced by five others half-way."""

import csv
import math
import random
from pathlib import Path


def rows():
    """Give (what was read, the truth, whether somebody looked) for 6000 readings."""
    random.seed(7)
    for t in range(6000):
        warm = 15 + 8 * math.sin(t / 40) + random.gauss(0, 3)
        damp = 65 - 0.5 * (warm - 15) + random.gauss(0, 12)
        noise = [random.gauss(0, 1) for _ in range(9)]
        x = {}
        if t < 3000:  # the first generation
            x["temp_a"] = warm + 0.5 * noise[0]
            x["temp_b"] = warm - 1 + 0.7 * noise[1]
            x["hum_a"] = damp + 2 * noise[2]
            x["hum_b"] = 0.9 * damp + 3 * noise[3]
        if t >= 2980:  # the second; 20 readings have both
            x["t1"] = 32 + 1.8 * warm + 0.8 * noise[4]
            x["t2"] = warm / 10 + 0.05 * noise[5]
            x["h1"] = damp / 100 + 0.02 * noise[6]
            x["h2"] = 5 + damp / 4 + 0.5 * noise[7]
            x["dew"] = warm - (100 - damp) / 5 + 0.5 * noise[8]
        truth = "mould" if damp > 62 and 9 < warm < 24 else "dry"
        yield x, truth, random.random() < 0.03


if __name__ == "__main__":
    names = ["temp_a", "temp_b", "hum_a", "hum_b", "t1", "t2", "h1", "h2", "dew", "state"]
    with Path("sensors.csv").open("w", newline="") as file:
        log = csv.DictWriter(file, names)
        log.writeheader()
        for x, truth, looked in rows():
            cells = {name: f"{value:.3f}" for name, value in x.items()}
            log.writerow(cells | {"state": truth if looked else ""})
