"""A graph on disk: a folder of `.npy` files + `graph.json`, opened by memory-mapping. Nothing in it executes.

`graph.json` has a checksum of itself and of each block of the arrays. Opening verifies arrays up to WHOLE_BYTES, and 64
blocks of larger ones. Out-of-core inference verifies each block that it reads, whatever the size.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsage.atomic import atomic_folder
from graphsage.checksummed_blocks import CheckedFile, FileSums, sums_of
from graphsage.checksummed_json import verified, write_checksummed
from graphsage.errors import DataError, GraphError
from graphsage.graph.external.row_file import HEADER_ERRORS
from graphsage.graph.graph import OF_EDGES, Graph
from graphsage.graph.ids import NodeIds
from graphsage.graph.split import Split
from graphsage.regular_files import is_regular, parse_json, read_regular
from graphsage.tables.spec import DIRECTIONS

FORMAT = 3  # 3: relations
WHOLE_BYTES = 1 << 30
_SAMPLED = 64  # blocks of a larger file
_ADVICE = "save the graph again"
_TENSORS = ("indptr", "indices", "features", "labels", "time", "graph_number", *OF_EDGES)
_LISTS = ("indptr", "indices", *OF_EDGES)  # what each relation has
_RELATION = "relation-"  # relation-0-indptr is the row pointers of the first relation
_BFLOAT16 = "i2"  # NumPy has no bfloat16: such features are kept as the int16 of the same bits
_KINDS = {
    "indices": "i4 i8",
    "features": f"f2 f4 f8 {_BFLOAT16}",
    "labels": "i8 u1 f8",
    "edge_weight": "f4",
    "ids_text": "u1",
}  # others: i8
_ABOUT_BYTES = 1 << 30  # checksums of 8 TB of arrays
_DIMS = {"features": (2,), "labels": (1, 2)}  # all others: 1


def save_graph(graph: Graph, folder: str | Path, splits: dict[str, Split] | None = None) -> None:
    """Write `graph` and its named splits as a folder, whole or not at all. It replaces a graph folder, nothing else."""
    with atomic_folder(folder, is_graph_folder) as temporary:
        arrays: dict[str, Any] = {
            name: _array(tensor) for name in _TENSORS if (tensor := getattr(graph, name)) is not None
        }
        for number, each in enumerate(graph.relations.values()):
            arrays |= {
                f"{_RELATION}{number}-{name}": _array(tensor)
                for name in _LISTS
                if (tensor := getattr(each, name)) is not None
            }
        if graph.ids is not None:
            arrays |= graph.ids.arrays()
        cutoffs = {}
        for name, split in (splits or {}).items():
            arrays[f"split-{name}"] = split.codes.numpy()
            cutoffs[name] = split.cutoff
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array)
        about = {
            "nodes": graph.num_nodes,
            "stored_edges": graph.num_stored_edges,
            "direction": graph.direction,
            "relations": [[name, each.direction] for name, each in graph.relations.items()],
            "class_names": graph.class_names,
            "arrays": sorted(arrays),
            "splits": cutoffs,
        }
        write_about(temporary, about)


def write_about(folder: Path, about: dict[str, Any]) -> None:
    """Write `graph.json`, with checksums of the arrays that `about` names."""
    files = {name: sums_of(folder / f"{name}.npy").as_json() for name in about["arrays"]}
    write_checksummed(folder / "graph.json", {"format": FORMAT, **about, "files": files})


def is_graph_folder(path: Path) -> bool:
    """Whether `path` holds a saved graph and nothing else, so that it can be replaced."""
    if not is_regular(path / "graph.json"):
        return False
    return all(file.is_file() and (file.name == "graph.json" or file.suffix == ".npy") for file in path.iterdir())


def open_graph(folder: str | Path, check: bool = True) -> Graph:
    """Open a saved graph by mapping its arrays. `check` verifies them; without it, contents are trusted."""
    folder = Path(folder)
    about = _about(folder)
    if check:
        for file in checked_files(folder).values():
            _verify(file)
    arrays = {
        name: _checked(folder / f"{name}.npy", _KINDS.get(_plain(name), "i8"), _DIMS.get(_plain(name), (1,)))
        for name in about["arrays"]
        if not name.startswith("split-")
    }
    prefixes = ["", *(f"{_RELATION}{number}-" for number in range(len(about["relations"])))]
    for prefix in prefixes:
        for required in ("indptr", "indices"):
            if prefix + required not in arrays:
                raise DataError(f"{folder} lacks {prefix}{required}.npy; it is not a whole graph folder, {_ADVICE}")
    tensors: dict[str, Tensor] = {name: _mapped(arrays[name]) for name in _TENSORS if name in arrays}
    ids, names = NodeIds.from_arrays(arrays), about.get("class_names")
    relations = {
        name: Graph(
            _mapped(arrays[f"{prefix}indptr"]),
            _mapped(arrays[f"{prefix}indices"]),
            edge_time=_mapped(arrays[f"{prefix}edge_time"]) if f"{prefix}edge_time" in arrays else None,
            edge_weight=_mapped(arrays[f"{prefix}edge_weight"]) if f"{prefix}edge_weight" in arrays else None,
            ids=ids,
            direction=direction,
        )
        for prefix, (name, direction) in zip(prefixes[1:], about["relations"], strict=True)
    }
    graph = Graph(
        **tensors,
        class_names=None if names is None else tuple(names),
        ids=ids,
        direction=about["direction"],
        relations=relations,
    )
    for each in (graph, *relations.values()):
        _check_shapes(each, folder)
        if each.num_nodes != graph.num_nodes:
            raise GraphError(f"{folder}: a relation has {each.num_nodes} nodes, the graph {graph.num_nodes}; {_ADVICE}")
        if check and each.indices.nbytes <= WHOLE_BYTES:
            _check_edges(each, folder)
    if graph.ids is not None and not (graph.ids.is_whole and len(graph.ids) == graph.num_nodes):
        names = " and ".join(f"{name}.npy" for name in graph.ids.arrays())
        raise GraphError(f"{folder}: {names} must hold the ids of {graph.num_nodes} nodes; save the graph again")
    return graph


def open_splits(folder: str | Path) -> dict[str, Split]:
    """The named splits kept with a saved graph."""
    folder = Path(folder)
    about, files = _about(folder), checked_files(folder)
    for name in about["splits"]:
        if f"split-{name}" not in files:
            raise DataError(
                f"{folder / 'graph.json'} is damaged (the split {name!r} is not among the arrays); {_ADVICE}"
            )
        _verify(files[f"split-{name}"])
    return {
        name: Split(_mapped(_checked(folder / f"split-{name}.npy", "u1", (1,))), cutoff)
        for name, cutoff in about["splits"].items()
    }


def checked_files(folder: Path) -> dict[str, CheckedFile]:
    """The arrays of a graph folder by name, with their checksums."""
    sums = _about(folder)["files"]
    return {
        n: CheckedFile(folder / f"{n}.npy", FileSums.from_json(each), DataError, _ADVICE) for n, each in sums.items()
    }


def _verify(file: CheckedFile) -> None:
    if file.known.size <= WHOLE_BYTES:
        file.check()
    else:
        for block in np.linspace(0, len(file.known.sums) - 1, _SAMPLED).astype(int).tolist():
            file.verify(block)


def _check_edges(graph: Graph, folder: Path) -> None:
    """Refuse pointers and neighbors outside of the graph: reading there would end the process."""
    if bool((graph.indptr[1:] < graph.indptr[:-1]).any()):
        raise GraphError(f"{folder}: indptr.npy decreases; {_ADVICE}")
    if len(graph.indices) and not 0 <= int(graph.indices.min()) <= int(graph.indices.max()) < graph.num_nodes:
        raise GraphError(f"{folder}: indices.npy holds rows that the graph of {graph.num_nodes} nodes lacks; {_ADVICE}")


def save_adjacency(graph: Graph, folder: Path) -> None:
    """Write only `indptr.npy`, `indices.npy` and weights, or those of each relation."""
    folder.mkdir(parents=True)
    for number, each in enumerate(graph.by_relation):
        prefix = f"{_RELATION}{number}-" if graph.relations else ""
        for name in ("indptr", "indices", "edge_weight"):
            if getattr(each, name) is not None:
                np.save(folder / f"{prefix}{name}.npy", _array(getattr(each, name)))


def open_adjacency(folder: Path, graph: Graph) -> Graph:
    """`graph` with the lists of `save_adjacency`, mapped; contents are trusted."""

    def lists(whole: Graph, prefix: str = "") -> Graph:
        kept = {
            name: _mapped(_checked(file, _KINDS.get(name, "i8"), (1,)))
            for name in ("indptr", "indices", "edge_weight")
            if (file := folder / f"{prefix}{name}.npy").is_file()
        }
        for name in ("indptr", "indices"):
            if name not in kept:
                raise DataError(f"{folder} lacks {prefix}{name}.npy; copy the run again, or train again")
        return Graph(
            kept["indptr"],
            kept["indices"],
            edge_weight=kept.get("edge_weight"),
            ids=whole.ids,
            direction=whole.direction,
        )

    if not graph.relations:
        return lists(graph)
    each = enumerate(graph.relations.items())
    return graph.replace(relations={name: lists(one, f"{_RELATION}{number}-") for number, (name, one) in each})


def load_array(path: Path) -> Any:
    """Map one `.npy` file read-only; a broken one is a clear error."""
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is no file")  # a FIFO would block
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except HEADER_ERRORS as error:
        if path.exists() and path.stat().st_size and _is_empty_array(path):
            return np.load(path, allow_pickle=False)
        raise DataError(f"{path} is not a whole .npy file ({error}); write it again") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise DataError(f"{path} is an archive, not an .npy file; write it again with numpy.save")
    if array.dtype.byteorder == ">":
        raise DataError(f"{path} holds big-endian numbers; save it again with .astype(array.dtype.newbyteorder('<'))")
    return array


def _is_empty_array(path: Path) -> bool:
    """Arrays without elements cannot be mapped, only read. Only the header is looked at: it may promise petabytes."""
    try:
        with path.open("rb") as file:
            old = np.lib.format.read_magic(file) == (1, 0)
            header = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
            shape, _, dtype = header(file)
            return 0 in shape and not dtype.hasobject
    except HEADER_ERRORS:
        return False


def _checked(path: Path, kinds: str, dims: tuple[int, ...]) -> Any:
    array = load_array(path)
    if array.dtype.str[1:] not in kinds.split() or array.ndim not in dims:
        raise DataError(f"{path} holds {array.dtype} of shape {array.shape}, which it cannot; save the graph again")
    return array


def _mapped(array: Any) -> Tensor:
    # from_dlpack neither copies nor warns on a read-only map; writing to the tensor would crash the process.
    tensor = torch.utils.dlpack.from_dlpack(array) if array.size else torch.from_numpy(np.array(array))
    return tensor.view(torch.bfloat16) if array.dtype.str[1:] == _BFLOAT16 else tensor


def _array(tensor: Tensor) -> Any:
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).cpu().numpy()


def _about(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        raise DataError(f"{folder} does not exist")
    path = folder / "graph.json"
    try:
        text = read_regular(path, DataError, _ABOUT_BYTES)
        about: dict[str, Any] = parse_json(text)
        version = int(about["format"])
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{folder} is not a graph folder: graph.json is missing") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from error
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is damaged ({error}); {_ADVICE}") from error
    if version > FORMAT:
        raise DataError(f"{folder} has graph format {version}, this version reads format {FORMAT}; upgrade graphsage")
    if version < FORMAT and "files" not in about:
        raise DataError(f"{folder} has graph format {version}, this version reads format {FORMAT}; {_ADVICE}")
    try:
        about = verified(text, str(path), DataError, _ADVICE)
        files = {name: FileSums.from_json(each) for name, each in about["files"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} is damaged ({error}); {_ADVICE}") from error
    arrays, names = about.get("arrays"), about.get("class_names")
    for name, right in (
        ("format", version == FORMAT),
        ("arrays", isinstance(arrays, list) and all(isinstance(a, str) and _is_known(a) for a in arrays)),
        ("files", isinstance(arrays, list) and sorted(files) == sorted(map(str, arrays))),
        ("direction", about.get("direction") in DIRECTIONS),
        ("relations", _are_relations(about.get("relations"))),
        ("splits", isinstance(about.get("splits"), dict)),
        ("class_names", names is None or (isinstance(names, list) and all(isinstance(c, str) for c in names))),
    ):
        if not right:
            raise DataError(f"{folder / 'graph.json'} is damaged ({name} is wrong or missing); save the graph again")
    return about


def _are_relations(found: Any) -> bool:
    pairs = isinstance(found, list) and all(isinstance(each, list) and len(each) == 2 for each in found)
    return pairs and all(isinstance(name, str) and how in DIRECTIONS for name, how in found)


def _plain(array: str) -> str:
    """The name of an array without that of its relation."""
    return array.split("-", 2)[-1] if array.startswith(_RELATION) else array


def _is_known(array: str) -> bool:
    name = array.removeprefix("split-")
    known = (*_TENSORS, "ids", "ids_text", "ids_offsets")
    return _plain(name) in known or (name != array and "/" not in name)


def _check_shapes(graph: Graph, folder: Path) -> None:
    n, e = graph.num_nodes, graph.num_stored_edges
    if n < 1:
        raise GraphError(f"{folder}: indptr.npy has {n + 1} elements, but a graph has at least one node")
    if int(graph.indptr[0]) != 0 or int(graph.indptr[-1]) != e:
        raise GraphError(f"{folder}: indptr must run from 0 to {e}, the length of indices; got {int(graph.indptr[-1])}")
    for name in ("features", "labels", "time", "graph_number"):
        tensor = getattr(graph, name)
        if tensor is not None and tensor.shape[0] != n:
            raise GraphError(f"{folder}: {name}.npy has {tensor.shape[0]} rows, but the graph has {n} nodes")
    for name in OF_EDGES:
        tensor = getattr(graph, name)
        if tensor is not None and tensor.shape[0] != e:
            raise GraphError(f"{folder}: {name}.npy has {tensor.shape[0]} rows, but the graph stores {e} edges")
    if graph.edge_weight is not None and not bool(((graph.edge_weight > 0) & graph.edge_weight.isfinite()).all()):
        raise GraphError(f"{folder}: edge_weight.npy holds numbers that are no weights; {_ADVICE}")
