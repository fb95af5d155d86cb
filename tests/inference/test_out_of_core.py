"""Inference in blocks is exact inference: for any graph, aggregator and size of block, also after a restart."""

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from encoders import NAMES, encoder_of, worlds
from graphs import normal, star
from graphsage.errors import BundleError, ConfigError, DataError, OutputError
from graphsage.features.structure import Structure
from graphsage.graph.graph import Graph
from graphsage.graph.storage import save_graph
from graphsage.inference.model import Model
from graphsage.inference.out_of_core import embed as driver
from graphsage.inference.out_of_core.embed import Embedded, embed_in_blocks
from graphsage.inference.out_of_core.plan import Budget
from graphsage.inference.out_of_core.work import locked
from graphsage.model.encoder import Encoder, EncoderConfig
from graphsage.sampling.minibatch import SamplingConfig

World = tuple[Encoder, Graph, list[Tensor]]


def whole(found: Embedded, rows: int = 3) -> Tensor:
    return torch.cat([z for _, z in found.batches(rows)])


def model_of(encoder: Encoder, **settings: Any) -> Model:
    for layer in encoder.layers:
        if layer.norm is not None:
            layer.norm.eps = 1e-5  # type: ignore[union-attr]  # a bundle does not keep that of `encoder_of`
    return Model(encoder, None, SamplingConfig(max_degree=settings.pop("max_degree", None)), **settings)


def saved(folder: str | Path, graph: Graph, tables: list[Tensor]) -> tuple[Path, Graph]:
    graph = graph.replace(features=torch.cat(tables, dim=1) if tables else None)
    save_graph(graph, Path(folder) / "graph")
    return Path(folder) / "graph", graph


