"""What a case computes, through public names only: train, embed, serve, and inference in blocks.

A trace is a dictionary of arrays. Weights are stored by their place in `parameters()`, since their names may change.
"""

import contextlib
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

import graphsage as gs
from golden_cases import CLASSES, KNOWN, NEW, NODES, NUM_NEW, Case, arrays_of

Trace = dict[str, np.ndarray[Any, Any]]
BLOCK_BYTES, LSTM_BLOCK_BYTES = 3500, 25_000
"""Memory of a block: so little that every layer of every case takes three or more. An LSTM reads whole lists."""


def found(*places: str) -> Any:
    """The first of `module` or `module:name` that this version has: newest place first, older ones after it."""
    for place in places:
        module, _, name = place.partition(":")
        try:
            return getattr(import_module(module), name) if name else import_module(module)
        except (ImportError, AttributeError):
            if place == places[-1]:
                raise
    raise AssertionError("no place was given")


def moved_names() -> SimpleNamespace:
    """All names that are not in `graphsage` itself: the one place to change where one of them moves."""
    return SimpleNamespace(
        embed_in_blocks=found(
            "graphsage.inference.out_of_core.embed:embed_in_blocks", "graphsage.inference.blocks.embed:embed_in_blocks"
        ),
        Budget=found("graphsage.inference.out_of_core.plan:Budget", "graphsage.inference.blocks.plan:Budget"),
        backend=found("graphsage.kernels.backend"),
        reports=found("graphsage.training.progress", "graphsage.training.loop"),
    )


def service_names() -> SimpleNamespace:
    """Those of the service. They need the extra `serve`, which a machine that only trains may lack."""
    return SimpleNamespace(
        TestClient=found("starlette.testclient:TestClient"),
        create_store=found("graphsage.live.store:create_store"),
        make_app=found("graphsage.serving.app:make_app"),
        Service=found("graphsage.serving.service:Service"),
    )


def kernels(fast: bool) -> contextlib.AbstractContextManager[Any]:
    """Within the block, the C and Triton forms of kernels run (where they can), or torch alone."""
    return patch.object(moved_names().backend, "enabled", fast)


def reporting_every_step(device: str) -> contextlib.AbstractContextManager[Any]:
    """`on_event` is called for every step: on a GPU it is otherwise called a few times a second."""
    if device == "cpu":
        return contextlib.nullcontext()
    reports = moved_names().reports
    return patch.object(reports, "REPORT_SECONDS" if hasattr(reports, "REPORT_SECONDS") else "TELL_SECONDS", 0.0)


@dataclass(frozen=True, eq=False)
class World:
    """A graph in memory, in a folder and in a live store, which many cases share."""

    name: str
    folder: Path

    @cached_property
    def graph(self) -> gs.Graph:
        made = arrays_of(self.name)
        names = [f"kind {c}" for c in range(CLASSES)]
        return gs.Graph.from_edges(made.edges, NODES, features=made.features, labels=made.labels, class_names=names)

    @cached_property
    def split(self) -> gs.Split:
        train = arrays_of(self.name).train
        return gs.Split.masks(train, test=~train)

    @cached_property
    def grown(self) -> gs.Graph:
        return self.graph.with_nodes(features=arrays_of(self.name).new_features, edges=np.array(NEW))

    @cached_property
    def saved(self) -> Path:
        self.graph.save(self.folder / f"{self.name}-graph")
        return self.folder / f"{self.name}-graph"

    @cached_property
    def store(self) -> Path:
        service_names().create_store(self.folder / f"{self.name}-store", self.graph)
        return self.folder / f"{self.name}-store"


