"""`graphsage sweep`: try settings, keep the best on validation, then look at test once."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsage.cli.options import Device, Json, argument, option
from graphsage.cli.output import block_progress, data_summary, say, working
from graphsage.cli.runs import lasting_name
from graphsage.cli.settings import PAPER, Settings, read_space
from graphsage.errors import ConfigError, DataError
from graphsage.evaluation.metrics import METRICS

if TYPE_CHECKING:
    from graphsage.training.score import Scorer
    from graphsage.training.search import Search

MANY = 100_000  # trials: more than any time allows
MORE = 3  # exit code: there is more to do


def command(
    data: Annotated[
        str | None,
        argument(
            "DATA",
            "Data, as for `graphsage train`; two tables go into the file of --space, under [data].",
            "data of the file",
        ),
    ] = None,
    space: Annotated[
        str,
        option(
            "--space",
            "TOML file with a table [space] of settings to search, or the grid of the paper's appendix.",
            "FILE|paper",
            "learning rate, dropout, LayerNorm, normalization, width, weight decay",
        ),
    ] = "",
    trials: Annotated[
        int | None,
        option(
            "--trials",
            "How many settings to try.",
            default="50; with --minutes and without --space as many as begin in time",
            min=1,
        ),
    ] = None,
    out: Annotated[
        Path | None, option("--out", "Folder for the trials and the results.", "FOLDER", "sweeps/DATA")
    ] = None,
    split: Annotated[str | None, option("--split", "Which of the data's splits.", "NAME", "the data's own")] = None,
    settings: Annotated[
        list[str] | None, option("--set", "A setting for all trials, such as epochs=20. May be repeated.", "NAME=VALUE")
    ] = None,
    sampler: Annotated[
        str | None,
        option(
            "--sampler",
            "tpe learns from earlier trials; grid tries all combinations in order.",
            "tpe|random|grid",
            "tpe; random without Optuna; the paper's space: grid",
        ),
    ] = None,
    pruner: Annotated[
        str,
        typer.Option(
            "--pruner",
            metavar="median|halving|none",
            help="Stop a trial whose validation score is below the median of the others after an epoch (median), or "
            "outside the best third after 1, 3, 9, ... epochs (halving).",
        ),
    ] = "median",
    seeds: Annotated[
        int,
        typer.Option("--seeds", help="Train the winner with so many seeds and score it on test; 0 skips this.", min=0),
    ] = 1,
    seed: Annotated[int | None, option("--seed", "Seed of the sampler.", default="0", min=0)] = None,
    jobs: Annotated[
        int | None,
        option("--jobs", "Trials run at once, each in a process.", default="1; with --ray all of the cluster", min=1),
    ] = None,
    ray: Annotated[
        str | None,
        option(
            "--ray", "Run the trials on this Ray cluster; all its machines must see FOLDER and DATA.", "ADDRESS|auto"
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        option(
            "--minutes",
            "Start no new trial after this many minutes; exit code 3 if some of --trials are left.",
            default="no end",
        ),
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Search for good settings on DATA by a validation score (--set metric=...), and score only the winner on test.

    Without --space, the winner stands beside the default settings and two logistic
    regressions (of numbers: ridge regressions), and FOLDER/run holds its model.

    The trials in FOLDER are shared: the same command again, after Ctrl-C or a
    crash, continues; the same command on another machine at the same time shares the work.

    \b
    FILE holds settings as for `graphsage train --config`, and a table of what to search:
      epochs = 20                                        # in every trial
      [space]
      lr = { low = 0.0003, high = 0.03, log = true }     # a range
      dropout = { low = 0.0, high = 0.6, step = 0.1 }
      aggregator = ["mean", "pool"]                      # choices

    \b
    Examples:
      graphsage sweep setmm --minutes 30
      graphsage sweep setmm --space sweep.toml --trials 50 --jobs 2
      graphsage sweep data/ppi --space paper --set epochs=10 --seeds 5
      graphsage sweep data/ppi --space sweep.toml --out /nfs/ppi --ray auto
      graphsage train --config sweeps/setmm/best.toml --out run
    """
    with working("loading"):
        from graphsage.cli import settings as reading
        from graphsage.training.score import dataset
        from graphsage.training.search import Search
        from graphsage.training.space import default_space

    given = reading.from_pairs(settings or []).followed_by(reading.Settings({}, data, split))
    searched, around = read_space(space, given) if space else (None, given)
    scorer, place, name = _opened(around, device)
    if searched is None:
        opened = dataset(scorer.data)
        featureless = opened.graph.features is None and opened.plan is None
        searched = default_space(given.values, opened.graph.num_nodes, featureless)
    by_time = not space and trials is None and minutes is not None
    sampler = sampler or ("grid" if space == PAPER else "tpe" if space or find_spec("optuna") else "random")
    if seed is not None and sampler == "grid":
        raise ConfigError("--seed has no effect here: it applies to --sampler tpe or random; leave it out")
    search = Search(
        (out or Path("sweeps") / name).absolute(),
        searched,
        {"data": place, "split": scorer.split},
        trials or (MANY if by_time else 50),
        sampler,
        pruner,
        seed or 0,
    )
    _run(search, scorer, seeds, jobs, ray, minutes, json, None if space else given.values, by_time=by_time)


