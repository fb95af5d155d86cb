"""`graphsage data`: list and convert data, and build data sets from their sources."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsage.atomic import is_free
from graphsage.cli.options import App, Json, argument, converted, option, with_tables
from graphsage.cli.output import data_summary, print_columns, print_json, row_progress, say, working
from graphsage.errors import ConfigError, OutputError, refuse_unused
from graphsage.tables.spec import TableSpec

if TYPE_CHECKING:
    from graphsage.graph.graph import Graph


app = App(help="List data, convert files, and build data sets from their sources.", no_args_is_help=False)
building = App(help="Build a data set from its source.", no_args_is_help=True)
app.add_typer(building, name="build")

ABOUT = {
    "setmm": "theorems of Metamath's set.mm (CC0): edges are citations in proofs, features come from comment and "
    "formula, classes are the parts of mathematics; splits random and date"
}

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run wrote there.")]


def check_free(out: Path, overwrite: bool, ours: Callable[[Path], bool] | None = None) -> None:
    """Refuse an existing path, unless `overwrite` is given and it is `ours` (by default a graph folder)."""
    if is_free(out):
        return
    from graphsage.graph.storage import is_graph_folder

    if not (ours or is_graph_folder)(out):
        raise OutputError(f"{out} already exists and was not written by this command; choose another folder")
    if not overwrite:
        raise OutputError(f"{out} already exists; replace it with --overwrite, or choose another folder")


@building.command("tables")
@with_tables(
    (
        "edges",
        "nodes",
        "id",
        "source",
        "target",
        "direction",
        "unknown_nodes",
        "delimiter",
        "vectors",
        "label",
        "label_type",
        "missing",
        "split_column",
    )
)
def tables(
    out: Annotated[Path, typer.Option("--out", help="Graph folder to write.", metavar="FOLDER")] = Path("graph"),
    memory: Annotated[str, typer.Option("--memory", help="Memory limit, such as 3GB.", metavar="SIZE")] = "4GB",
    feature_type: Annotated[
        str | None, option("--feature-type", "Dtype of the features.", "float32|float16", "float32")
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    **options: Any,
) -> None:
    """Build a graph folder from two tables in bounded memory; `graphsage train FOLDER` reads the result.

    Edges are sorted on disk, next to FOLDER. Features are vectors, stored
    unchanged. For columns that must be fitted (text, numbers, categories), use
    `graphsage train --nodes --edges`, which reads the tables into memory.

    \b
    Example:
      graphsage data build tables --nodes n.parquet --edges e.parquet --vectors x --memory 3GB --out graph
    """
    given = converted(TableSpec, options)
    if "edges" not in given:
        raise ConfigError("a graph needs edges: give --edges FILE")
    spec = TableSpec.from_dict(given)
    refuse_unused(given, spec.without_effect())
    if feature_type is not None and not spec.vectors:
        raise ConfigError("--feature-type has no effect here: it applies to --vectors; leave it out")
    check_free(out, overwrite)
    from graphsage.datasets.table_folder import build_large
    from graphsage.graph.external.size import parse_size

    with row_progress() as report:
        built = build_large(
            spec, out, memory=parse_size(memory, "--memory"), feature_type=feature_type or "float32", report=report
        )
    if built.dropped:
        say(f"warning: {built.dropped:,} edges to unknown nodes are dropped")
    facts = {name: getattr(built, name) for name in ("nodes", "stored_edges", "features", "classes")}
    if json:
        print_json({**facts, "dropped_edges": built.dropped, "out": str(out)})
    else:
        parts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in facts.items())
        print(f"{parts}\nwritten to {out}")


Seed = Annotated[int, typer.Option("--seed", help="Seed of the random samples.")]


@building.command("reddit")
def reddit(
    submissions: Annotated[Path, option("--submissions", "A month's posts, such as RS_2014-09.zst.", "FILE")],
    comments: Annotated[Path, option("--comments", "The month's comments, such as RC_2014-09.zst.", "FILE")],
    text_model: Annotated[Path, option("--text-model", "Word vectors in GloVe's or word2vec's format.", "FILE")],
    rank_comments: Annotated[
        str | None,
        option(
            "--rank-comments",
            "A year's comments, such as 'RC_2014-*.zst': keeps the communities ranked 11 to 50.",
            "PATTERN",
        ),
    ] = None,
    communities: Annotated[Path | None, option("--communities", "File with one community per line.", "FILE")] = None,
    max_degree: Annotated[
        int | None, option("--max-degree", "Keep at most this many random edges per post.", default="all edges", min=1)
    ] = None,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option("--out", help="Graph folder to write.", metavar="FOLDER")] = Path("reddit"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Build the paper's Reddit graph: posts are joined where one user commented on both.

    Reads .zst, .gz, .bz2, .xz and plain files line by line. Of a user with comments
    on more than 100 posts, 100 random posts are joined, because the number of pairs
    grows with the square.

    \b
    Example:
      graphsage data build reddit --submissions RS_2014-09.zst --comments RC_2014-09.zst \\
        --rank-comments 'RC_2014-*.zst' --text-model glove.txt
    """
    check_free(out, overwrite)
    from graphsage.datasets.build_reddit import Reddit, build_reddit

    if (rank_comments is None) == (communities is None):
        raise ConfigError("give --rank-comments PATTERN or --communities FILE, one of the two")
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