@settings(max_examples=80)
@given(worlds(max_nodes=12), st.integers(1, 3000), st.integers(1, 3), st.integers(0, 5), st.sampled_from([None, 1, 3]))
def test_blocks_of_any_size_give_the_vectors_of_exact_inference(
    world: World, memory: int, workers: int, seed: int, cap: int | None
) -> None:
    encoder, graph, tables = world
    model = model_of(encoder, seed=seed, max_degree=cap)
    with tempfile.TemporaryDirectory() as folder:
        path, graph = saved(folder, graph, tables)
        found = embed_in_blocks(model, path, Path(folder) / "work", budget=Budget(memory, workers))
        assert whole(found).shape == (graph.num_nodes, encoder.config.dim)
        atol = 2e-3 if encoder.config.layer_norm else 2e-5  # almost equal numbers amplify rounding
        torch.testing.assert_close(whole(found), model.embed(graph), atol=atol, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_features_of_any_type_and_degrees_are_read(name: str, kind: torch.dtype, tmp_path: Path) -> None:
    graph = star(7).replace(features=normal(3, 8, 5).to(kind))
    model = model_of(
        encoder_of(EncoderConfig(aggregator=name, dim=4, hidden_dim=3), 5 + 17 + 6),
        structure=Structure(degree=True, projections=6),
    )
    save_graph(graph, tmp_path / "graph")
    found = embed_in_blocks(model, tmp_path / "graph", tmp_path / "work", budget=Budget(400))
    torch.testing.assert_close(whole(found), model.embed(graph), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_without_edges_has_the_vectors_of_isolated_nodes(name: str, tmp_path: Path) -> None:
    graph = Graph.from_edges([], 5, features=normal(0, 5, 3))
    model = model_of(encoder_of(EncoderConfig(aggregator=name, dim=4, hidden_dim=4), 3))
    save_graph(graph, tmp_path / "graph")
    z = whole(embed_in_blocks(model, tmp_path / "graph", tmp_path / "work", budget=Budget(90)))
    torch.testing.assert_close(z, model.embed(graph), atol=1e-6, rtol=1e-5)


@pytest.fixture
def ring(tmp_path: Path) -> tuple[Model, Path]:
    """A model of two layers and a graph of 60 nodes."""
    edges = [(v, (v + step) % 60) for v in range(60) for step in (1, 5, 17)]
    save_graph(Graph.from_edges(edges, 60, features=normal(1, 60, 6)), tmp_path / "graph")
    return model_of(encoder_of(EncoderConfig(dim=8), 6)), tmp_path / "graph"


class Counting:
    """Counts the blocks it runs, and fails after some."""

    def __init__(self, fail_after: int = 10**9, slots: int = 1) -> None:
        self.slots = slots
        self.ran: list[tuple[int, int]] = []
        self.fail_after = fail_after

    def run(self, folder: Path, stage: int, blocks: Any, on_done: Callable[[int], None]) -> None:
        for block in blocks:
            if len(self.ran) == self.fail_after:
                raise KeyboardInterrupt
            driver.infer_block(folder, stage, block)
            self.ran.append((stage, block))
            on_done(block)


@pytest.mark.parametrize("fail_after", [0, 1, 7, 12])
def test_a_restart_computes_what_is_missing_to_the_same_bytes(
    ring: tuple[Model, Path], tmp_path: Path, fail_after: int
) -> None:
    undisturbed, first, second = Counting(), Counting(fail_after), Counting()
    z = whole(embed_in_blocks(*ring, tmp_path / "one", budget=Budget(900), executor=undisturbed))
    with pytest.raises(KeyboardInterrupt):
        embed_in_blocks(*ring, tmp_path / "two", budget=Budget(900), executor=first)
    seen: list[tuple[int, int]] = []
    found = embed_in_blocks(
        *ring,
        tmp_path / "two",
        budget=Budget(900),
        executor=second,
        on_block=lambda done, total: seen.append((done, total)),
    )
    assert len(undisturbed.ran) > 12
    assert first.ran + second.ran == undisturbed.ran
    assert torch.equal(whole(found), z)
    assert seen[-1] == (120, 120)
    assert seen == sorted(seen)


def test_every_node_is_computed_once_a_layer(ring: tuple[Model, Path], tmp_path: Path) -> None:
    counting = Counting()
    found = embed_in_blocks(*ring, tmp_path / "work", budget=Budget(700), executor=counting)
    rows = [row for s, b in counting.ran for row in range(*found.work.stages[s].cuts[b : b + 2])]
    assert sorted(rows) == sorted([*range(60)] * 2)
    assert len(set(counting.ran)) == len(counting.ran)


def test_a_damaged_block_is_computed_again(ring: tuple[Model, Path], tmp_path: Path) -> None:
    z = whole(found := embed_in_blocks(*ring, tmp_path / "work", budget=Budget(900)))
    last = len(found.work.stages) - 1
    path = found.work.block(last, 1)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    found.work.block(last, 2).write_bytes(b"")  # its length betrays it, without a checksum
    again = embed_in_blocks(*ring, tmp_path / "work", budget=Budget(900))
    assert again.damaged == 1
    assert torch.equal(whole(again), z)


def test_a_damaged_layer_below_is_computed_again_though_a_stage_above_it_is_whole(tmp_path: Path) -> None:
    graph = star(9).replace(features=normal(3, 10, 5))
    model = model_of(encoder_of(EncoderConfig(aggregator="pool", dim=4, hidden_dim=3), 5))
    save_graph(graph, tmp_path / "graph")
    undisturbed = Counting()
    z = whole(embed_in_blocks(model, tmp_path / "graph", tmp_path / "one", budget=Budget(400), executor=undisturbed))
    stop = Counting(sum(stage < 3 for stage, _ in undisturbed.ran))  # rows-1, nodes-1 and rows-2 are there
    with pytest.raises(KeyboardInterrupt):
        embed_in_blocks(model, tmp_path / "graph", tmp_path / "work", budget=Budget(400), executor=stop)
    path = tmp_path / "work" / "nodes-1" / "00000.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 64
    path.write_bytes(content)
    again = embed_in_blocks(model, tmp_path / "graph", tmp_path / "work", budget=Budget(400))
    assert again.damaged == 1
    assert torch.equal(whole(again), z)


def test_files_of_layers_that_nothing_reads_any_more_are_removed(ring: tuple[Model, Path], tmp_path: Path) -> None:
    found = embed_in_blocks(*ring, tmp_path / "work", budget=Budget(900))
    assert {p.name for p in found.work.folder.iterdir()} == {"lock", "work.json", "model", found.work.stages[-1].name}


def test_no_flipped_bit_in_a_work_folder_or_its_graph_changes_a_vector(
    ring: tuple[Model, Path], tmp_path: Path
) -> None:
    graph = ring[1]
    edges = [(v, (v + step) % 60) for v in range(60) for step in (1, 5, 17)]
    save_graph(Graph.from_edges(edges, 60, features=normal(1, 60, 6), ids=[f"id {v}" for v in range(60)]), graph)
    structure = Structure(degree=True, projections=2)
    model = model_of(encoder_of(EncoderConfig(dim=8), 6 + structure.width), max_degree=4, structure=structure)
    z = whole(embed_in_blocks(model, graph, tmp_path / "work", budget=Budget(900)))
    assert (tmp_path / "work" / "keys.npy").exists()
    kept, draw, refused = tmp_path / "kept", random.Random(2), 0
    for name in ("work", "graph"):
        shutil.copytree(tmp_path / name, kept / name)
    files = [path.relative_to(kept) for path in sorted(kept.rglob("*")) if path.is_file() and path.stat().st_size]
    for file in (*files, *(each for each in files if each.suffix == ".json")):
        content = bytearray((kept / file).read_bytes())
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        (tmp_path / file).write_bytes(content)
        try:
            assert torch.equal(whole(embed_in_blocks(model, graph, tmp_path / "work", budget=Budget(900))), z), file
        except (DataError, BundleError):
            refused += 1
        for name in ("work", "graph"):
            shutil.rmtree(tmp_path / name)
            shutil.copytree(kept / name, tmp_path / name)
    assert refused > 5


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.write_text("[" * 100_000 + "]" * 100_000)])
def test_a_fifo_or_a_nested_bomb_in_a_work_folder_is_refused(
    ring: tuple[Model, Path], tmp_path: Path, make: Callable[[Path], object]
) -> None:
    embed_in_blocks(*ring, tmp_path / "work", budget=Budget(900))
    (tmp_path / "work" / "work.json").unlink()
    make(tmp_path / "work" / "work.json")
    with pytest.raises(DataError, match=r"only regular files|nested too deeply"):
        embed_in_blocks(*ring, tmp_path / "work", budget=Budget(900))


