"""`graphsage live` and `graphsage serve`, as far as they do not serve."""

from pathlib import Path

import pytest

from command_line import Command, N
from graphsage.cli import serve as serve_command
from graphsage.datasets.dataset import Dataset


def test_a_store_is_made_verified_backed_up_restored_and_compacted(
    graphsage: Command, run: Path, tmp_path: Path
) -> None:
    store, copy, back = tmp_path / "graph", tmp_path / "copy", tmp_path / "back"
    made = graphsage("live", "create", run, store, "--json").json
    assert (made["generation"], made["nodes"], made["changes"]) == (1, N, 0)
    assert graphsage("live", "verify", store, "--json").json == made
    assert graphsage("live", "backup", store, copy, "--json").json == {"generation": 1, "sequence": 0}
    assert graphsage("live", "restore", copy, back, "--json").json == made
    assert graphsage("live", "compact", back, "--json").json == {"generation": 2, "sequence": 0}
    assert "nodes" in graphsage("live", "verify", back).out
    assert "already exists" in graphsage("live", "create", run, store).error
    assert "already exists" in graphsage("live", "restore", copy, back).error
    (store / "generation-000001" / "keys.npy").write_bytes(b"")
    assert "keys.npy has 0 bytes, and 848 were written; restore a backup" in graphsage("live", "verify", store).error
    assert "is not a live graph" in graphsage("live", "verify", tmp_path).error


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "give RUN and --graph FOLDER, or --demo"),
        (["RUN"], "give RUN and --graph FOLDER, or --demo"),
        (["RUN", "--demo"], "--demo brings its own RUN"),
        (["RUN", "--graph", "DATA"], "is not a live graph"),
        (["RUN", "--graph", "NEW", "--host", "0.0.0.0"], "can be reached from other machines; give keys"),
        (["RUN", "--graph", "NEW", "--map", "umap"], "--map must be one of auto, pca, tsne; got 'umap'"),
        (["RUN", "--graph", "NEW", "--api-keys", "NEW"], "cannot be read as a file of keys"),
        (["RUN", "--graph", "NEW", "--deadline", "0"], "--deadline must be above 0"),
    ],
)
def test_mistakes_are_one_sentence(
    graphsage: Command, run: Path, data: Path, tmp_path: Path, options: list[str], sentence: str
) -> None:
    named = {"RUN": run, "DATA": data, "NEW": tmp_path / "new"}
    assert sentence in graphsage("serve", *(named.get(word, word) for word in options)).error
    assert not (tmp_path / "new").exists()


def test_the_demo_serves_its_own_model_and_graph(
    graphsage: Command, texts: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    served = []
    monkeypatch.setattr("graphsage.serving.run.serve", lambda *given, **options: served.append((given, options)))
    answer = graphsage("serve", "--demo", "--port", "0")
    assert answer.code == 0, answer.err
    assert served[0][0] == (Path("demo-out/model"), Path("demo-out/graph"))
    assert graphsage("live", "verify", "demo-out/graph", "--json").json["nodes"] == N
    assert "training" in answer.err
    assert "training" not in graphsage("serve", "--demo").err, "trained twice"
    assert serve_command.command.__doc__
