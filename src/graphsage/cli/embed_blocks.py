"""`graphsage embed --memory`: a whole graph in bounded memory, restarted where it stopped."""

import filecmp
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsage.errors import ConfigError

if TYPE_CHECKING:
    from graphsage.cli.opening import Opened
    from graphsage.inference.out_of_core.embed import Embedded

PANEL = "Graphs larger than memory"


def _option(flag: str, help: str, metavar: str, default: str | bool = False) -> Any:
    return typer.Option(flag, help=help, metavar=metavar, rich_help_panel=PANEL, show_default=default)


Memory = Annotated[
    str | None,
    _option("--memory", "Embed all nodes in blocks with at most this much memory on a machine, such as 4GB.", "SIZE"),
]
Workers = Annotated[int | None, _option("--workers", "Processes that share the memory.", "N", "1")]
Ray = Annotated[
    str | None,
    _option(
        "--ray", "Run the blocks on a Ray cluster: its address, auto, or local for one on this machine.", "ADDRESS"
    ),
]
LayerDtype = Annotated[
    str | None, _option("--layer-dtype", "Dtype of intermediate layers on disk.", "float32|float16", "float32")
]
ResumeDir = Annotated[
    Path | None,
    _option("--resume-dir", "Folder for finished blocks; the same command resumes there.", "FOLDER", "FILE.work"),
]


@dataclass(frozen=True)
class Blocks:
    """How a whole graph is to be computed; None everywhere: not in blocks."""

    memory: str | None
    workers: int | None
    ray: str | None
    layer_dtype: str | None
    resume_dir: Path | None

    def asked(self) -> bool:
        others = {
            "--workers": self.workers,
            "--ray": self.ray,
            "--layer-dtype": self.layer_dtype,
            "--resume-dir": self.resume_dir,
        }
        for flag, value in others.items():
            if value is not None and self.memory is None:
                raise ConfigError(f"{flag} is for inference in blocks; say how much memory that may take: --memory 4GB")
        return self.memory is not None

    def refuse_with(self, others: dict[str, object]) -> None:
        """`others` are flags that speak of some nodes, or of another way of inference."""
        for flag, value in others.items():
            if value:
                raise ConfigError(f"--memory embeds every node of a graph by exact inference; leave {flag} out")


def embed(opened: "Opened", blocks: Blocks, work: Path) -> "Embedded":
    """z of every node, in `work`."""
    from graphsage.cli.output import block_progress, say
    from graphsage.cluster.executors import executor_for
    from graphsage.graph.external.size import parse_size
    from graphsage.inference.out_of_core.embed import embed_in_blocks

    assert blocks.memory is not None
    memory, workers = parse_size(blocks.memory, "--memory"), 1 if blocks.workers is None else blocks.workers
    folder = _graph_folder(opened, work)
    capped = None if opened.stored is None else opened.stored.capped_folder
    with executor_for(blocks.ray, workers, memory, say) as executor, block_progress("embedding") as on_block:
        found = embed_in_blocks(
            opened.model,
            folder,
            work,
            memory=memory,
            workers=workers,
            layer_dtype=blocks.layer_dtype or "float32",
            executor=executor,
            on_block=on_block,
            capped=capped,
        )
    if found.kept:
        say(f"continued in {work}: {found.kept:,} of {found.blocks:,} blocks were there")
    if found.damaged:
        say(f"warning: {found.damaged:,} blocks in {work} were damaged and computed again")
    return found


def _graph_folder(opened: "Opened", work: Path) -> Path:
    """Where the graph lies on disk; one that was made in memory is saved beside the work."""
    if opened.stored is not None and opened.stored.graph_folder is not None:
        return opened.stored.graph_folder
    if opened.model.features is None and (Path(opened.spec) / "graph.json").is_file():
        return Path(opened.spec)
    folder, fresh = work / "graph", work / "graph.new"
    opened.graph.save(fresh)
    if folder.exists() and all(
        (folder / file.name).exists() and filecmp.cmp(file, folder / file.name, shallow=False)
        for file in fresh.iterdir()
    ):
        shutil.rmtree(fresh)  # what is there keeps its moment of writing, by which work is recognized
    else:
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    return folder
