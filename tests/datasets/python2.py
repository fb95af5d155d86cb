"""Pickles as Python 2 wrote them (protocol 2, byte strings), instruction by instruction: Planetoid's files are such."""

import struct
from typing import Any

import numpy as np
from scipy import sparse


def dumps(value: Any) -> bytes:
    return b"\x80\x02" + _encoded(value) + b"."


def _encoded(value: Any) -> bytes:
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return b"K" + bytes([value]) if 0 <= value < 256 else b"J" + struct.pack("<i", value)
    if isinstance(value, str | bytes):
        raw = value.encode("latin1") if isinstance(value, str) else value
        return (b"U" + bytes([len(raw)]) if len(raw) < 256 else b"T" + struct.pack("<i", len(raw))) + raw
    if isinstance(value, tuple):
        return b"(" + b"".join(map(_encoded, value)) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(map(_encoded, value)) + b"e"
    if isinstance(value, np.dtype):
        state = (3, value.str[0], None, None, None, -1, -1, 0)
        return b"cnumpy\ndtype\n" + _encoded((value.str[1:], 0, 1)) + b"R" + _encoded(state) + b"b"
    if isinstance(value, np.ndarray):
        made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + _encoded((0,)) + _encoded("b") + b"tR"
        state = _encoded((1, value.shape, value.dtype, False, value.tobytes()))
        return made + state + b"b"
    if sparse.issparse(value):
        parts = {
            "_shape": value.shape,
            "maxprint": 50,
            "indices": value.indices,
            "indptr": value.indptr,
            "data": value.data,
        }
        return b"cscipy.sparse.csr\ncsr_matrix\n)\x81" + _items(b"}", parts) + b"b"
    if isinstance(value, dict):
        return _items(b"ccollections\ndefaultdict\n(c__builtin__\nlist\ntR", value)
    raise TypeError(type(value))


def _items(made: bytes, items: dict[Any, Any]) -> bytes:
    return made + b"(" + b"".join(_encoded(key) + _encoded(item) for key, item in items.items()) + b"u"
