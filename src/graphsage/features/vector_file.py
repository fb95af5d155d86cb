"""Pre-trained word vectors: GloVe's text format, and word2vec's text and binary formats (`.gz` too).

GloVe           the 0.1 0.2 ...
word2vec text   a first line `words width`, then as GloVe
word2vec binary a first line `words width`, then for each word its name, a space and `width` float32
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import numpy as np

from graphsage.errors import DataError
from graphsage.features.recipe import Floats

_LONGEST = 1 << 16  # bytes of a word; a longer one means that the file is something else


def read_vectors(path: Path) -> Iterator[tuple[str, Floats]]:
    """Words and their vectors in the order of the file; all vectors have the same width."""
    try:
        with _opened(path) as file:
            first = file.readline(1 << 20)
            header = first.split()
            if len(header) == 2 and all(part.isdigit() for part in header):
                count, width = int(header[0]), int(header[1])
                binary = path.name.removesuffix(".gz").endswith(".bin")
                yield from _binary(file, count, width, path) if binary else _text(file, width, 2, path)
            elif first:
                word, vector = _line(first, None, 1, path)
                yield word, vector
                yield from _text(file, len(vector), 2, path)
            else:
                raise DataError(f"{path} is empty; it must hold word vectors")
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; it must be a file of word vectors (GloVe or word2vec)") from None
    except (OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read ({error}); fetch it again") from error


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _text(file: IO[bytes], width: int, start: int, path: Path) -> Iterator[tuple[str, Floats]]:
    for number, line in enumerate(file, start):
        if line.strip():
            yield _line(line, width, number, path)


def _line(line: bytes, width: int | None, number: int, path: Path) -> tuple[str, Floats]:
    parts = line.decode("utf-8", "replace").rstrip().split(" ")
    width = len(parts) - 1 if width is None else width
    try:  # a word may itself contain spaces (GloVe 840B has some)
        vector = np.array(parts[len(parts) - width :], np.float32)
        whole = len(vector) == width > 0 and bool(np.isfinite(vector).all()) and len(parts) > width
    except ValueError:
        whole = False
    if not whole:
        raise DataError(f"{path} line {number} is not a word and {width} numbers; is it a file of word vectors?")
    return " ".join(parts[: len(parts) - width]), vector


def _binary(file: IO[bytes], count: int, width: int, path: Path) -> Iterator[tuple[str, Floats]]:
    for number in range(1, count + 1):
        name = bytearray()
        while (byte := file.read(1)) != b" ":
            if not byte or len(name) > _LONGEST:
                raise DataError(f"{path} ends within word {number} of {count}; fetch it again")
            name += byte
        numbers = file.read(4 * width)
        if len(numbers) < 4 * width:
            raise DataError(f"{path} ends within word {number} of {count}; fetch it again")
        yield name.decode("utf-8", "replace").lstrip("\n"), np.frombuffer(numbers, "<f4").astype(np.float32)
