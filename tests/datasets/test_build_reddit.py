"""Reddit from files in the archive's own format, small enough to count by hand."""

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from graphsage.datasets import build_reddit as module
from graphsage.datasets.build_reddit import Reddit, build_reddit, communities
from graphsage.datasets.open import open_data
from graphsage.datasets.sources import lines
from graphsage.errors import DataError

DAY = 86_400
SEPTEMBER = 1_409_529_600  # 2014-09-01, midnight


def post(name: str, community: str, title: str, day: int, score: int = 1) -> dict[str, Any]:
    return {
        "id": name,
        "subreddit": community,
        "title": title,
        "score": score,
        "num_comments": 9,
        "author": "x",
        "created_utc": SEPTEMBER + (day - 1) * DAY,
    }


def comment(on: str, author: str, body: str = "", community: str = "a") -> dict[str, Any]:
    return {"link_id": f"t3_{on}", "author": author, "body": body, "subreddit": community}


POSTS = [
    post("p1", "a", "cat dog", 1, 5),
    post("p2", "b", "dog", 20),
    post("p3", "a", "Unknown words", 21),
    post("p4", "b", "cat", 30),
    post("p5", "elsewhere", "cat", 2),
    post("p6", "a", "lonely", 3),
]
COMMENTS = [
    comment("p1", "ann", "cat"),
    comment("p2", "ann", "dog dog"),
    comment("p2", "bob"),
    comment("p3", "bob"),
    comment("p3", "bob", "dog cat"),
    comment("p4", "cid"),
    comment("p3", "cid"),
    comment("p5", "ann"),
    comment("p6", "[deleted]"),
    comment("p1", "[deleted]", "cat"),
    comment("gone", "ann"),
]


def write(path: Path, objects: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(each) + "\n" for each in objects).encode()
    if path.suffix == ".zst":
        with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
            stream.write(text)
    else:
        path.write_bytes(text)
    return path


@pytest.fixture
def source(tmp_path: Path) -> Reddit:
    (tmp_path / "names.txt").write_text("a\nb\n")
    (tmp_path / "glove.txt").write_text("cat 1 0\ndog 0 1\nnever 9 9\n")
    return Reddit(
        submissions=write(tmp_path / "RS_2014-09.zst", POSTS),
        comments=write(tmp_path / "RC_2014-09.zst", COMMENTS),
        vectors=tmp_path / "glove.txt",
        communities=tmp_path / "names.txt",
    )


def test_posts_are_joined_where_one_user_commented_on_both(source: Reddit, tmp_path: Path) -> None:
    graph = build_reddit(source, tmp_path / "out")
    assert [graph.id_of(row) for row in range(graph.num_nodes)] == ["p1", "p2", "p3", "p4"]  # p6 has no edge
    edges = {(int(u), int(v)) for u, v in zip(graph.edge_rows, graph.indices, strict=True) if u < v}
    assert edges == {(0, 1), (1, 2), (2, 3)}
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 1, 0, 1]
    assert graph.class_names == ("a", "b")


def test_features_are_mean_vectors_of_title_and_comments_score_and_count(source: Reddit, tmp_path: Path) -> None:
    graph = build_reddit(source, tmp_path / "out")
    assert graph.features is not None
    expected = [[0.5, 0.5, 1, 0, 5, 2], [0, 1, 0, 1, 1, 2], [0, 0, 0.5, 0.5, 1, 3], [1, 0, 0, 0, 1, 1]]
    assert graph.features.tolist() == expected


def test_the_first_20_days_train_and_the_folder_opens_again(source: Reddit, tmp_path: Path) -> None:
    build_reddit(source, tmp_path / "out")
    data = open_data(tmp_path / "out")
    assert data.default_split == "given"
    split = data.split()
    assert split.nodes("train").tolist() == [0, 1]
    assert split.sizes() == {"train": 2, "val": 1, "test": 1}


def test_communities_are_ranked_by_comments_from_11_to_50(tmp_path: Path, source: Reddit) -> None:
    files = []
    for month in (1, 2):
        each = [comment("x", "y", community=f"c{rank:02}") for rank in range(60) for _ in range(60 - rank)]
        files.append(write(tmp_path / f"RC_2014-{month:02}.zst", each))
    ranked = Reddit(
        submissions=source.submissions, comments=source.comments, vectors=source.vectors, rank_comments=files
    )
    assert communities(ranked) == [f"c{rank:02}" for rank in range(10, 50)]
    with pytest.raises(DataError, match="no community of rank 11 to 50"):
        communities(dataclasses.replace(ranked, rank_comments=[source.comments]))


