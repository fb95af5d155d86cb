"""`graphsage data build reddit|citation|ppi`: the paper's own data sets, made from their sources as it says."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphsage.cli.graph_folder import Overwrite, check_free
from graphsage.cli.options import Json
from graphsage.errors import ConfigError

if TYPE_CHECKING:
    from graphsage.graph.graph import Graph

Seed = Annotated[int, typer.Option("--seed", help="Seed of the random samples.")]


def reddit(
    submissions: Annotated[
        Path,
        typer.Option(
            "--submissions", metavar="FILE", show_default=False, help="A month's posts, such as RS_2014-09.zst."
        ),
    ],
    comments: Annotated[
        Path,
        typer.Option(
            "--comments", metavar="FILE", show_default=False, help="The month's comments, such as RC_2014-09.zst."
        ),
    ],
    text_model: Annotated[
        Path,
        typer.Option(
            "--text-model", metavar="FILE", show_default=False, help="Word vectors in GloVe's or word2vec's format."
        ),
    ],
    rank_comments: Annotated[
        str | None,
        typer.Option(
            "--rank-comments",
            metavar="PATTERN",
            show_default=False,
            help="A year's comments, such as 'RC_2014-*.zst': communities ranked 11 to 50 are taken.",
        ),
    ] = None,
    communities: Annotated[
        Path | None,
        typer.Option("--communities", metavar="FILE", show_default=False, help="Or a file with one community a line."),
    ] = None,
    max_degree: Annotated[
        int | None,
        typer.Option(
            "--max-degree", min=1, show_default="all edges", help="Keep at most this many random edges per post."
        ),
    ] = None,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option("--out", help="Graph folder to write.", metavar="FOLDER")] = Path("reddit"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Build the paper's Reddit graph: posts are joined where one user commented on both.

    Files are read as they are (.zst, .gz, .bz2, .xz or plain), a line at a time.
    A user who commented on more than 100 posts joins only 100 of them, drawn at
    random: pairs grow with the square.

    \b
    Example:
      graphsage data build reddit --submissions RS_2014-09.zst --comments RC_2014-09.zst \\
        --rank-comments 'RC_2014-*.zst' --text-model glove.txt
    """
    check_free(out, overwrite)
    from graphsage.cli.output import working
    from graphsage.datasets.build_reddit import Reddit, build_reddit

    if (rank_comments is None) == (communities is None):
        raise ConfigError("say which communities: --rank-comments PATTERN or --communities FILE, one of the two")
    with working("reading posts and comments"):
        ranked = [] if rank_comments is None else _files("--rank-comments", [rank_comments])
        graph = build_reddit(
            Reddit(
                submissions=submissions,
                comments=comments,
                vectors=text_model,
                communities=communities,
                rank_comments=ranked,
                max_degree=max_degree,
                seed=seed,
            ),
            out,
        )
    _built("reddit", graph, out, json)


