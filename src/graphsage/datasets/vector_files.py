"""Ready-made features in files: `.npy`, and SciPy's sparse `.npz`, read without pickle and within bounds."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsage.datasets.reading import read_features
from graphsage.errors import DataError

_MOST = 1 << 32  # numbers of the dense matrix: 16 GiB
_PARTS = ("format", "shape", "data", "indices", "indptr")


def read_vector_file(path: Path) -> npt.NDArray[np.float32]:
    """The matrix (N, D), dense."""
    return _read_sparse(path) if path.suffix == ".npz" else read_features(path)


def _read_sparse(path: Path) -> npt.NDArray[np.float32]:
    parts = _parts(path)
    shape = tuple(int(size) for size in parts["shape"].tolist())
    kind = parts["format"].item()
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if kind not in ("csr", "csc") or len(shape) != 2:
        raise DataError(f"{path} must hold a sparse matrix of format csr or csc; got {kind!r} of shape {shape}")
    if min(shape) < 0 or shape[0] * shape[1] > _MOST:
        raise DataError(f"{path} has shape {shape}; as a dense matrix it may have at most {_MOST} numbers")
    from scipy.sparse import csc_matrix, csr_matrix

    maker = csr_matrix if kind == "csr" else csc_matrix
    try:
        matrix = maker((parts["data"].astype(np.float32), parts["indices"], parts["indptr"]), shape)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"{path} is not a whole sparse matrix ({error}); write it again with scipy.sparse") from error
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        raise DataError(f"{path} holds NaN or infinity; fill or drop it first")
    return np.asarray(matrix.toarray(), dtype=np.float32)


def _parts(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
            if unpacked > 4 * _MOST:
                raise DataError(f"{path} unpacks to {unpacked} bytes, which is too much")
        with np.load(path, allow_pickle=False) as held:
            missing = [name for name in _PARTS if name not in held.files]
            if missing:
                raise DataError(f"{path} lacks {missing[0]!r}; it must be written by scipy.sparse.save_npz")
            return {name: held[name] for name in _PARTS}
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except DataError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is not a whole .npz file ({error}); write it again") from error
