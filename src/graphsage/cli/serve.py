"""`graphsage serve`: the HTTP service and the map page."""

from pathlib import Path
from typing import Annotated

import typer

from graphsage.errors import ConfigError


def command(
    run: Annotated[Path | None, typer.Argument(help="Folder that `graphsage train` wrote.", metavar="RUN",
                                               show_default=False)] = None,
    graph: Annotated[Path | None, typer.Option("--graph", help="Folder of the live graph; made of the run's own data "
                                               "where it is not there yet.", metavar="FOLDER",
                                               show_default=False)] = None,
    data: Annotated[str | None, typer.Option("--data", help="Begin with this data instead of the run's own.",
                                             metavar="DATA", show_default=False)] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve the demo's model, trained first if need be.")] = False,
    host: Annotated[str, typer.Option("--host", help="Address to bind.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port; 0 takes a free one.", min=0, max=65535)] = 8000,
    keys: Annotated[Path | None, typer.Option("--keys", help="File with lines `read KEY` and `write KEY`.",
                                              metavar="FILE", show_default=False)] = None,
    inference: Annotated[str | None, typer.Option("--inference", help="From all neighbors or from a sample.",
                                                  metavar="exact|sampled", show_default="the model's own")] = None,
    map_method: Annotated[str, typer.Option("--map", help="How the map is drawn.", metavar="pca|tsne")] = "pca",
    max_waiting: Annotated[int, typer.Option("--max-waiting", help="Requests in work; more are turned away.",
                                             min=1)] = 64,
    deadline: Annotated[float, typer.Option("--deadline", help="Seconds a request may wait.")] = 2.0,
    compact_after: Annotated[int, typer.Option("--compact-after", help="Changes after which the next generation is "
                                               "written; 0 never.", min=0)] = 10_000,
    threads: Annotated[int, typer.Option("--threads", help="Threads of a micro-batch.", min=1)] = 1,
) -> None:  # fmt: skip
    """Serve embeddings, predictions, search and a map of a graph that grows.

    One process serves one live graph. API on /v1, its description on /docs, the map
    on /. SIGTERM finishes what is in flight and exits with 0.

    \b
    Examples:
      graphsage serve --demo
      graphsage serve run --graph graph --port 8000 --keys keys.txt
    """
    try:
        from graphsage.serving.keys import load_keys
        from graphsage.serving.run import check_address, serve
        from graphsage.serving.settings import Settings
    except ModuleNotFoundError as error:
        raise ConfigError(f"serving needs {error.name}: pip install 'graphsage[serve]'") from None
    from graphsage.cli.output import say

    if map_method not in ("pca", "tsne"):
        raise ConfigError(f"--map must be pca or tsne; got {map_method!r}")
    if demo:
        if run is not None or data is not None:
            raise ConfigError("--demo brings its own RUN and DATA; leave them out")
        run, graph = _demo_run(), graph or Path("demo-out/graph")
    if run is None or graph is None:
        raise ConfigError("give RUN and --graph FOLDER, or --demo")
    known = load_keys(keys)
    settings = Settings(max_waiting=max_waiting, deadline=deadline, compact_after=compact_after)
    check_address(host, known)
    _make_store(run, graph, data)
    serve(run, graph, host=host, port=port, keys=known, settings=settings, inference=inference,
          map_method=map_method, threads=threads,
          on_start=lambda at: say(f"serving {graph} on {at}   map {at}/   API {at}/docs"))  # fmt: skip


def _make_store(run: Path, folder: Path, data: str | None) -> None:
    """The live graph, made of data where it is not there yet."""
    from graphsage.cli.opening import open_run
    from graphsage.cli.output import say, working
    from graphsage.live.from_data import store_from_data
    from graphsage.live.manifest import is_store

    if is_store(folder):
        if data is not None:
            raise ConfigError(f"{folder} is a live graph already; leave out --data, or choose another folder")
        return
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not a live graph; to begin with that data, give it as --data and another "
                          "folder as --graph")  # fmt: skip
    opened = open_run(run, data, "cpu")
    say(f"making the live graph {folder} of {opened.data.name}: {opened.graph.num_nodes:,} nodes")
    with working(f"writing {folder}"):
        store_from_data(folder, opened.model, opened.data, opened.graph)


def _demo_run() -> Path:
    from graphsage.cli.demo import learn
    from graphsage.cli.output import say

    out = Path("demo-out")
    if not (out / "model" / "config.json").exists():
        say("training the demo's model first; about two minutes, once")
        learn(out, 0)
    return out / "model"
