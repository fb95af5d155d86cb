"""An option without effect is refused, or reported where it depends on the machine."""

from pathlib import Path

import pytest

from command_line import SMALL, Command

TABLES = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "part")
EDGES = ("--edges", "edges.csv", "--task", "unsupervised")
FILES = {
    "nodes.csv": "id,part,words,use\n" + "".join(f"{v},{'ab'[v % 2]},some text,train\n" for v in range(12)),
    "edges.csv": "source,target\n" + "".join(f"{v},{(v + 1) % 12}\n" for v in range(12)),
    "edges.jsonl": "".join(f'{{"source": {v}, "target": {(v + 1) % 12}}}\n' for v in range(12)),
    "space.toml": "[space]\nlr = [0.01, 0.1]\n",
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)


@pytest.mark.parametrize(
    "words", [("--num-walks", "3"), ("--depth", "2"), ("--supervised-weight", "2"), ("--set", "hidden_dim=16")]
)
def test_a_setting_without_effect_is_reported(graphsage: Command, data: Path, words: tuple[str, ...]) -> None:
    flag = "--hidden-dim" if words[0] == "--set" else words[0]
    done = graphsage("train", data, *SMALL, *words, "--out", "run")
    assert done.code == 0
    assert f"warning: {flag} has no effect with " in done.err


@pytest.mark.parametrize("words", [("--max-restarts", "1"), ("--rank-timeout", "9")])
def test_an_option_of_several_workers_is_refused_for_one(
    graphsage: Command, data: Path, words: tuple[str, ...]
) -> None:
    assert f"error: {words[0]} has no effect here: it applies " in graphsage("train", data, *SMALL, *words).error
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--text-dim", "8", *TABLES),
        ("--text-method", "word2vec", *TABLES),
        ("--text-model", "words.txt", "--text", "words", *TABLES),
        ("--text-dim", "8", "--text", "words", "--text-method", "vectors", "--text-model", "words.txt", *TABLES),
        ("--time-order", "a,b", *TABLES),
        ("--split-seed", "3", "--split-column", "use", *TABLES),
        ("--fractions", "0.5,0.2,0.3", "--split-column", "use", *TABLES),
        ("--label-separator", "|", *EDGES),
        ("--unknown-nodes", "drop", *EDGES),
        ("--delimiter", ";", "--edges", "edges.jsonl", "--task", "unsupervised"),
    ],
)
def test_a_role_of_tables_without_effect_is_refused(graphsage: Command, words: tuple[str, ...]) -> None:
    assert f"error: {words[0]} has no effect " in graphsage("train", *words, *SMALL).error


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (("data", "build", "tables", "--edges", "edges.csv", "--feature-type", "float16"), "--feature-type"),
        (("data", "build", "tables", "--edges", "edges.csv", "--unknown-nodes", "drop"), "--unknown-nodes"),
        (("reproduce", "report", "--seeds", "3"), "--seeds"),
        (("reproduce", "report", "--data", "setmm"), "--data"),
    ],
)
def test_other_commands_refuse_options_without_effect(graphsage: Command, words: tuple[str, ...], flag: str) -> None:
    assert f"error: {flag} has no effect here: " in graphsage(*words).error


def test_the_seed_of_a_grid_is_refused(graphsage: Command, data: Path) -> None:
    words = ("sweep", data, "--space", "space.toml", "--sampler", "grid", "--device", "cpu")
    assert "--seed has no effect here" in graphsage(*words, "--seed", "3").error


def test_data_beside_new_rows_alone_is_refused(graphsage: Command, run: Path, data: Path) -> None:
    words = ("embed", run, data, "--new-nodes", "nodes.csv", "--new-only", "--out", "z.npy")
    assert f"leave DATA ({data}) out" in graphsage(*words).error


def test_an_option_without_effect_on_this_machine_is_reported(graphsage: Command, data: Path) -> None:
    done = graphsage("train", data, *SMALL, "--tf32", "--out", "run")
    assert done.code == 0
    assert "warning: --tf32 has no effect on a CPU" in done.err


def test_options_with_effect_are_taken(graphsage: Command, data: Path) -> None:
    words = ("--aggregator", "pool", "--hidden-dim", "8", "--depth", "2", "--cap", "row", "--combine", "halves")
    walks = ("--task", "joint", "--num-walks", "2", "--supervised-weight", "0.5", "--head-scale")
    assert graphsage("train", data, *SMALL, *words, *walks, "--out", "run").code == 0
