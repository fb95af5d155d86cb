"""Splits of tables: a column that says so, or moments in time."""

import torch
from torch import Tensor

from graphsage.datasets.table_spec import TableSpec
from graphsage.datasets.table_time import TimeScale
from graphsage.errors import ConfigError, DataError
from graphsage.features.recipe import Column
from graphsage.features.values import shown
from graphsage.graph.split import NONE, TEST, TRAIN, VAL, Split

WORDS = {"train": TRAIN, "training": TRAIN, "val": VAL, "valid": VAL, "validation": VAL, "test": TEST, "": NONE}


def read_split(column: Column, name: str) -> Split:
    """train, val (valid, validation) or test in each row; empty: in no part."""
    codes = []
    for row, value in enumerate(column, 1):
        word = "" if value is None or value != value else str(value).strip().lower()
        if word not in WORDS:
            raise DataError(f"column {name!r} row {row} is {shown(value)}; a split column holds train, val and test")
        codes.append(WORDS[word])
    if TRAIN not in codes:
        raise DataError(f"column {name!r} puts no row into train")
    return Split(torch.tensor(codes, dtype=torch.uint8))


def time_split(time: Tensor, scale: TimeScale, spec: TableSpec) -> Split:
    """By `train_until` and `val_until`, or by fractions of the nodes."""
    if spec.train_until is None:
        return Split.by_time(time, spec.fractions)
    train_end = scale.until(spec.train_until, "train_until")
    val_end = train_end if spec.val_until is None else scale.until(spec.val_until, "val_until")
    if val_end < train_end:
        raise ConfigError(f"val_until ({spec.val_until}) is before train_until ({spec.train_until})")
    if not bool((time <= train_end).any()):
        raise DataError(f"no node is from {spec.train_until} or before: there is nothing to train on")
    return Split.at_times(time, train_end, val_end)