def _opened(around: "Settings", device: str) -> "tuple[Scorer, str | dict[str, Any], str]":
    """Where the data is, checked for labeled validation nodes; how a run remembers it; and its name."""
    import dataclasses

    from graphsage.tables.spec import TableSpec
    from graphsage.training.score import Scorer, dataset, labeled_parts
    from graphsage.training.train import choose_device

    choose_device(device)
    source: str | TableSpec
    if around.tables:
        source = around.spec()
        place: str | dict[str, Any] = {k: v for k, v in dataclasses.asdict(source).items() if v not in (None, (), "")}
        name = Path(source.name).name
    elif around.data is not None:
        source = place = lasting_name(around.data)
        name = Path(around.data).name
    else:
        raise ConfigError("nothing to train on: give DATA, or data = ... in the file of --space")
    with working(f"reading {name}"):
        data = dataset(source)
        split_name = around.split or data.default_split
        parts = labeled_parts(source, split_name)
    say(data_summary(data, split_name, data.split(split_name)))
    if "test" not in parts:
        say("the split has no labeled test nodes: the winner is scored on validation only")
    return Scorer(source, split_name, device), place, name.split(".")[0]


def _run(
    search: "Search",
    scorer: "Scorer",
    seeds: int,
    jobs: int | None,
    address: str | None,
    minutes: float | None,
    json: bool,
    default: dict[str, Any] | None,
    *,
    by_time: bool,
) -> None:
    """With `default` settings, they and the yardsticks are scored too. `by_time`: the time ends the search."""
    import time

    from graphsage.cli.sweep_results import (
        outcome,
        ready_model,
        record_metric,
        report,
        seeds_row,
        words,
        write_results,
        yardstick_rows,
    )
    from graphsage.cluster.sweep import run_search, run_winner
    from graphsage.training.search import finished, left, settings_of, winner

    store, metric = search.open(), METRICS[record_metric(search)]
    reported = {result["number"] for result in finished(store)}
    say(
        f"sweep   {', '.join(search.space.axes)}; {search.sampler}, "
        f"{f'{minutes:g} minutes' if by_time else f'{search.total} trials'}, pruning {search.pruner}"
        + (f"; {len(reported)} are done already" if reported else "")
    )
    pool = None
    if address is not None:
        from graphsage.cluster.ray_cluster import RayPool

        pool = RayPool(address, scorer.device, jobs)
        say(f"ray     {pool.slots} trials at once")
    deadline = None if minutes is None else time.time() + 60 * minutes
    try:
        with block_progress("trials") as bar:

            def report_new() -> None:
                """One line for each trial that ended, here or elsewhere."""
                for result in finished(store):
                    if result["number"] not in reported:
                        reported.add(result["number"])
                        number = f"{result['number']:>{len(str(search.total - 1))}}"
                        say(f"trial {number}   {outcome(result, metric):<24}   {words(result['point'])}")
                done = search.total - left(search, store)
                bar(done, done + 1 if by_time else search.total)

            missing = run_search(search, scorer, jobs=jobs or 1, ray=pool, deadline=deadline, on_done=report_new)
        missing = 0 if by_time else missing
        best, runs, beside = winner(store), [], list[dict[str, Any]]()
        if best is None and not missing:
            errors = [result["error"] for result in finished(store) if result["error"]]
            none = "all were pruned" if finished(store) else "there was no time for one; give more --minutes"
            raise DataError(f"no trial could be finished: {errors[0] if errors else none}")
        if best is not None and not missing and seeds:
            say(f"winner  trial {best['number']}; training it with {seeds} seed{'s' if seeds > 1 else ''}")
            chosen = settings_of(search, best["point"])
            runs = run_winner(search, scorer, chosen, seeds, jobs=jobs or 1, ray=pool)
            if default is not None:
                say("beside  the default settings and the yardsticks")
                own = run_winner(search, scorer, default, seeds, jobs=jobs or 1, ray=pool, name="default")
                beside = [seeds_row("default settings", own), *yardstick_rows(scorer, metric)]
                ready_model(search, scorer, chosen)
    except KeyboardInterrupt:
        done = search.total - left(search, store)
        say(f"interrupted; {done} of {search.total} trials are kept in {search.folder}; the same command continues")
        raise typer.Exit(130) from None
    finally:
        if pool is not None:
            pool.shutdown()
    report(write_results(search, finished(store), runs, beside), json)
    if missing:
        late = deadline is not None and time.time() >= deadline
        others = "other processes run them, and the last one to end names the winner"
        say(f"{missing} trials are left; {'the same command continues' if late else others}")
        raise typer.Exit(MORE)
