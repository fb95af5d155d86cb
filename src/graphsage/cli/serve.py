"""`graphsage serve`: the HTTP service and the map page."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphsage.cli.options import MAP_HELP, Inference, argument, converted, option, with_settings
from graphsage.cli.output import say, working
from graphsage.cli.runs import open_run
from graphsage.errors import ConfigError
from graphsage.serving.settings import Settings

_LIMITS = ("max_waiting", "max_connections", "head_timeout", "deadline", "compact_after", "scrub_rate")


@with_settings(Settings, {"Limits": _LIMITS})
def command(
    run: Annotated[Path | None, argument("RUN", "Folder that `graphsage train` wrote.")] = None,
    graph: Annotated[
        Path | None,
        option("--graph", "Folder of the live graph; created from the run's data if it is missing.", "FOLDER"),
    ] = None,
    data: Annotated[str | None, option("--data", "Create the live graph from this data.", "DATA")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve the demo's model; trains it if missing.")] = False,
    host: Annotated[str, typer.Option("--host", help="Address to bind.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port; 0 takes a free one.", min=0, max=65535)] = 8000,
    api_keys: Annotated[Path | None, option("--api-keys", "File of `graphsage keys`.", "FILE")] = None,
    allowed_host: Annotated[
        list[str] | None,
        option("--allowed-host", "Host name to accept besides those of this machine; may be repeated.", "NAME"),
    ] = None,
    access_log: Annotated[
        Path | None, option("--access-log", "File for a JSON line per request; - is stdout.", "FILE")
    ] = None,
    audit_log: Annotated[
        Path | None, option("--audit-log", "File for a JSON line per change and admin request; - is stdout.", "FILE")
    ] = None,
    inference: Inference = None,
    map_method: Annotated[str, typer.Option("--map", help=MAP_HELP, metavar="auto|pca|tsne")] = "auto",
    threads: Annotated[int, typer.Option("--threads", help="Threads per micro-batch.", min=1)] = 1,
    **options: Any,
) -> None:
    """Serve embeddings, predictions, search and a map of a graph that grows.

    One process serves one live graph. API on /v1, its description on /docs, the map
    on /. SIGTERM finishes the requests in flight and exits with 0.

    \b
    Examples:
      graphsage serve --demo
      graphsage serve run --graph graph --port 8000 --api-keys keys.txt
    """
    try:
        from graphsage.inference.projection import method_for
        from graphsage.serving.keys import load_keys
        from graphsage.serving.run import check_address, serve
    except ModuleNotFoundError as error:
        raise ConfigError(f"serving needs {error.name}: pip install 'graphsage[serve]'") from None

    map_method = method_for(map_method, "--map")
    if demo:
        if run is not None or data is not None:
            raise ConfigError("--demo brings its own RUN and DATA; leave them out")
        run, graph = _demo_run(), graph or Path("demo-out/graph")
    if run is None or graph is None:
        raise ConfigError("give RUN and --graph FOLDER, or --demo")
    known = load_keys(api_keys)
    settings = Settings(**converted(Settings, options))
    check_address(host, known, allowed_host or ())
    _make_store(run, graph, data)
    serve(
        run,
        graph,
        host=host,
        port=port,
        keys=known,
        settings=settings,
        inference=inference,
        map_method=map_method,
        threads=threads,
        allowed_hosts=allowed_host or (),
        access_log=access_log,
        audit_log=audit_log,
        on_start=lambda at: say(f"serving {graph} on {at}   map {at}/   API {at}/docs"),
    )


def _make_store(run: Path, folder: Path, data: str | None) -> None:
    """The live graph, made of data where it is not there yet."""
    from graphsage.live.manifest import is_store
    from graphsage.live.node_features import store_from_data

    if is_store(folder):
        if data is not None:
            raise ConfigError(f"{folder} is a live graph already; leave out --data, or choose another folder")
        return
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(
            f"{folder} is not a live graph; to begin with that data, give it as --data and another folder as --graph"
        )
    opened = open_run(run, data, "cpu")
    say(f"making the live graph {folder} of {opened.data.name}: {opened.graph.num_nodes:,} nodes")
    with working(f"writing {folder}"):
        store_from_data(folder, opened.model, opened.data, opened.graph)


def _demo_run() -> Path:
    from graphsage.cli.demo import learn

    out = Path("demo-out")
    if not (out / "model" / "config.json").exists():
        say("training the demo's model first; about two minutes, once")
        learn(out, 0)
    return out / "model"