def test_a_user_of_very_many_posts_joins_a_drawn_part_of_them(
    tmp_path: Path, source: Reddit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "USER_POSTS", 3)
    posts = [post(f"q{n}", "a", "cat", 1 + 27 * (n % 2)) for n in range(10)]
    write(source.submissions, posts)
    write(source.comments, [comment(f"q{n}", "busy", "cat") for n in range(10)])
    graph = build_reddit(source, tmp_path / "out")
    assert (graph.num_nodes, graph.num_edges) == (3, 3)


def test_edges_are_down_sampled_where_asked(tmp_path: Path, source: Reddit) -> None:
    write(source.submissions, [post(f"q{n}", "a", "cat", 10 + n) for n in range(12)])
    write(source.comments, [comment(f"q{n}", "busy", "cat") for n in range(12)])
    capped = dataclasses.replace(source, max_degree=4)
    assert int(build_reddit(capped, tmp_path / "out").degrees.max()) <= 4


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("submissions", b'{"id": 1}\n', "line 1 must be a JSON object with id, subreddit, title"),
        ("comments", b"no json\n", "line 1 must be a JSON object with link_id"),
        ("submissions", b"", "has no post in any of the 2 communities"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, source: Reddit, file: str, content: bytes, message: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        build_reddit(dataclasses.replace(source, **{file: path}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("suffix", [".txt", ".gz", ".bz2", ".xz", ".zst"])
def test_lines_are_read_whatever_the_compression(tmp_path: Path, suffix: str) -> None:
    import bz2
    import gzip
    import lzma

    text = "".join(f"line {n} é\n" for n in range(3000))
    path = tmp_path / f"file{suffix}"
    packers = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".txt": bytes}
    if suffix == ".zst":
        with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
            stream.write(text.encode())
    else:
        path.write_bytes(packers[suffix](text.encode()))
    assert list(lines(path)) == text.splitlines()
    if suffix != ".txt":
        path.write_bytes(path.read_bytes()[:50])
        with pytest.raises(DataError, match="cannot be read"):
            assert len(list(lines(path))) == 3000, "cut short without a word"
    with pytest.raises(DataError, match="does not exist"):
        list(lines(tmp_path / f"nothing{suffix}"))


def test_no_word_with_a_vector_is_an_error(tmp_path: Path, source: Reddit) -> None:
    source.vectors.write_text("zebra 1 2\n")
    with pytest.raises(DataError, match="has a vector for no word"):
        build_reddit(source, tmp_path / "out")


@pytest.mark.parametrize(
    "change",
    [
        {"created_utc": None},
        {"created_utc": "soon"},
        {"created_utc": 10**18},
        {"score": "many"},
        {"id": ["p1"]},
        {"subreddit": ["a"]},
    ],
)
def test_a_post_with_an_odd_value_is_named_or_left_out(source: Reddit, tmp_path: Path, change: dict[str, Any]) -> None:
    write(source.submissions, [{**POSTS[0], **change}, *POSTS[1:]])
    if "id" in change or "subreddit" in change:
        assert build_reddit(source, tmp_path / "out").num_nodes == 3
    else:
        with pytest.raises(DataError, match=f"post p1.*{next(iter(change))}"):
            build_reddit(source, tmp_path / "out")


def test_times_may_be_written_as_text_with_a_point(source: Reddit, tmp_path: Path) -> None:
    write(source.submissions, [{**each, "created_utc": f"{each['created_utc']}.0"} for each in POSTS])
    assert build_reddit(source, tmp_path / "out").num_nodes == 4


def test_posts_that_nobody_joins_are_no_graph(source: Reddit, tmp_path: Path) -> None:
    write(source.comments, [{**each, "author": "[deleted]"} for each in COMMENTS])
    with pytest.raises(DataError, match="no user commented on two posts"):
        build_reddit(source, tmp_path / "out")


@pytest.mark.parametrize("kept", [1, 3, 1000])
def test_pairs_are_the_distinct_ones_however_many_are_kept_at_once(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAIRS", kept)
    users = [{1, 2, 3}, {4}, {2, 3}, set(), {0, 3}, {1, 2, 3, 4}]
    expected = {pair for user in users for pair in itertools.combinations(sorted(user), 2)}
    found = [tuple(pair) for pair in module._joined(users, 5, 0).tolist()]
    assert found == sorted(expected)


@pytest.mark.parametrize(
    ("shift", "message"), [(-21, "no joined post is from after day 20"), (20, "no joined post is from up to day 20")]
)
def test_a_month_without_posts_to_train_or_to_test_on_is_refused(
    source: Reddit, tmp_path: Path, shift: int, message: str
) -> None:
    days = [max(1, min(30, int((each["created_utc"] - SEPTEMBER) // DAY + 1 + shift))) for each in POSTS]
    moved = [{**each, "created_utc": SEPTEMBER + (day - 1) * DAY} for each, day in zip(POSTS, days, strict=True)]
    write(source.submissions, moved)
    with pytest.raises(DataError, match=message):
        build_reddit(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()