def test_work_of_another_model_or_graph_is_refused(ring: tuple[Model, Path], tmp_path: Path) -> None:
    model, path = ring
    embed_in_blocks(model, path, tmp_path / "work", budget=Budget(900))
    other = model_of(encoder_of(EncoderConfig(dim=8), 6, seed=1))
    with pytest.raises(DataError, match="another model; delete it to begin anew"):
        embed_in_blocks(other, path, tmp_path / "work", budget=Budget(900))
    with pytest.raises(DataError, match="another layer dtype"):
        embed_in_blocks(model, path, tmp_path / "work", budget=Budget(900), layer_dtype="float16")
    save_graph(Graph.from_edges([(0, 1)], 60, features=normal(1, 60, 6)), path)
    with pytest.raises(DataError, match="another graph"):
        embed_in_blocks(model, path, tmp_path / "work", budget=Budget(900))


def test_two_commands_do_not_share_a_folder(ring: tuple[Model, Path], tmp_path: Path) -> None:
    with locked(tmp_path / "work"), pytest.raises(OutputError, match=f"in use by process {os.getpid()}; wait for it"):
        embed_in_blocks(*ring, tmp_path / "work", budget=Budget(900))


def test_layers_may_be_stored_in_half_precision(ring: tuple[Model, Path], tmp_path: Path) -> None:
    z = whole(embed_in_blocks(*ring, tmp_path / "a", budget=Budget(900)))
    found = embed_in_blocks(*ring, tmp_path / "b", budget=Budget(900), layer_dtype="float16")
    assert [stage.type for stage in found.work.stages] == ["float16"] * (len(found.work.stages) - 1) + ["float32"]
    torch.testing.assert_close(whole(found), z, atol=2e-3, rtol=0)
    assert not torch.equal(whole(found), z)


def test_numbers_beyond_half_precision_are_an_error(tmp_path: Path) -> None:
    graph = star(3).replace(features=torch.full((4, 2), 1e30))
    save_graph(graph, tmp_path / "graph")
    model = model_of(encoder_of(EncoderConfig(dim=4, normalize="never", last_activation=False), 2))
    with pytest.raises(DataError, match="layer 1 has numbers that float16 cannot hold; choose the layer dtype float32"):
        embed_in_blocks(model, tmp_path / "graph", tmp_path / "work", budget=Budget(900), layer_dtype="float16")


def test_too_little_memory_is_refused_with_the_least_that_works(ring: tuple[Model, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"memory must be at least (\d+) MB .* got 1 MB") as caught:
        embed_in_blocks(*ring, tmp_path / "work", memory=10**6)
    least = int(str(caught.value).split("at least ")[1].split("MB")[0]) * 10**6
    z = whole(embed_in_blocks(*ring, tmp_path / "work", memory=least))
    torch.testing.assert_close(z, ring[0].embed(Graph.open(ring[1])), atol=2e-5, rtol=1e-4)
    with pytest.raises(ConfigError, match="2 workers need that much together"):
        embed_in_blocks(*ring, tmp_path / "other", memory=least, workers=2)
    with pytest.raises(ConfigError, match=r"was begun with .* for each worker"):
        embed_in_blocks(*ring, tmp_path / "work", memory=least, workers=2)


def test_memory_decides_how_often_the_table_is_read(ring: tuple[Model, Path], tmp_path: Path) -> None:
    blocks = [
        embed_in_blocks(*ring, tmp_path / str(size), budget=Budget(size)).work.stages[-1].blocks
        for size in (800, 4000, 10**6)
    ]
    assert blocks[0] > blocks[1] > blocks[2] == 1


def test_there_is_a_block_of_each_layer_for_whoever_runs_them(ring: tuple[Model, Path], tmp_path: Path) -> None:
    found = embed_in_blocks(*ring, tmp_path / "work", memory=10**9, executor=Counting(slots=6))
    assert all(stage.blocks >= 6 for stage in found.work.stages)


def test_blocks_depend_on_nothing_but_the_work_folder(ring: tuple[Model, Path], tmp_path: Path) -> None:
    found = embed_in_blocks(*ring, tmp_path / "work", budget=Budget(900))
    last = len(found.work.stages) - 1
    before = found.work.block(last, 0).read_bytes()
    fresh = embed_in_blocks(*ring, tmp_path / "other", budget=Budget(900))
    assert np.array_equal(np.load(fresh.work.block(last, 0)), np.load(found.work.block(last, 0)))
    assert fresh.work.block(last, 0).read_bytes() == before
