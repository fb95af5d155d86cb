"""Broken tables: files, options, and what the one sentence about them must say. One line a table."""
# ruff: noqa: E501

import gzip
import io
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

NODES = b"id,kind,size,about,when,part\na,x,1,red fox,2020-01-01,train\nb,y,2,blue sea,2020-01-02,train\nc,x,3,,2020-01-03,test\n"
EDGES = b"source,target,day\na,b,2020-01-01\nb,c,2020-01-02\n"


@dataclass(frozen=True)
class Bad:
    name: str
    says: tuple[str, ...]
    nodes: bytes | None = NODES
    edges: bytes | None = EDGES
    words: tuple[str, ...] = ("--label", "kind")
    suffix: str = ".csv"
    edge_suffix: str = ".csv"
    more: dict[str, bytes] = field(default_factory=dict)


def nodes(**columns: str | list[str]) -> bytes:
    """NODES with other cells in a column."""
    header, *rows = [line.split(",") for line in NODES.decode().splitlines()]
    for name, cells in columns.items():
        place = header.index(name)
        for row, cell in zip(rows, [cells] * 3 if isinstance(cells, str) else cells, strict=True):
            row[place] = cell
    return "\n".join(",".join(row) for row in [header, *rows]).encode() + b"\n"


def edges(*rows: str) -> bytes:
    return "\n".join(["source,target,day", *rows]).encode() + b"\n"


def parquet(**columns: Any) -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), sink)
    return sink.getvalue()


def feather(**columns: Any) -> bytes:
    sink = io.BytesIO()
    pa.feather.write_feather(pa.table(columns), sink)
    return sink.getvalue()


def lines(*rows: Any) -> bytes:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()


def npy(array: Any, pickled: bool = False) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=pickled)
    return sink.getvalue()


def npz(**arrays: Any) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


SPARSE: dict[str, Any] = {
    "format": b"csr",
    "shape": [3, 2],
    "data": [1.0, 2.0],
    "indices": [0, 1],
    "indptr": [0, 1, 2, 2],
}
TYPED: dict[str, Any] = {"id": ["a", "b", "c"], "kind": ["x", "y", "x"]}
TIME = ("--time", "when")