class Tracer:
    """Computes traces. Folders lie under `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.worlds = {name: World(name, folder) for name in ("classes", "labels")}
        self._services: dict[str, tuple[Any, Any]] = {}

    def trained(self, case: Case, device: str) -> tuple[gs.Model, Trace]:
        """The model, and the loss of every step."""
        world, losses = self.worlds[case.graph], list[float]()

        def record(event: Any) -> None:
            if event.kind == "step":
                losses.append(event.loss)

        with reporting_every_step(device), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the degree cap keeps")  # the cap of some cases isolates a node
            model = gs.train(world.graph, world.split, device=device, on_event=record, **case.settings)
        assert len(losses) == case.settings["steps"]
        return model, {"losses": np.array(losses)}

    def cpu(self, case: Case) -> Trace:
        """Everything that a case stores."""
        world = self.worlds[case.graph]
        model, trace = self.trained(case, "cpu")
        parts = [model.encoder] + ([] if model.head is None else [model.head])
        weights = [weight for part in parts for weight in part.parameters()]
        trace |= {f"weight-{place}": weight.detach().numpy() for place, weight in enumerate(weights)}
        for how in ("exact", "sampled"):
            trace[f"{how}-known"] = model.embed(world.graph, KNOWN, inference=how).numpy()
            if not case.known_only:
                new = range(NODES, NODES + NUM_NEW)
                trace[f"{how}-new"] = model.embed(world.grown, new, inference=how).numpy()
        if model.head is not None:
            trace["probabilities"] = model.predict_proba(world.graph, KNOWN, inference="exact").numpy()
        trace["blocks"] = self._in_blocks(case, model)
        if not case.known_only:
            trace |= self._served(model, world)
        return trace

    def gpu(self, case: Case) -> Trace:
        """Losses and exact embeddings on a GPU."""
        model, trace = self.trained(case, "cuda")
        return trace | {"exact-known": model.embed(self.worlds[case.graph].graph, KNOWN, inference="exact").numpy()}

    def _in_blocks(self, case: Case, model: gs.Model) -> np.ndarray[Any, Any]:
        names, settings = moved_names(), case.settings
        memory = LSTM_BLOCK_BYTES if settings["aggregator"] == "lstm" else BLOCK_BYTES
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            saved = self.worlds[case.graph].saved
            found = names.embed_in_blocks(model, saved, Path(folder), budget=names.Budget(memory))
            assert found.blocks >= 3 * len(settings["sample_sizes"]), "one block a layer is no test of blocks"
            z = np.concatenate([rows.numpy() for _, rows in found.batches()])
        return z[list(KNOWN)]

    def _served(self, model: gs.Model, world: World) -> Trace:
        """Vectors that the service answers with: of known nodes, and of a new one that is sent along."""
        sent = {
            "id": str(NODES),
            "features": arrays_of(world.name).new_features[0].tolist(),
            "edges": [str(v) for u, v in NEW if u == NODES],
        }
        answer = self._client(model, world).post("/v1/embed", json={"ids": [str(v) for v in KNOWN], "nodes": [sent]})
        assert answer.status_code == 200, answer.text
        z = np.array([each["embedding"] for each in answer.json()["results"]], np.float32)
        return {"served-known": z[:-1], "served-new": z[-1:]}

    def _client(self, model: gs.Model, world: World) -> Any:
        """One service for each graph. It loads the next model as it does in use, which saves a start for each case."""
        run = self.folder / f"{world.name}-run"
        model.save(run)
        if world.name in self._services:
            service, client = self._services[world.name]
            service.reload()
            return client
        names = service_names()
        service = names.Service(run, world.store)
        service.updater.close()  # its index and map are not read, and would be computed during the next training
        self._services[world.name] = service, names.TestClient(names.make_app(service))
        return self._services[world.name][1]

    def close(self) -> None:
        for service, _ in self._services.values():
            service.close()


def traces(cases: tuple[Case, ...], run: Callable[[Tracer, Case], Trace]) -> Trace:
    """The traces of all cases in one dictionary: `case/array`."""
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Tracer(Path(folder))) as tracer:
        return {f"{case.name}/{name}": array for case in cases for name, array in run(tracer, case).items()}