def citation(
    nodes: Annotated[
        Path,
        typer.Option(
            "--nodes", metavar="FILE", show_default=False, help="Table of papers: id, field, year and abstract."
        ),
    ],
    edges: Annotated[
        Path, typer.Option("--edges", metavar="FILE", show_default=False, help="Table of citations: source and target.")
    ],
    fields: Annotated[
        str, typer.Option("--fields", metavar="A,B,...", show_default="all", help="Only papers of these fields.")
    ] = "",
    label: Annotated[str, typer.Option("--label", help="Column of the field.", metavar="COLUMN")] = "field",
    year: Annotated[str, typer.Option("--year", help="Column of the year.", metavar="COLUMN")] = "year",
    text: Annotated[str, typer.Option("--text", help="Columns of text.", metavar="COLUMN,...")] = "abstract",
    first_year: Annotated[int, typer.Option("--first-year", help="Older papers are left out.")] = 2000,
    train_until: Annotated[int, typer.Option("--train-until", help="The last year of training.")] = 2004,
    last_year: Annotated[int, typer.Option("--last-year", help="Later papers are left out.")] = 2005,
    text_dim: Annotated[int, typer.Option("--text-dim", help="Width of the text vectors.", min=1)] = 300,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option("--out", help="Graph folder to write.", metavar="FOLDER")] = Path("citation"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Build a citation graph as the paper did: fields, years, SIF text vectors and degrees, largest component.

    \b
    Example:
      graphsage data build citation --nodes papers.csv --edges cites.csv --fields NI,GU,DA,IA,DR,CU
    """
    check_free(out, overwrite)
    from graphsage.cli.output import working
    from graphsage.datasets.build_citation import Citations, build_citation

    if not first_year <= train_until < last_year:
        raise ConfigError(
            "the years must be --first-year <= --train-until < --last-year, or there is nothing to train "
            f"or to test on; got {first_year}, {train_until} and {last_year}"
        )
    if fields and not _words(fields):
        raise ConfigError(f"--fields takes names with commas between them, such as NI,GU; got {fields!r}")
    with working("reading papers"):
        graph = build_citation(
            Citations(
                nodes=nodes,
                edges=edges,
                label=label,
                year=year,
                text=_words(text),
                fields=_words(fields),
                first_year=first_year,
                train_until=train_until,
                last_year=last_year,
                dim=text_dim,
                seed=seed,
            ),
            out,
        )
    _built("citation", graph, out, json)


def ppi(
    tissues: Annotated[
        list[str],
        typer.Option(
            "--tissues",
            metavar="PATTERN",
            show_default=False,
            help="Edge lists, one a tissue, such as 'tissues/*.edgelist'.",
        ),
    ],
    features: Annotated[
        list[str],
        typer.Option(
            "--features",
            metavar="PATTERN",
            show_default=False,
            help="Gene sets (GMT) that become features; may be repeated.",
        ),
    ],
    labels: Annotated[
        list[str],
        typer.Option(
            "--labels",
            metavar="PATTERN",
            show_default=False,
            help="Ontology terms (GMT) that become labels; may be repeated.",
        ),
    ],
    min_share: Annotated[float, typer.Option("--min-share", help="A feature holds this share of proteins.")] = 0.1,
    train_graphs: Annotated[int, typer.Option("--train-graphs", help="Graphs to train on.", min=1)] = 20,
    held_out: Annotated[int, typer.Option("--held-out", help="Graphs to validate on, and to test on.", min=1)] = 2,
    min_train_edges: Annotated[int, typer.Option("--min-train-edges", help="Of a training graph.", min=0)] = 15_000,
    min_held_out_edges: Annotated[int, typer.Option("--min-held-out-edges", help="Of the others.", min=0)] = 35_000,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option("--out", help="Graph folder to write.", metavar="FOLDER")] = Path("ppi"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Build the paper's PPI graphs from tissue networks, gene sets and ontology terms.

    \b
    Example:
      graphsage data build ppi --tissues 'tissues/*.edgelist' --features c1.gmt --features c3.gmt \\
        --features c7.gmt --labels c5.gmt
    """
    check_free(out, overwrite)
    from graphsage.cli.output import working
    from graphsage.datasets.build_ppi import Proteins, build_ppi

    if not 0 <= min_share <= 1:
        raise ConfigError(f"--min-share is a share of the proteins, from 0 to 1; got {min_share}")
    with working("reading tissues"):
        graph = build_ppi(
            Proteins(
                tissues=_files("--tissues", tissues),
                features=_files("--features", features),
                labels=_files("--labels", labels),
                min_share=min_share,
                train_graphs=train_graphs,
                held_out_graphs=held_out,
                min_train_edges=min_train_edges,
                min_held_out_edges=min_held_out_edges,
                seed=seed,
            ),
            out,
        )
    _built("ppi", graph, out, json)


def _built(name: str, graph: "Graph", out: Path, json: bool) -> None:
    from graphsage.cli.output import print_json

    counts = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": graph.num_classes,
    }
    if json:
        print_json({"data": name, **counts, "out": str(out)})
    else:
        told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
        print(f"{told} are in {out}; train on it: graphsage train {out}")


def _files(flag: str, patterns: list[str]) -> list[Path]:
    """The files that shell patterns name, in order."""
    from glob import glob

    found = [Path(path) for pattern in patterns for path in sorted(glob(pattern))]  # noqa: PTH207
    if not found:
        raise ConfigError(f"{flag} {' '.join(patterns)} names no file")
    twice = next((path for path in found if found.count(path) > 1), None)
    if twice is not None:
        raise ConfigError(f"{flag} names {twice} twice; name each file once")
    return found


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
