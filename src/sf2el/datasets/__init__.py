"""The paper's datasets, each with two feature spaces."""

from __future__ import annotations

from sf2el.datasets.dataset import Dataset, DatasetDamaged, DatasetMissing
from sf2el.datasets.download import Fetched, FetchError, fetch
from sf2el.datasets.registry import Status, load, names, read_file, status
from sf2el.datasets.rfid import simulate_rfid
from sf2el.datasets.swiss import spirals, swiss_stream

__all__ = [
    "Dataset",
    "DatasetDamaged",
    "DatasetMissing",
    "FetchError",
    "Fetched",
    "Status",
    "fetch",
    "load",
    "names",
    "read_file",
    "simulate_rfid",
    "spirals",
    "status",
    "swiss_stream",
]
