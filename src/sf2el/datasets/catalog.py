"""The seven datasets of the paper: what each is, which files hold it, and where those are published."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from sf2el.datasets.dataset import Floats, Spaces, min_max
from sf2el.datasets.entry import DataFile, Entry, Part, Remote
from sf2el.datasets.parsing import read_credit, read_labelled, read_libsvm, read_spaces
from sf2el.datasets.rfid import simulate_rfid
from sf2el.datasets.swiss import spirals
from sf2el.streams import random_matrix

MATRIX_SEED = 0
"""Seed of the one Uniform(0, 1) matrix W of every dataset whose new space is S1 W."""


def two_spaces(rows: tuple[Floats, Floats], d2: int) -> Spaces:
    """Return S1 = the rows scaled to [0, 1] and S2 = S1 W, with the same W whenever this is called."""
    X, y = rows
    old = min_max(X)
    matrix = random_matrix(old.shape[1], d2, "uniform", np.random.default_rng(MATRIX_SEED))
    return Spaces(old, np.asarray(old @ matrix), y)


def _raw(path: str, read: Callable[[Path], tuple[Floats, Floats]], d2: int, note: str = "") -> DataFile:
    made = f"S1 scaled to [0, 1] over all rows, S2 = S1 W with W ~ Uniform(0, 1), seed {MATRIX_SEED}"
    return DataFile(path, lambda file: two_spaces(read(file), d2), f"{note}{made}")


def _ready(name: str) -> DataFile:
    return DataFile(
        f"fesl-preprocessed/{name}.csv",
        partial(read_spaces, old="X1_f", new="X2_f", order="perm_"),
        "S1, S2 and ten stream orders as published with FESL (GitHub ZW-SIYUAN/OpenMOA_test)",
    )


def _ready_remote(name: str, sha256: str) -> Remote:
    path = f"fesl-preprocessed/{name}.csv"
    return Remote(path, (Part("fesl", f"{name}.csv"),), sha256, required=False)


def _user_file(path: Path) -> Spaces:
    spaces = read_spaces(path)
    return spaces._replace(old=min_max(spaces.old), new=min_max(spaces.new))


_NOT_PUBLISHED = "not the S2 and the stream orders published with FESL; "
_UCI = "CC BY 4.0, as the UCI repository commonly lists it (not verified)"

CATALOG: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            name="credit-a",
            rows=653,
            positives=357,
            d1=15,
            d2=10,
            description="Credit card applications, complete rows only; the file's - is +1, its + is -1.",
            citation="J. R. Quinlan, Credit Approval, UCI Machine Learning Repository, 1987.",
            licence=_UCI,
            files=(
                _ready("credit-a"),
                _raw("credit-a/crx.data", read_credit, 10, _NOT_PUBLISHED + "nominals as in crx.names; "),
            ),
            remotes=(
                Remote(
                    "credit-a/crx.data",
                    (Part("uci", "27/credit+approval.zip", "crx.data"),),
                    "fff49bc186cbddb3ace7371d40d9fbbb3af4f126019c13ff3f562249b1454f4d",
                ),
                _ready_remote("credit-a", "30bf7e0cd9e95a48ec1645e9c0f6f064845b8a4cdc48c0e649da7383e0d0d2a8"),
            ),
        ),
        Entry(
            name="diabetes",
            rows=768,
            positives=268,
            d1=8,
            d2=5,
            description="Pima Indian women; diabetes (+1) or not (-1). Zeros stand for values not measured.",
            citation="J. W. Smith et al., Using ADAP to Forecast the Onset of Diabetes Mellitus, 1988.",
            licence="no licence text with the file",
            files=(
                _ready("diabetes"),
                _raw(
                    "diabetes/pima-indians-diabetes.csv",
                    partial(read_labelled, features=8, labels={"1": 1.0, "0": -1.0}),
                    5,
                    _NOT_PUBLISHED,
                ),
            ),
            remotes=(
                Remote(
                    "diabetes/pima-indians-diabetes.csv",
                    (Part("brownlee", "pima-indians-diabetes.csv"),),
                    "6bfe5d0f379d17a0e0819b996407e3c09bf80febd4287f2ed212190dfff154af",
                    newline_at_end=False,
                ),
                _ready_remote("diabetes", "e3efc985b2c6b616b3669e618a3296f84e774426917fabf93813a00805a18f56"),
            ),
        ),
        Entry(
            name="svmguide3",
            rows=1284,
            positives=337,
            d1=22,
            d2=15,
            description="Vehicle data of the LIBSVM guide, training and test file; the 41 test rows, all +1, "
            "are copies of training rows, and the last feature is 0 throughout.",
            citation="C.-W. Hsu et al., A Practical Guide to Support Vector Classification, 2003.",
            licence="none stated with the files",
            files=(
                _ready("svmguide3"),
                _raw(
                    "svmguide3/svmguide3_train_test.txt",
                    partial(read_libsvm, features=22),
                    15,
                    _NOT_PUBLISHED,
                ),
            ),
            remotes=(
                Remote(
                    "svmguide3/svmguide3_train_test.txt",
                    (Part("libsvm", "svmguide3"), Part("libsvm", "svmguide3.t")),
                    "6a06c275b8135204d47d8a9527d4cba6c18ed04335d38b45be40d147b154ae02",
                ),
                _ready_remote(
                    "svmguide3", "929569a39030356555a09edf5be99222283d9bbed3e523e677492a274c88110b"
                ),
            ),
        ),
        Entry(
            name="swiss",
            rows=2000,
            positives=1000,
            d1=2,
            d2=3,
            description="Two interleaved spirals, one a class; drawn again, the authors' not being public.",
            citation="B.-J. Hou, Y.-H. Yan, P. Zhao, Z.-H. Zhou, Storage Fit Learning, AAAI 2021.",
            licence="generated",
            make=lambda: Spaces(*spirals()),
            made="generated",
        ),
        Entry(
            name="rfid",
            rows=940,
            positives=514,
            d1=78,
            d2=72,
            description="Simulated signal strengths of moving tags, read by two generations of antennas; "
            "far (+1) or near (-1) half of the hall. Stands in for the paper's RFID data.",
            citation="B.-J. Hou, L. Zhang, Z.-H. Zhou, Learning with Feature Evolvable Streams, NIPS 2017 "
            "(the real data; the rows here are simulated).",
            licence="generated",
            files=(
                DataFile(
                    "rfid/rfid.csv",
                    _user_file,
                    "S1 and S2 of a user's file, scaled to [0, 1] over all rows",
                    "Rows of a user's own two-space file.",
                ),
            ),
            make=simulate_rfid,
            made="simulated",
            simulated=True,
        ),
        Entry(
            name="htru_2",
            rows=17898,
            positives=1639,
            d1=8,
            d2=5,
            description="Candidates of the High Time Resolution Universe Survey; pulsar (+1) or not (-1).",
            citation="R. J. Lyon et al., Fifty Years of Pulsar Candidate Selection, MNRAS 459, 2016.",
            licence=_UCI,
            files=(
                _raw(
                    "htru_2/HTRU_2.csv",
                    partial(read_labelled, features=8, labels={"1": 1.0, "0": -1.0}),
                    5,
                ),
            ),
            remotes=(
                Remote(
                    "htru_2/HTRU_2.csv",
                    (Part("uci", "372/htru2.zip", "HTRU_2.csv"),),
                    "b13b4d8929e96ecd196e464c1c8a454c3ac2ffa631015f6388957531a9923f59",
                    newline="\r",
                    newline_at_end=False,
                ),
            ),
        ),
        Entry(
            name="magic04",
            rows=19020,
            positives=12332,
            d1=10,
            d2=7,
            description="Monte Carlo images of a Cherenkov telescope; gamma (+1) or hadron (-1).",
            citation="R. K. Bock et al., MAGIC Gamma Telescope, UCI Machine Learning Repository, 2004.",
            licence=_UCI,
            files=(
                _raw(
                    "magic04/magic04.data",
                    partial(read_labelled, features=10, labels={"g": 1.0, "h": -1.0}),
                    7,
                ),
            ),
            remotes=(
                Remote(
                    "magic04/magic04.data",
                    (Part("uci", "159/magic+gamma+telescope.zip", "magic04.data"),),
                    "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a",
                ),
            ),
        ),
    )
}
