"""`graphsage reproduce`: the paper's tables and figures, its claims, and a report."""

from pathlib import Path
from typing import Annotated

import typer

from graphsage.cli.options import Device, Json, argument, option
from graphsage.cli.output import print_json, say, working
from graphsage.errors import ConfigError


def command(
    context: typer.Context,
    what: Annotated[
        str,
        argument(
            "WHAT",
            "all, table1, figure2a, figure2b, depth, figure3, pooling, rotation, theory, facts, wilcoxon, claims "
            "or report.",
        ),
    ],
    data: Annotated[
        list[str] | None,
        option(
            "--data",
            "Data: setmm (built in, stands in for the citation graph), ppi=PATH, reddit=PATH, debian=FOLDER, or "
            "any name with a path that `graphsage train` reads. May be repeated.",
            "NAME[=PATH]",
        ),
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            "--profile",
            metavar="quick|full",
            help="quick: trends on 2 cores within an hour. full: the paper's settings, for a GPU.",
        ),
    ] = "quick",
    seeds: Annotated[
        int | None, option("--seeds", "Seeds per chosen setting.", default="quick 1, full 5", min=1)
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for results, pictures, report and trials.", metavar="FOLDER")
    ] = Path("results"),
    jobs: Annotated[
        int | None,
        option(
            "--jobs",
            "Trials run at once, with one thread each; 1 gives one trial all threads.",
            default="one per core; 1 on a GPU",
            min=1,
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        option(
            "--minutes",
            "Time budget: skips trials expected to exceed it, by the longest earlier trial of the same label. "
            "Exit code 3 if trials are left. 0 runs no trial and rebuilds the results from the finished ones.",
            default="no end",
        ),
    ] = None,
    only: Annotated[
        str,
        option(
            "--only",
            "Run a part of table1: tasks, forms and aggregators, such as supervised,paper,mean; yardsticks "
            "(baselines without training); deepwalk.",
            "WORD,...",
        ),
    ] = "",
    rates: Annotated[
        str, option("--rates", "Run only these learning rates of the sweeps.", "LR,...", "all of the profile's")
    ] = "",
    small: Annotated[bool, typer.Option("--small", help="Run only the small models of pool and LSTM.")] = False,
    no_deepwalk: Annotated[
        bool, typer.Option("--no-deepwalk", help="Skip the DeepWalk trials (table1, figure3).")
    ] = False,
    chosen: Annotated[
        bool,
        typer.Option(
            "--chosen",
            help="Sweep nothing: rerun, with all seeds, the settings that finished sweeps chose, also sweeps of an "
            "older protocol.",
        ),
    ] = False,
    tf32: Annotated[
        bool,
        typer.Option("--tf32", help="Multiply in TF32 on a GPU: halves the time of pool and LSTM. Results record it."),
    ] = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Reproduce the paper: every table and figure with the published values, and the claims that hold.

    Each run is kept as a line of FOLDER/trials/PROFILE/EXPERIMENT.jsonl: after
    an interruption the same command continues. A row of table1 is built from
    all finished runs, whichever command made them, and lists the settings
    that were tried.

    \b
    Examples:
      graphsage reproduce all --data setmm --data ppi=data/ppi --out results
      graphsage reproduce table1 --data setmm --only supervised,mean,pool
      graphsage reproduce report --out results
    """
    with working("loading"):
        from graphsage.experiments.report import write_report
        from graphsage.experiments.reproduce import MORE, names, open_session, report_trial, reproduce
        from graphsage.kernels.threads import cores
        from graphsage.training.train import choose_device
        from graphsage.training.trials import Unfinished
    if what == "report":
        for param in context.command.params:
            source = context.get_parameter_source(param.name or "")
            if param.name not in ("what", "out", "json") and source is not None and source.name == "COMMANDLINE":
                raise ConfigError(f"{param.opts[0]} has no effect here: report rebuilds from FOLDER; leave it out")
        written = [str(write_report(out))]
    else:
        names(what)  # check the name before the device
        at_once = jobs or (1 if choose_device(device).type == "cuda" else cores())
        session = open_session(
            data or [],
            profile,
            out,
            what=what,
            only=only,
            seeds=seeds,
            jobs=at_once,
            device=device,
            minutes=minutes,
            rates=rates,
            small=small,
            deepwalk=not no_deepwalk,
            chosen=chosen,
            tf32=tf32,
            on_done=report_trial,
        )
        try:
            written = [str(path) for path in reproduce(what, session)]
        except Unfinished as more:
            say(str(more))
            raise typer.Exit(MORE) from None
        except KeyboardInterrupt:
            say("interrupted; finished trials are kept: run the same command again to continue")
            raise typer.Exit(130) from None
    if json:
        print_json({"what": what, "written": written})
    else:
        print("\n".join(written))
