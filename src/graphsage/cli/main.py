"""The `graphsage` command: its subcommands, and errors as one sentence with exit code 2."""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from graphsage import __version__
from graphsage.cli import (
    data,
    demo,
    embed,
    evaluate,
    info,
    keys,
    live,
    plan,
    plot,
    recommend,
    reproduce,
    score,
    search,
    serve,
    sweep,
    train,
)
from graphsage.cli.options import RENAMED, App
from graphsage.cli.output import say
from graphsage.errors import DataWarning, GraphSageError, LostRankError, is_interrupt, messages_name_flags

LEARN, USE, SERVE, LOOK = "Learn", "Use a model", "Serve", "Look around"

app = App(
    name="graphsage",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=True,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"graphsage {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _graphsage(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Embeddings and predictions for nodes and graphs that did not exist at training time (GraphSAGE, 2017).

    Data goes to stdout, progress to stderr; every command takes --json.
    A mistake ends with one sentence and exit code 2.

    \b
    Start here:
      graphsage demo                     train, compare, look: 3 minutes
      graphsage train setmm --out run    train on built-in data
      graphsage evaluate run             score the model on unseen nodes
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command("train", rich_help_panel=LEARN)(train.command)
app.command("sweep", rich_help_panel=LEARN)(sweep.command)
app.command("demo", rich_help_panel=LEARN)(demo.command)
app.command("reproduce", rich_help_panel=LEARN)(reproduce.command)
app.command("evaluate", rich_help_panel=USE)(evaluate.command)
app.command("embed", rich_help_panel=USE)(embed.embed_command)
app.command("predict", rich_help_panel=USE)(embed.predict_command)
app.command("recommend", rich_help_panel=USE)(recommend.command)
app.command("score", rich_help_panel=USE)(score.command)
app.command("serve", rich_help_panel=SERVE)(serve.command)
app.add_typer(live.app, name="live", rich_help_panel=SERVE)
app.add_typer(keys.app, name="keys", rich_help_panel=SERVE)
app.command("search", rich_help_panel=LOOK)(search.command)
app.command("plot", rich_help_panel=LOOK)(plot.command)
app.command("plan", rich_help_panel=LOOK)(plan.command)
app.command("info", rich_help_panel=LOOK)(info.command)
app.add_typer(data.app, name="data", rich_help_panel=LOOK)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (that of the process by default) and return its exit code."""
    # Read when torch is loaded: threads that wait then sleep instead of spinning. With other work on the same two
    # cores, training is several times faster (docs/log.md has the numbers).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with messages_name_flags(), warnings.catch_warnings():
            warnings.showwarning = _warned(warnings.showwarning)
            warnings.simplefilter("always", DataWarning)
            code = app(args=given, prog_name="graphsage", standalone_mode=False, obj=given)
    except GraphSageError as error:
        return _failed(str(error), 3 if isinstance(error, LostRankError) else 2, reported=error.reported)
    except OSError as error:
        return _failed(f"{error.strerror or error}: {error.filename}" if error.filename else str(error), reported=False)
    except (Exception, KeyboardInterrupt) as error:
        if is_interrupt(error):
            return _failed("interrupted", 130)
        # typer carries a click of its own, whose usage errors have no public name.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        ctx, option = getattr(error, "ctx", None), getattr(error, "option_name", "")
        if new := RENAMED.get(ctx.info_name if ctx else "", {}).get(option):
            return _failed(f"{option} was {'renamed' if new.startswith('--') else 'replaced by'} {new}")
        where = ctx.command_path if ctx else "graphsage"
        return _failed(f"{message().rstrip('.')}; see `{where} --help`")
    return code if isinstance(code, int) else 0


def _warned(show: Callable[..., None]) -> Callable[..., None]:
    """Prints warnings of the library as one line (those of rank 0), and passes others on to `show`."""

    def showwarning(message: Warning | str, category: type[Warning], *rest: Any, **options: Any) -> None:
        if category in (UserWarning, DataWarning):
            if os.environ.get("RANK", "0") == "0":
                say(f"warning: {message}")
        else:
            show(message, category, *rest, **options)

    return showwarning


def _failed(sentence: str, code: int = 2, *, reported: bool | None = None) -> int:
    """Print an error, unless another rank has. All ranks get the same command line, so rank 0 prints by default."""
    if not (os.environ.get("RANK", "0") != "0" if reported is None else reported):
        say(f"error: {sentence}")
    return code
