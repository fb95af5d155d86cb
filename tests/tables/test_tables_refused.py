"""Every broken table ends with one sentence that names the place, exit code 2, and no file left behind."""

from pathlib import Path

import pytest

from bad_tables import BAD, Bad
from graphsage.cli.main import main


def test_the_corpus_is_large_and_its_names_differ() -> None:
    assert len(BAD) >= 60
    assert len({bad.name for bad in BAD}) == len(BAD)


@pytest.mark.parametrize("bad", BAD, ids=[bad.name for bad in BAD])
def test_a_broken_table_is_one_sentence_and_leaves_nothing(
    bad: Bad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHSAGE_CACHE", str(tmp_path / "cache"))
    files = {f"nodes{bad.suffix}": bad.nodes, f"edges{bad.edge_suffix}": bad.edges, **bad.more}
    for name, content in files.items():
        if content is not None:
            Path(name).write_bytes(content)
    before = sorted(Path().iterdir())
    code = main(
        [
            "train",
            "--nodes",
            f"nodes{bad.suffix}",
            "--edges",
            f"edges{bad.edge_suffix}",
            *bad.words,
            "--out",
            "run",
            "--steps",
            "1",
            "--dim",
            "4",
            "--sample-sizes",
            "2,2",
            "--device",
            "cpu",
        ]
    )
    out, err = capsys.readouterr()
    assert code == 2, err
    assert out == ""
    assert "Traceback" not in err
    last = err.rstrip("\n").splitlines()[-1]
    assert last.startswith("error: ")
    assert len(last) < 500
    for part in bad.says:
        assert part in last
    assert sorted(path for path in Path().iterdir() if path.name != "cache") == before
