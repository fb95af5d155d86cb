"""A whole graph through a model, stage by stage: blocks that are there are kept, missing ones are computed."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import torch
from torch import Tensor

from graphsage.errors import ConfigError, DataError, setting
from graphsage.graph.cap import EDGE_BYTES, cap_files
from graphsage.graph.external.csr import CsrFiles
from graphsage.graph.external.row_file import RowFile
from graphsage.graph.external.size import shown_size
from graphsage.graph.graph import Graph
from graphsage.graph.storage import open_graph
from graphsage.inference.embed import kept_features, order_matters
from graphsage.inference.export import Batch, decided_column, embedding_columns, label_column
from graphsage.inference.model import Model, check_identity, input_tables
from graphsage.inference.out_of_core.infer import infer_block
from graphsage.inference.out_of_core.plan import PROCESS_BYTES, Budget, plan_stages
from graphsage.inference.out_of_core.row_sources import CHUNK_ROWS, BlockRows
from graphsage.inference.out_of_core.work import (
    INPUTS,
    WorkFolder,
    graph_identity,
    locked,
    model_identity,
    open_keys,
    write_keys,
    write_structure,
)

Progress = Callable[[int, int], None]


class Executor(Protocol):
    """Runs blocks somewhere. When `run` returns, all of them are done; `on_done(block)` is called for each."""

    slots: int
    """Blocks that run at the same time; each layer is cut into as many at least."""

    def run(self, folder: Path, stage: int, blocks: Sequence[int], on_done: Callable[[int], None]) -> None: ...


class InProcess:
    """One block after the other, here."""

    slots = 1

    def run(self, folder: Path, stage: int, blocks: Sequence[int], on_done: Callable[[int], None]) -> None:
        for block in blocks:
            infer_block(folder, stage, block)
            on_done(block)


@dataclass(frozen=True)
class Embedded:
    """z of every node, in files."""

    work: WorkFolder
    kept: int
    """Blocks that an earlier run had done."""
    damaged: int
    """Blocks that were there but not as they had been written; they were computed again."""

    @property
    def dim(self) -> int:
        return self.work.stages[-1].width

    @property
    def num_nodes(self) -> int:
        return self.work.stages[-1].cuts[-1]

    @property
    def blocks(self) -> int:
        return sum(stage.blocks for stage in self.work.stages)

    def batches(self, rows: int = 4 * CHUNK_ROWS) -> Iterator[tuple[int, Tensor]]:
        """(first row, z of the rows from there on), in order."""
        last = len(self.work.stages) - 1
        table = BlockRows(self.work.blocks(last), self.work.stages[last].cuts, self.dim)
        for start in range(0, self.num_nodes, rows):
            yield start, table.rows(start, min(start + rows, self.num_nodes))


def embed_in_blocks(
    model: Model,
    graph: str | Path,
    work: str | Path,
    *,
    memory: int | None = None,
    budget: Budget | None = None,
    workers: int = 1,
    layer_dtype: str = "float32",
    executor: Executor | None = None,
    on_block: Progress | None = None,
    capped: Path | None = None,
) -> Embedded:
    """z of every node of the graph folder `graph`, exactly, with at most `memory` bytes for all workers together.

    Everything goes to the folder `work`. Where that holds a part of the same work, only what is missing is computed;
    work of another model or graph is refused. `layer_dtype` is the type of the layers between ('float32' or 'float16').
    `budget` says directly how much memory blocks may take. `capped` is a folder with the neighbor lists after the
    degree cap, if they have been drawn already.
    """
    folder, graph = Path(work).absolute(), Path(graph).absolute()
    runs = executor or InProcess()
    with locked(folder):
        plan = _prepared(model, graph, folder, memory, budget, workers, layer_dtype, runs.slots, capped)
        return _computed(plan, runs, on_block)


def _prepared(
    model: Model,
    graph: Path,
    folder: Path,
    memory: int | None,
    budget: Budget | None,
    workers: int,
    layer_dtype: str,
    slots: int,
    capped: Path | None,
) -> WorkFolder:
    opened = open_graph(graph)
    check_identity(model.encoder, opened.num_nodes)
    if model.label_inputs:
        raise DataError(
            f"this model reads the known labels of neighbors ({setting('label_inputs', True)}), which inference in "
            "blocks does not; embed in memory, or train without"
        )
    if opened.weighted or model.encoder.config.weighted:
        raise DataError(
            "the graph or the model has edge weights, which inference in blocks does not read; embed in memory, or "
            f"train without {setting('edge_weight')}"
        )
    if opened.relations or model.encoder.config.relations:
        raise DataError(
            "the graph or the model has several relations, which inference in blocks does not read; embed in memory, "
            f"or train with {setting('direction', 'merged')}, in or out"
        )
    # Only widths are checked; no node is enough for that.
    input_tables(
        opened.replace(indptr=opened.indptr[:1], indices=opened.indices[:0]), model.structure, model.encoder.in_dim
    )
    if memory is None and budget is None:
        raise ConfigError("say how much memory inference may take, such as 4GB")
    each = (memory or 0) // max(workers, 1)
    begun = (folder / "work.json").exists()
    with TemporaryDirectory(dir=folder) as temporary:
        model.save(bundle := Path(temporary) / "model")
        purpose: dict[str, Any] = {
            "model": model_identity(bundle),
            "graph": graph_identity(graph),
            "layer_dtype": layer_dtype,
        }
        if not begun:
            shutil.rmtree(folder / "model", ignore_errors=True)
            for name in INPUTS:  # left by a command that was killed, perhaps of another model
                (folder / name).unlink(missing_ok=True)
            bundle.rename(folder / "model")
    if begun:
        return _continued(WorkFolder.open(folder), purpose, graph, each)
    sampling, adjacency, edges = model.sampling, CsrFiles.open(graph), graph
    found_keys = None
    capping = sampling.max_degree is not None and capped is None
    if capping or model.structure.projections or order_matters(model.encoder, "exact"):
        write_keys(opened, graph, folder)
        found_keys = open_keys(graph, folder)
    room = max(0, (memory or (PROCESS_BYTES << 1)) - PROCESS_BYTES)
    run_edges = max(1, min(1 << 20, room // EDGE_BYTES))
    if capped is not None:
        edges = capped.absolute()
        adjacency = CsrFiles.open(edges)
    elif cap_files(
        adjacency,
        folder / "capped",
        sampling.max_degree,
        seed=model.seed,
        cap=sampling.cap,
        directed=opened.directed,
        keys=found_keys,
        self_loops=sampling.self_loops,
        run_edges=run_edges,
    ):
        edges = folder / "capped"
        adjacency = CsrFiles.open(edges)
    if budget is None:
        assert memory is not None
        budget = Budget.of(memory, workers, model.encoder, adjacency)
        budget = replace(budget, workers=max(workers, slots))
    features = RowFile(graph / "features.npy").row_bytes if opened.features is not None else 0
    write_structure(model.structure, graph, folder)
    input_bytes = features + 4 * model.structure.width
    stages = plan_stages(model.encoder, adjacency, input_bytes, budget, layer_dtype)
    made = WorkFolder(folder, purpose, graph, edges, model.seed, each, tuple(stages))
    made.save()
    return made


def _continued(found: WorkFolder, purpose: dict[str, Any], graph: Path, each: int) -> WorkFolder:
    for name, what in (("model", "another model"), ("graph", "another graph"), ("layer_dtype", "another layer dtype")):
        if found.purpose.get(name) != purpose[name]:
            raise DataError(f"{found.folder} holds the work of {what}; delete it to begin anew, or choose another")
    if each and found.worker_bytes > each:
        raise ConfigError(
            f"{found.folder} was begun with {shown_size(found.worker_bytes)} for each worker, now there "
            f"are {shown_size(each)}; give as much as then, or delete it to begin anew"
        )
    found.verify_inputs()
    if found.graph != graph:  # the same graph in another place
        raise DataError(f"{found.folder} was begun with the graph in {found.graph}; continue with that")
    return found


def _computed(work: WorkFolder, executor: Executor, on_block: Progress | None) -> Embedded:
    damaged = work.forget_damaged()
    stages = range(len(work.stages))
    # What comes before a whole layer is not needed again; rows that were only transformed do not replace those below.
    begin = max((s for s in stages if work.stages[s].kind == "nodes" and not work.missing(s)), default=-1)
    left = {s: work.missing(s) for s in stages if s > begin}
    total = sum(stage.cuts[-1] for stage in work.stages)
    kept = sum(work.stages[s].blocks - len(left.get(s, [])) for s in stages)
    done = total - sum(work.stages[s].cuts[b + 1] - work.stages[s].cuts[b] for s in left for b in left[s])
    if on_block is not None:
        on_block(done, total)
    for stage in left:
        cuts = work.stages[stage].cuts

        def finished(block: int, cuts: tuple[int, ...] = cuts) -> None:
            nonlocal done
            done += cuts[block + 1] - cuts[block]
            if on_block is not None:
                on_block(done, total)

        executor.run(work.folder, stage, left[stage], finished)
        missing = work.missing(stage)
        if missing:
            raise DataError(
                f"block {missing[0]} of {work.stages[stage].name} is missing after all were computed; "
                f"is {work.folder} on a disk that every worker sees?"
            )
        if work.stages[stage].kind == "nodes":
            for before in work.stages[:stage]:  # not read again
                shutil.rmtree(work.folder / before.name, ignore_errors=True)
    return Embedded(work, kept, damaged)


def embedding_batches(
    found: Embedded,
    graph: Graph,
    model: Model | None = None,
    *,
    with_label: bool = False,
    kept_by: Model | None = None,
    on_block: Progress | None = None,
) -> Iterator[Batch]:
    """id, embedding, and on request the class; with a model also the class that it predicts. The scaled features of
    the model `kept_by` follow the embedding."""
    for start, z in found.batches():
        nodes = torch.arange(start, start + len(z))
        wide = z if kept_by is None else torch.cat([z, _kept(kept_by, graph, start, start + len(z))], dim=1)
        columns = embedding_columns(graph, nodes, wide)
        if with_label:
            columns["label"] = label_column(graph, nodes)
        if model is not None:
            columns["prediction"] = decided_column(model, z)
        yield columns
        if on_block is not None:
            on_block(start + len(z), found.num_nodes)


def _kept(model: Model, graph: Graph, start: int, stop: int) -> Tensor:
    tables = [] if graph.features is None else [graph.features[start:stop]]
    offsets = graph.indptr[start : stop + 1]
    keys = graph.indices[int(offsets[0]) : int(offsets[-1])].long()
    keys = graph.keys[keys] if model.structure.projections else keys
    tables += model.structure.of_lists(keys, offsets - offsets[0])
    return kept_features(model.encoder, tables, torch.arange(stop - start))