BAD = [
    # the file itself
    Bad("no file", ("nodes.csv does not exist",), nodes=None),
    Bad("no edge file", ("edges.csv does not exist",), edges=None),
    Bad("empty file", ("nodes.csv is empty",), nodes=b""),
    Bad("empty edge file", ("edges.csv is empty",), edges=b""),
    Bad("blank lines only", ("nodes.csv", "column names"), nodes=b"\n\n\n"),
    Bad("header only", ("nodes.csv has no row",), nodes=b"id,kind\n", edges=b"source,target\n"),
    Bad("header only, nodes", ("nodes.csv has no row",), nodes=b"id,kind\n"),
    Bad("binary file", ("nodes.csv",), nodes=bytes(range(256)) * 20),
    Bad("zero bytes", ("nodes.csv", "column names"), nodes=b"\0" * 400),
    Bad("UTF-16", ("nodes.csv is not UTF-8 text",), nodes=NODES.decode().encode("utf-16")),
    Bad("Latin-1 in a header", ("nodes.csv is not UTF-8 text",), nodes="id,größe\na,1\n".encode("latin-1")),
    Bad(
        "Latin-1 in a cell",
        ("nodes.csv column 'kind' row 9005 is not UTF-8 text",),
        nodes=NODES + b"d,x,1,,,\n" * 9000 + b"e,\xfc,1,,,\n",
    ),
    Bad("not gzip", ("nodes.csv.gz cannot be read",), suffix=".csv.gz"),
    Bad("gzip cut short", ("nodes.csv.gz cannot be read",), nodes=gzip.compress(NODES * 50)[:-20], suffix=".csv.gz"),
    Bad("a picture", ("nodes.png", "must end in"), suffix=".png"),
    Bad("no ending", ("must end in",), suffix=""),
    Bad("CSV called Parquet", ("nodes.parquet cannot be read",), suffix=".parquet"),
    Bad("CSV called Feather", ("nodes.feather cannot be read",), suffix=".feather"),
    Bad("Parquet called CSV", ("nodes.csv",), nodes=parquet(**TYPED)),
    Bad("Parquet cut short", ("nodes.parquet cannot be read",), nodes=parquet(**TYPED)[:-9], suffix=".parquet"),
    Bad("Feather cut short", ("nodes.feather cannot be read",), nodes=feather(**TYPED)[:-30], suffix=".feather"),
    Bad("JSON list", ("nodes.jsonl row 1 is not a JSON object",), nodes=b"[1, 2]\n", suffix=".jsonl"),
    Bad(
        "JSON broken in row 2",
        ("nodes.jsonl row 2 is not whole JSON",),
        nodes=lines({"id": "a"}, '{"id": '),
        suffix=".jsonl",
    ),
    Bad("JSON without keys", ("nodes.jsonl has no row with a key",), nodes=lines({}, {}), suffix=".jsonl"),
    Bad(
        "JSON of mixed types",
        ("nodes.jsonl column 'id' row 2 is 5",),
        nodes=lines({"id": "a", "kind": "x"}, {"id": 5, "kind": "y"}),
        suffix=".jsonl",
    ),
    Bad(
        "JSON beyond 64 bits",
        ("nodes.jsonl column 'id' row 2",),
        nodes=lines({"id": 1, "kind": "x"}, {"id": 10**30, "kind": "y"}),
        suffix=".jsonl",
    ),
    # rows and columns
    Bad("wrong delimiter", ("nodes.csv has one column", "';'"), nodes=NODES.replace(b",", b";")),
    Bad("tabs in a CSV", ("nodes.csv has one column", "'\\t'"), nodes=NODES.replace(b",", b"\t")),
    Bad("delimiter of two signs", ("delimiter must be one character",), words=("--delimiter", "::")),
    Bad(
        "short row",
        ("nodes.csv row 4 has 2 cells", "6 columns"),
        nodes=NODES.replace(b"c,x,3,,2020-01-03,test", b"c,x"),
    ),
    Bad("long row", ("nodes.csv row 3 has 7 cells",), nodes=NODES.replace(b"blue sea", b"blue,sea")),
    Bad("open quote", ("nodes.csv row 3 has",), nodes=NODES.replace(b"blue sea", b'"blue sea')),
    Bad("ragged edges", ("edges.csv row 3 has 1 cells",), edges=b"source,target\na,b\nb\n"),
    Bad("duplicated column", ("nodes.csv has two columns 'kind'",), nodes=b"id,kind,kind\na,x,y\n"),
    Bad("column without a name", ("nodes.csv: column 3 of 3 has no name",), nodes=b"id,kind,\na,x,1\n"),
    Bad("no header", ("nodes.csv has no column called id",), nodes=NODES.split(b"\n", 1)[1]),
    Bad("no id column", ("nodes.csv has no column called id",), nodes=NODES.replace(b"id,", b"key,")),
    Bad("two id columns", ("nodes.csv has the columns 'id' and 'ID'",), nodes=b"id,ID,kind\na,a,x\n"),
    Bad("no source column", ("edges.csv has no column called source",), edges=EDGES.replace(b"source", b"u")),
    Bad("no such label", ("nodes.csv has no column 'sort'; its columns are 'id', 'kind'",), words=("--label", "sort")),
    Bad("no such text", ("nodes.csv has no column 'body'",), words=("--text", "body")),
    Bad("no such edge time", ("edges.csv has no column 'hour'",), words=("--time", "when", "--edge-time", "hour")),
    Bad(
        "source is target",
        ("edges.csv: source and target are the same column, 'source'",),
        words=("--target", "source"),
    ),
    # ids
    Bad("empty id", ("nodes.csv column 'id' row 3 has no id",), nodes=nodes(id=["a", "", "c"])),
    Bad("spaces for an id", ("nodes.csv column 'id' row 4 has no id",), nodes=nodes(id=["a", "b", "  "])),
    Bad(
        "missing id",
        ("nodes.parquet column 'id' row 2 has no id",),
        nodes=parquet(**{**TYPED, "id": ["a", None, "c"]}),
        suffix=".parquet",
    ),
    Bad(
        "NaN ids",
        ("nodes.parquet column 'id' holds double", "strings or integers"),
        nodes=parquet(**{**TYPED, "id": [1.0, float("nan"), 3.0]}),
        suffix=".parquet",
    ),
    Bad(
        "truth for ids",
        ("nodes.parquet column 'id' holds bool",),
        nodes=parquet(id=[True, False], kind=["x", "y"]),
        suffix=".parquet",
    ),
    Bad(
        "lists for ids",
        ("nodes.parquet column 'id' holds list",),
        nodes=parquet(id=[[1], [2]], kind=["x", "y"]),
        suffix=".parquet",
    ),
    Bad(
        "huge ids",
        ("nodes.parquet column 'id' row 2 is beyond 64 signed bits",),
        nodes=parquet(id=pa.array([1, 2**63 + 1], pa.uint64()), kind=["x", "y"]),
        suffix=".parquet",
    ),
    Bad(
        "a million characters for an id",
        ("nodes.csv column 'id' row 2 is longer than 10000 characters",),
        nodes=nodes(id=["a" * 10**6, "b", "c"]),
    ),
    Bad(
        "duplicate id",
        ("nodes.csv column 'id' has an id more than once: 'a' (rows 2, 4)",),
        nodes=nodes(id=["a", "b", "a"]),
    ),
    Bad(
        "many duplicate ids",
        ("column 'id' has 2 ids more than once", "'a' (rows 2, 4)", "'b' (rows 3, 5)"),
        nodes=b"id,kind\na,x\nb,x\na,x\nb,x\n",
    ),
    Bad(
        "unknown node",
        ("edges.csv: 1 edge names a node", "'z' (column 'target' row 3)", "--unknown-nodes drop or add"),
        edges=edges("a,b,1", "b,z,1"),
    ),
    Bad(
        "many unknown nodes",
        ("edges.csv: 4 edges name nodes", "'p' ", "'q' ", "'r' "),
        edges=edges("p,a,1", "q,a,1", "r,a,1", "s,a,1"),
    ),
    Bad("empty end", ("edges.csv column 'target' row 2 has no id",), edges=edges("a,,1")),
    Bad(
        "words for whole-number ids",
        ("edges.csv column 'source' row 2 is 'a', but the nodes' ids are integers",),
        nodes=parquet(id=[1, 2], kind=["x", "y"]),
        suffix=".parquet",
    ),
    Bad(
        "no time for added nodes",
        ("would have no time",),
        edges=edges("a,z,1"),
        words=(*TIME, "--unknown-nodes", "add"),
    ),
    # labels
    Bad("one class only", ("nodes.csv column 'kind' has one class, 'x',",), nodes=nodes(kind="x")),
    Bad("no label at all", ("nodes.csv column 'kind' has no label in any row",), nodes=nodes(kind="")),
    Bad(
        "no label in training",
        ("nodes.csv column 'kind' has no class among the training nodes",),
        nodes=nodes(kind=["", "", "x"]),
        words=("--label", "kind", "--split-column", "part"),
    ),
    Bad(
        "a million characters for a class",
        ("nodes.csv column 'kind' row 3 has a class of 1000000 characters",),
        nodes=nodes(kind=["x", "y" * 10**6, "x"]),
    ),
    Bad(
        "a list for a class",
        ("nodes.parquet column 'kind' row 1 is {",),
        nodes=parquet(id=["a", "b", "c"], kind=[{"x": 1}, {"x": 2}, None]),
        suffix=".parquet",
    ),
    Bad(
        "a class too long, of many",
        ("nodes.csv column 'kind' row 4 has a class of",),
        nodes=nodes(kind=["a;b", "c", "d;" + "x" * 3000]),
        words=("--label", "kind"),
    ),
    Bad(
        "label is a feature",
        ("'kind' is the label; it cannot be a feature too",),
        words=("--label", "kind", "--categorical", "kind"),
    ),
    Bad(
        "id is a feature",
        ("'id' of", "nodes.csv is the id; it cannot be a feature too"),
        words=("--label", "kind", "--text", "id"),
    ),
    # numbers, dates, vectors
    Bad(
        "word among numbers",
        ("nodes.csv column 'size' row 3 is 'two', not a number",),
        nodes=nodes(size=["1", "two", "3"]),
        words=("--label", "kind", "--numeric", "size"),
    ),
    Bad(
        "comma for a point",
        ("nodes.csv column 'size' row 2 is '1;5', not a number",),
        nodes=nodes(size=["1;5", "2", "3"]),
        words=("--label", "kind", "--numeric", "size"),
    ),
    Bad(
        "infinite number",
        ("nodes.csv column 'size' row 4 is infinite",),
        nodes=nodes(size=["1", "2", "-inf"]),
        words=("--label", "kind", "--numeric", "size"),
    ),
    Bad(
        "huge number",
        ("nodes.csv column 'size' row 2 is infinite",),
        nodes=nodes(size=["9" * 400, "2", "3"]),
        words=("--label", "kind", "--numeric", "size"),
    ),
    Bad(
        "beyond float32",
        ("nodes.csv column 'size' row 3 is 1e+300, beyond float32",),
        nodes=nodes(size=["1", "1e300", "3"]),
        words=("--label", "kind", "--numeric", "size", "--split-column", "part"),
    ),
    Bad(
        "a number that may be missing",
        ("nodes.csv column 'size' row 3 is 'NA', not a number; if it means a missing value, give --missing NA",),
        nodes=nodes(size=["1", "NA", "3"]),
        words=("--label", "kind", "--numeric", "size"),
    ),
    Bad(
        "numbers to predict",
        (
            "nodes.csv column 'size' holds numbers with a fraction (1.5), which are no classes; to predict numbers give --task regression",
            "give --label-type class",
        ),
        nodes=nodes(size=["1", "1.5", "3"]),
        words=("--label", "size"),
    ),
    Bad(
        "a split as a feature",
        ("column 'part' is the split column",),
        words=("--label", "kind", "--split-column", "part", "--categorical", "part"),
    ),
    Bad(
        "numbers all missing",
        ("column 'size' has no number in any training row",),
        nodes=nodes(size=["", "NA", "3"]),
        words=("--label", "kind", "--numeric", "size", "--split-column", "part", "--missing", "NA"),
    ),
    Bad(
        "a date that is none",
        ("nodes.csv column 'when' row 3 is '2020-02-30', not a date",),
        nodes=nodes(when=["2020-01-01", "2020-02-30", ""]),
        words=("--label", "kind", "--dates", "when"),
    ),
    Bad(
        "American dates",
        ("nodes.csv column 'when' row 2 is '01/02/2020', not a date",),
        nodes=nodes(when="01/02/2020"),
        words=("--label", "kind", "--dates", "when"),
    ),
    Bad(
        "text for a vector",
        ("nodes.csv column 'about' row 2 is 'red fox', not a vector",),
        words=("--label", "kind", "--vectors", "about"),
    ),
    Bad(
        "vectors of two lengths",
        ("nodes.parquet column 'v' row 2 has 1 numbers; 2 were expected",),
        nodes=parquet(**TYPED, v=[[1.0, 2.0], [1.0], [1.0, 2.0]]),
        suffix=".parquet",
        words=("--label", "kind", "--vectors", "v"),
    ),
    Bad(
        "NaN in a vector",
        ("nodes.parquet column 'v' row 3 holds NaN or infinity",),
        nodes=parquet(**TYPED, v=[[1.0], [2.0], [float("nan")]]),
        suffix=".parquet",
        words=("--label", "kind", "--vectors", "v"),
    ),
    Bad(
        "vectors for other rows",
        ("v.npy has 2 rows, but", "nodes.csv has 3"),
        more={"v.npy": npy(np.ones((2, 4)))},
        words=("--label", "kind", "--vectors", "v.npy"),
    ),
    Bad(
        "NaN in a file of vectors",
        ("v.npy row 2 holds NaN",),
        more={"v.npy": npy(np.array([[1.0], [np.nan], [1.0]]))},
        words=("--label", "kind", "--vectors", "v.npy"),
    ),
    Bad(
        "pickled vectors",
        ("v.npy is not a whole .npy file",),
        more={"v.npy": npy(np.array([[{}]] * 3, object), pickled=True)},
        words=("--label", "kind", "--vectors", "v.npy"),
    ),
    Bad("no such vectors", ("v.npz does not exist",), words=("--label", "kind", "--vectors", "v.npz")),
    Bad(
        "not an archive",
        ("v.npz is not a whole .npz file",),
        more={"v.npz": b"PK no archive"},
        words=("--label", "kind", "--vectors", "v.npz"),
    ),
    Bad(
        "an archive without a matrix",
        ("v.npz lacks the array 'shape'",),
        more={"v.npz": npz(x=[1])},
        words=("--label", "kind", "--vectors", "v.npz"),
    ),
    Bad(
        "a sparse matrix with wrong columns",
        ("v.npz: the sparse matrix in it is damaged",),
        more={"v.npz": npz(**{**SPARSE, "indices": [0, 9]})},
        words=("--label", "kind", "--vectors", "v.npz"),
    ),
    Bad(
        "a sparse matrix beyond memory",
        ("v.npz has shape",),
        more={"v.npz": npz(**{**SPARSE, "shape": [3, 2**40]})},
        words=("--label", "kind", "--vectors", "v.npz"),
    ),
    # time and splits
    Bad(
        "names without an order",
        ("nodes.csv column 'part' row 2 is 'train'", "--time-order"),
        words=("--label", "kind", "--time", "part"),
    ),
    Bad(
        "a name that the order lacks",
        ("nodes.csv column 'part' row 4 is 'test', which --time-order does not have",),
        words=("--label", "kind", "--time", "part", "--time-order", "train,val"),
    ),
    Bad(
        "a moment twice",
        ("--time-order names a moment twice",),
        words=("--label", "kind", "--time", "part", "--time-order", "test,test"),
    ),
    Bad(
        "no time in a row",
        ("nodes.csv column 'when' row 3 has no time",),
        nodes=nodes(when=["2020-01-01", "", "2020-01-03"]),
        words=("--label", "kind", *TIME),
    ),
    Bad(
        "numbers among dates",
        ("nodes.csv column 'when' row 3 is '7', not an ISO date",),
        nodes=nodes(when=["2020-01-01", "7", "2020-01-03"]),
        words=("--label", "kind", *TIME),
    ),
    Bad(
        "edges on another clock",
        ("edges.csv column 'day' row 2 is '7', not an ISO date",),
        edges=edges("a,b,7"),
        words=("--label", "kind", *TIME, "--edge-time", "day"),
    ),
    Bad(
        "an end that is no moment",
        ("--train-until is 'soon', not an ISO date",),
        words=("--label", "kind", *TIME, "--train-until", "soon"),
    ),
    Bad(
        "an end before everything",
        ("no node is from 1999-01-01 or before",),
        words=("--label", "kind", *TIME, "--train-until", "1999-01-01"),
    ),
    Bad(
        "validation before training",
        ("--val-until 2020-01-01 is before --train-until",),
        words=("--label", "kind", *TIME, "--train-until", "2020-01-02", "--val-until", "2020-01-01"),
    ),
    Bad(
        "a part that there is not",
        ("nodes.csv column 'part' row 3 is 'exam'; a split column holds train, val and test",),
        nodes=nodes(part=["train", "exam", "test"]),
        words=("--label", "kind", "--split-column", "part"),
    ),
    Bad(
        "nobody trains",
        ("nodes.csv column 'part' puts no row into train",),
        nodes=nodes(part="test"),
        words=("--label", "kind", "--split-column", "part"),
    ),
    Bad(
        "fractions that do not add up",
        ("fractions must be three numbers",),
        words=("--label", "kind", "--fractions", "0.5,0.1,0.1"),
    ),
    Bad(
        "fractions that are none",
        ("--fractions must be numbers separated by commas",),
        words=("--label", "kind", "--fractions", "most,few,few"),
    ),
    Bad(
        "an unknown rule for unknown nodes",
        ("--unknown-nodes must be one of error, drop, add; got 'keep'",),
        words=("--unknown-nodes", "keep"),
    ),
    Bad(
        "no word vectors",
        ("glove.txt does not exist",),
        words=(
            "--label",
            "kind",
            "--text",
            "about",
            "--split-column",
            "part",
            "--text-method",
            "vectors",
            "--text-model",
            "glove.txt",
        ),
    ),
    Bad(
        "no label and no task",
        ("give the label column with --label, or use --task unsupervised",),
        words=(),
    ),
]
