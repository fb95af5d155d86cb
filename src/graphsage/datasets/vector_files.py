"""Ready-made features in files: `.npy`, and SciPy's sparse `.npz`, read without pickle and within bounds."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphsage.datasets.reading import read_features
from graphsage.errors import DataError
from graphsage.graph.npz import Archive, read_sparse

_MOST = 1 << 32  # numbers of the dense matrix: 16 GiB


def read_vector_file(path: Path) -> npt.NDArray[np.float32]:
    """The matrix (N, D), dense."""
    return _dense(path) if path.suffix == ".npz" else read_features(path)


def _dense(path: Path) -> npt.NDArray[np.float32]:
    matrix = read_sparse(Archive(path))
    rows, columns = matrix.shape
    if rows * columns > _MOST:
        raise DataError(f"{path} has shape {(rows, columns)}; as a dense matrix it may have at most {_MOST} numbers")
    if matrix.dtype.kind not in "fiub":
        raise DataError(f"{path} must hold numbers; got {matrix.dtype}")
    if not np.isfinite(matrix.data).all():
        raise DataError(f"{path} holds NaN or infinity; fill or drop it first")
    return np.asarray(matrix.toarray(), dtype=np.float32)
