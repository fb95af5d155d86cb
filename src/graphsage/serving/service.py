"""The service without HTTP: a live graph, a model, a micro-batcher and the updater of the search index."""

import threading
from pathlib import Path

from graphsage.errors import BundleError
from graphsage.live.backup import remove_unfinished
from graphsage.live.faults import fault
from graphsage.live.manifest import read_manifest
from graphsage.live.scrub import Scrubber
from graphsage.live.store import LiveGraph
from graphsage.serving.batcher import Batcher
from graphsage.serving.index import IndexUpdater
from graphsage.serving.metrics import Metrics
from graphsage.serving.served_model import ServedModel, load_model, try_out
from graphsage.serving.settings import Settings


class Service:
    def __init__(
        self,
        run: Path,
        folder: Path,
        settings: Settings | None = None,
        *,
        inference: str | None = None,
        map_method: str = "pca",
    ) -> None:
        self.settings = settings or Settings()
        self.metrics = Metrics()
        self.run, self._inference, self._reloading = run, inference, threading.Lock()
        self.model = load_model(run, inference)
        self._check_features(self.model, read_manifest(folder).features)
        self.live = LiveGraph(folder, self.model.cap)
        self.backups = folder.parent / f"{folder.name}-backups"
        remove_unfinished(self.backups)
        try:
            try_out(self.model, self.live, run)
        except BaseException:
            self.live.close()
            raise
        self.batcher = Batcher(self.live, lambda: self.model, self.metrics, self.settings.batch)
        self.updater = IndexUpdater(
            self.live, self.batcher, self.settings, self.metrics, lambda: self.model, map_method, folder
        )
        self.live.on_change = self._changed
        self.updater.start()
        self.scrubber = Scrubber(self.live, self.settings.scrub_rate * 1e6)
        self.scrubber.start()

    def reload(self) -> ServedModel:
        """Load the run's folder again. A bad model is refused, and the present one stays in service."""
        with self._reloading:
            fresh = load_model(self.run, self._inference)
            self._check_features(fresh, self.live.manifest.features)
            try_out(fresh, self.live, self.run)
            fault("reload.loaded")

            def swap() -> None:
                self.model = fresh

            self.live.use(fresh.cap, swap)
            fault("reload.swapped")
            return fresh

    def _check_features(self, model: ServedModel, features: str) -> None:
        if features and model.features != features:
            raise BundleError(
                f"the model in {self.run} makes features by other recipes than the live graph's; "
                "create a live graph for it: graphsage live create RUN FOLDER"
            )

    def _changed(self, ids: list[str]) -> None:
        """A change was applied, which affects the nodes `ids`."""
        self.updater.touch(ids)
        self.metrics.changes.inc()

    def refresh_gauges(self) -> None:
        version = self.live.version
        self.metrics.nodes.set(self.live.num_nodes)
        self.metrics.generation.set(version.generation)
        self.metrics.sequence.set(version.sequence)
        self.metrics.journal.set(self.live.waiting)
        self.metrics.failing.set(bool(self.updater.trouble))
        self.metrics.scrubbed.set(self.scrubber.done)
        self.metrics.to_scrub.set(self.scrubber.total)
        self.metrics.scrubs.set(self.scrubber.passes)
        self.metrics.damaged.set(len(self.scrubber.damage))

    def close(self) -> None:
        self.scrubber.close()
        self.updater.close()
        self.batcher.close()
        self.live.close()
