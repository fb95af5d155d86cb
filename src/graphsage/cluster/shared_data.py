"""One graph folder for all ranks: each maps its files, so that the machine holds them once."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from graphsage.datasets.dataset import Dataset
from graphsage.datasets.open import load_folder
from graphsage.errors import DataError
from graphsage.execution.ranks import Ranks
from graphsage.graph.storage import save_graph

SCRATCH = ".graph.part"  # in the run's folder; named as what a killed process leaves behind


def share_data(
    ranks: Ranks, opened: Callable[[], tuple[Dataset, str]], folder: Path | None, run: Path
) -> tuple[Dataset, str]:
    """What rank 0 has `opened`, a data set and the name of its split, as a graph folder that every rank maps.

    That is `folder` where the data is one. Other data is written once, below `run`, and removed when all have it open.
    """
    mine: list[Dataset] = []

    def prepare() -> bytes:
        data, name = opened()
        place = folder
        if place is None:
            split = data.split(name)
            graph, fitted = data.with_features(split)
            place = run / SCRATCH
            save_graph(graph, place, {name: split})
            data = dataclasses.replace(data, graph=graph, plan=None, fitted=fitted)
        mine.append(data)
        return json.dumps({"folder": str(place.absolute()), "split": name}).encode()

    told = json.loads(ranks.first(prepare))
    place = Path(told["folder"])
    try:
        data = load_folder(place)
    except DataError as error:
        mine_alone = DataError(
            f"rank {ranks.rank} cannot open what rank 0 reads ({error}); write the data with `graphsage data convert` "
            "and give every machine a copy in the same place"
        )
        mine_alone.reported = False
        raise mine_alone from error
    if mine:
        data = dataclasses.replace(mine[0], graph=data.graph, splits={**mine[0].splits, **data.splits})
    ranks.any(False)  # everybody has it open
    if folder is None and ranks.rank == 0:
        shutil.rmtree(place, ignore_errors=True)
    return data, told["split"]
