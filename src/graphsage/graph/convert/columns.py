"""Single Arrow columns -> ids, numbers, labels and times. Errors name the column and the row."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphsage.errors import DataError
from graphsage.graph.convert.common import Array, labels_from


def ids_of(column: Any, what: str) -> Any:
    """A chunked column of int64 or large_string without empty cells."""
    import pyarrow as pa

    column = _plain(column)
    _refuse_null(column, what, "an id")
    if pa.types.is_integer(column.type):
        return _cast(column, pa.int64(), what)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return _cast(column, pa.large_string(), what)
    if pa.types.is_null(column.type) and len(column) == 0:
        return _cast(column, pa.int64(), what)
    raise DataError(f"{what}: ids must be text or whole numbers; got {column.type}")


def features_of(columns: Mapping[str, Any]) -> Array:
    """Columns of numbers side by side, columns of lists as several; float16 stays, all else becomes float32."""
    tables = [_numbers(_plain(column), name) for name, column in columns.items()]
    if not tables:
        raise DataError("features must name at least one column")
    return tables[0] if len(tables) == 1 else np.concatenate(tables, axis=1)


def labels_of(column: Any, what: str) -> tuple[Array, tuple[str, ...] | None]:
    import pyarrow as pa

    column = _plain(column)
    try:
        if _is_list(column.type):
            return labels_from(_lists(column, what))
        if pa.types.is_integer(column.type):
            import pyarrow.compute as pc

            return labels_from(pc.fill_null(_cast(column, pa.int64(), what), -1).to_numpy())
        return labels_from(np.array(column.to_pylist(), object))
    except DataError as error:
        raise DataError(f"{what}: {error}") from error


def times_of(column: Any, what: str) -> Array:
    """Whole numbers, or dates as days from 1970-01-01."""
    import pyarrow as pa

    column = _plain(column)
    _refuse_null(column, what, "a time")
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        column = column.cast(pa.date32(), safe=False).cast(pa.int32())
    elif not pa.types.is_integer(column.type):
        raise DataError(f"{what}: times must be whole numbers or dates; got {column.type}; number them in their order")
    return np.asarray(_cast(column, pa.int64(), what).to_numpy())


def _numbers(column: Any, name: str) -> Array:
    import pyarrow as pa

    what = f"nodes, column {name}"
    if _is_list(column.type):
        return _float(_lists(column, what))
    _refuse_null(column, what, "a number")
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
        raise DataError(f"{what}: features must be numbers or lists of numbers; got {column.type}")
    return _float(column.to_numpy()[:, None])


def _float(array: Array) -> Array:
    return array if array.dtype == np.float16 else array.astype(np.float32)


def _lists(column: Any, what: str) -> Array:
    """Lists of one length -> (N, length)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    _refuse_null(column, what, "a list")
    lengths = pc.list_value_length(column)
    if len(lengths.unique()) > 1:
        odd = int(np.flatnonzero(lengths.to_numpy() != lengths[0].as_py())[0])
        raise DataError(f"{what}: lists must have one length; row 0 has {lengths[0]}, row {odd} has {lengths[odd]}")
    flat = pc.list_flatten(column)
    if flat.null_count or not (pa.types.is_integer(flat.type) or pa.types.is_floating(flat.type)):
        raise DataError(f"{what}: lists must hold numbers and no empty cells; got {flat.type}")
    return np.asarray(flat.to_numpy().reshape(len(column), -1))


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _plain(column: Any) -> Any:
    """Without dictionary encoding (pandas' categories)."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _refuse_null(column: Any, what: str, needed: str) -> None:
    if column.null_count:
        import pyarrow.compute as pc

        row = pc.index(pc.is_null(column), True).as_py()
        raise DataError(f"{what}: row {row} is empty; each row needs {needed}")


def _cast(column: Any, kind: Any, what: str) -> Any:
    import pyarrow as pa

    try:
        return column.cast(kind)
    except pa.ArrowException as error:
        raise DataError(f"{what}: {error}") from error