@building.command("citation")
def citation(
    nodes: Annotated[Path, option("--nodes", "Table of papers: id, field, year and abstract.", "FILE")],
    edges: Annotated[Path, option("--edges", "Table of citations: source and target.", "FILE")],
    fields: Annotated[str, option("--fields", "Only papers of these fields.", "A,B,...", "all")] = "",
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


@building.command("ppi")
def ppi(
    tissues: Annotated[
        list[str], option("--tissues", "Edge lists, one per tissue, such as 'tissues/*.edgelist'.", "PATTERN")
    ],
    features: Annotated[
        list[str], option("--features", "Gene sets (GMT) that become features; may be repeated.", "PATTERN")
    ],
    labels: Annotated[
        list[str], option("--labels", "Ontology terms (GMT) that become labels; may be repeated.", "PATTERN")
    ],
    min_share: Annotated[float, typer.Option("--min-share", help="Least fraction of proteins per feature.")] = 0.1,
    train_graphs: Annotated[int, typer.Option("--train-graphs", help="Graphs to train on.", min=1)] = 20,
    held_out: Annotated[int, typer.Option("--held-out", help="Graphs to validate on, and to test on.", min=1)] = 2,
    min_train_edges: Annotated[int, typer.Option("--min-train-edges", help="Least edges to train on.", min=0)] = 15_000,
    min_held_out_edges: Annotated[
        int, typer.Option("--min-held-out-edges", help="Least edges otherwise.", min=0)
    ] = 35_000,
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
    if json:
        print_json({"data": name, **_counts(graph), "out": str(out)})
    else:
        parts = ", ".join(f"{count:,} {what}" for what, count in _counts(graph).items())
        print(f"{parts} are in {out}; train on it: graphsage train {out}")


def _counts(graph: "Graph") -> dict[str, int]:
    return {what: getattr(graph, f"num_{what}") for what in ("nodes", "edges", "features", "classes")}


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


@building.command("setmm")
def setmm_command(
    source: Annotated[Path, option("--from", "The database set.mm (Debian: metamath-databases).", "FILE")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write.", metavar="FOLDER")] = Path("setmm-built"),
    json: Json = False,
) -> None:
    """Build the citation graph of theorems from Metamath's set.mm; `graphsage train FOLDER` reads the result.

    \b
    Example:
      graphsage data build setmm --from set.mm
    """
    with working(f"reading {source}"):
        from graphsage.datasets.setmm import build_setmm

        build_setmm(source, out)
    if json:
        print_json({"data": "setmm", "from": str(source), "out": str(out)})
    else:
        print(f"setmm built from {source} is in {out}")


@building.command("debian")
def debian_command(
    packages: Annotated[
        list[str], option("--packages", "A release's Packages.xz; repeat, oldest release first.", "RELEASE=FILE")
    ],
    translations: Annotated[
        list[str] | None,
        option("--translations", "Its Translation-en.bz2 with the long descriptions; may be repeated.", "RELEASE=FILE"),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for nodes.csv and edges.csv.", metavar="FOLDER")] = Path(
        "debian"
    ),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Build the tables of the Debian package graph from a mirror's package indexes.

    Each release's index is dists/RELEASE/main/binary-amd64/Packages.xz on any
    mirror, the long descriptions dists/RELEASE/main/i18n/Translation-en.bz2.

    \b
    Example:
      graphsage data build debian --packages bookworm=12/Packages.xz --packages trixie=13/Packages.xz
    """
    from graphsage.datasets.debian import Release, build_debian, is_debian_folder

    check_free(out, overwrite, is_debian_folder)
    indexes, long = _pairs("--packages", packages), _pairs("--translations", translations or [])
    for name in long:
        if name not in indexes:
            raise ConfigError(f"--translations {name}=... needs --packages {name}=... too")
    with working("reading package indexes"):
        releases = [Release(name, path, long.get(name)) for name, path in indexes.items()]
        nodes, edges = build_debian(releases, out)
    if json:
        print_json({"data": "debian", "nodes": nodes, "edges": edges, "out": str(out)})
    else:
        print(f"{nodes:,} packages and {edges:,} relations are in {out}/nodes.csv and {out}/edges.csv")


def _pairs(flag: str, words: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for word in words:
        name, sign, path = word.partition("=")
        if not (sign and name and path):
            raise ConfigError(f"{flag} takes RELEASE=FILE, such as {flag} bookworm=Packages.xz; got {word!r}")
        if name in found:
            raise ConfigError(f"{flag} names the release {name} twice")
        found[name] = Path(path)
    return found


@app.command("list")
def list_command(json: Json = False) -> None:
    """List the built-in data sets and the file formats that `graphsage train` reads."""
    from graphsage.datasets.open import BUILT_IN, FORMATS

    known = {name: ABOUT.get(name, "") for name in BUILT_IN}
    if json:
        formats = [{"format": form.name, "file": form.file} for form in FORMATS]
        print_json({"data": [{"name": name, "about": about} for name, about in known.items()], "formats": formats})
    else:
        print_columns(list(known.items()))
        print("\nor the PATH of")
        print_columns(
            [(form.name, "  ".join(f"PATH{end}" for end in form.file.split(", "))) for form in FORMATS], indent="  "
        )


@app.command("convert")
def convert_command(
    source: Annotated[str, argument("IN", "Data in any format that `graphsage data list` names.")],
    out: Annotated[Path, argument("OUT", "Graph folder to write.")],
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write data as a graph folder with its splits, which opens at once at any size.

    \b
    Examples:
      graphsage data convert amazon_photo.npz photo
      graphsage data convert reddit-npz reddit
    """
    check_free(out, overwrite)
    with working(f"reading {source}"):
        from graphsage.datasets.open import open_data
        from graphsage.graph.storage import save_graph

        data = open_data(source)
        name, split = data.default_split, data.split()
        graph = data.graph
        if graph.features is None and data.columns:
            say(f"features are made of {', '.join(data.columns)}, fitted on training nodes of split {name}")
            graph = data.with_features(split)[0]
    with working(f"writing {out}"):
        save_graph(graph, out, data.splits)
    if json:
        print_json({"data": source, "out": str(out), **_counts(graph), "splits": list(data.splits)})
    else:
        print(f"{data_summary(data, name, split)}\nwritten to {out}")
