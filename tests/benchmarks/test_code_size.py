"""Code is counted as written and formatted alike."""

from pathlib import Path

from benchmarks.code_size import formatted, size


def test_lines_are_counted_after_formatting_and_statements_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('x = {"one": 1,\n     "two": 2}; y = 2  # fmt: skip\n')
    assert size([path]) == (1, 2, 2)
    formatted(tmp_path)
    assert path.read_text() == 'x = {"one": 1, "two": 2}\ny = 2\n'
    assert size([path]) == (1, 2, 2)
