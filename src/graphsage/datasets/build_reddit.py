"""The paper's Reddit graph (section 4.1, Appendices B and C) from the archive's files of submissions and comments.

One JSON object per line. Communities are those ranked 11 to 50 by comments over the year; a node is a post in one of
them; two posts are joined where one user commented on both. Features: the mean vector of the title's words, the mean
vector of all comments' words, the score and the number of comments. Posts of the month's first 20 days train; of the
others 30% validate. The comments are read twice: once for who commented where and which words occur, once for vectors.
A user who commented on more than 100 posts joins 100 of them, drawn at random: the paper does not say what it does with
such users, and their pairs alone would be most of the edges.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphsage.datasets.sources import Array, largest_component, lines
from graphsage.errors import DataError
from graphsage.features.word_vectors import read_vectors, words_of
from graphsage.graph.cap import cap_degrees
from graphsage.graph.graph import Graph
from graphsage.graph.split import Split, with_validation
from graphsage.graph.storage import save_graph
from graphsage.kernels.random import Stream

RANKS = (11, 50)
TRAIN_DAYS = 20
DELETED = ("[deleted]", "", None)  # authors of deleted accounts are not one user
LATEST, _SECONDS = 2.0**33, " of seconds since 1970"
PAIRS = 1 << 24  # kept before those that occur twice are dropped
USER_POSTS = 100  # drawn of a user with more: pairs grow with the square


@dataclass(frozen=True, kw_only=True)
class Reddit:
    """What the graph is made of. `communities` names them, or `rank_comments` are a year's comments to rank them by."""

    submissions: Path
    comments: Path
    vectors: Path
    communities: Path | None = None
    rank_comments: Sequence[Path] = ()
    max_degree: int | None = None
    """Edges are sampled down to this degree. None keeps all."""
    seed: int = 0


@dataclass
class Posts:
    """Posts in the order of the file, and where each is."""

    place: dict[str, int] = field(default_factory=dict)
    titles: list[str] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    times: list[int] = field(default_factory=list)


def build_reddit(source: Reddit, out: Path) -> Graph:
    """Write the graph folder `out` with the split `given` and return the graph."""
    names = communities(source)
    posts = read_posts(source.submissions, names)
    edges, words, counts = read_comments(source, posts)
    rows, edges = largest_component(len(posts.titles), edges)
    features = np.concatenate([text_features(source, posts, words), _numbers(posts, counts)], axis=1)[rows]
    ids = list(posts.place)
    graph = Graph.from_edges(
        edges,
        len(rows),
        features=features,
        labels=np.array(posts.labels)[rows],
        class_names=names,
        ids=[ids[row] for row in rows],
        time=np.array(posts.times)[rows],
    )
    graph = cap_degrees(graph, source.max_degree, seed=source.seed)
    save_graph(graph, out, {"given": split_by_day(np.array(posts.times)[rows], source.seed)})
    return graph


def communities(source: Reddit) -> list[str]:
    """Names of communities: those of the file, or those ranked 11 to 50 by their comments."""
    if source.communities is not None:
        found = [name.strip() for name in lines(source.communities) if name.strip()]
    else:
        counts = Counter(str(each["subreddit"]) for path in source.rank_comments for each in objects(path, "subreddit"))
        ranked = sorted(counts, key=lambda name: (-counts[name], name))
        found = ranked[RANKS[0] - 1 : RANKS[1]]
    if not found:
        raise DataError(
            f"there is no community of rank {RANKS[0]} to {RANKS[1]}; give a year of comments to rank by, or name the "
            "communities in a file"
        )
    return list(dict.fromkeys(found))


def read_posts(path: Path, names: Sequence[str]) -> Posts:
    posts, label = Posts(), {name: number for number, name in enumerate(names)}
    for each in objects(path, "id", "subreddit", "title", "created_utc"):
        name, community = str(each["id"]), str(each["subreddit"])
        if community in label and name not in posts.place:
            posts.place[name] = len(posts.titles)
            posts.titles.append(str(each["title"]))
            posts.labels.append(label[community])
            posts.scores.append(_number(path, name, "score", each.get("score") or 0))
            posts.times.append(int(_number(path, name, "created_utc", each["created_utc"], LATEST)))
    if not posts.titles:
        raise DataError(f"{path} has no post in any of the {len(names)} communities")
    return posts


def _number(path: Path, post: str, name: str, value: Any, limit: float = np.inf) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = np.nan
    if not abs(found) < limit:
        raise DataError(
            f"{path} post {post}: {name} must be a number{_SECONDS if limit < np.inf else ''}; got {value!r}"
        )
    return found


def read_comments(source: Reddit, posts: Posts) -> tuple[Array, set[str], Array]:
    """Edges between posts with a commenter in common, every word that occurs, and each post's number of comments."""
    words = {word for title in posts.titles for word in words_of(title)}
    counts = np.zeros(len(posts.titles), np.int64)
    by_user: defaultdict[str, set[int]] = defaultdict(set)
    for place, each in comments_on(source.comments, posts):
        counts[place] += 1
        words.update(words_of(str(each["body"])))
        if each["author"] not in DELETED:
            by_user[str(each["author"])].add(place)
    edges = _joined([by_user[user] for user in sorted(by_user)], len(posts.titles), source.seed)
    if not len(edges):
        raise DataError(f"{source.comments}: no user commented on two posts of these communities, so nothing is joined")
    return edges, words, counts


def _joined(by_user: Sequence[set[int]], count: int, seed: int) -> Array:
    """Pairs of posts with a common user, each once (E, 2); repeated pairs are dropped early to save memory."""
    distinct, waiting, size = np.empty(0, np.int64), [np.empty(0, np.int64)], 0
    for user, posts in enumerate(by_user):
        places = _places(posts, user, seed)
        first, second = np.triu_indices(len(places), k=1)
        waiting.append(places[first] * count + places[second])
        size += len(first)
        if size > max(PAIRS, len(distinct)):
            distinct, waiting, size = np.unique(np.concatenate([distinct, *waiting])), [], 0
    distinct = np.unique(np.concatenate([distinct, *waiting]))
    return np.stack([distinct // count, distinct % count], axis=1)


def _places(posts: set[int], user: int, seed: int) -> Array:
    """A user's posts, or some of them where they are many."""
    places = np.array(sorted(posts), np.int64)
    if len(places) <= USER_POSTS:
        return places
    keys = Stream(seed, "reddit posts", user).keys(torch.from_numpy(places)).numpy()
    return np.sort(places[np.argsort(keys, kind="stable")[:USER_POSTS]])


def text_features(source: Reddit, posts: Posts, words: set[str]) -> Array:
    """Mean word vectors of each title and of all comments on each post: (posts, 2 D)."""
    known = {word: vector for word, vector in read_vectors(source.vectors) if word in words}
    if not known:
        raise DataError(f"{source.vectors} has a vector for no word of the posts; are the words in lower case?")
    width = len(next(iter(known.values())))
    sums = np.zeros((2, len(posts.titles), width))
    totals = np.zeros((2, len(posts.titles)))

    def add(kind: int, place: int, text: str) -> None:
        for word in words_of(text):
            vector = known.get(word)
            if vector is not None:
                sums[kind, place] += vector
                totals[kind, place] += 1

    for place, title in enumerate(posts.titles):
        add(0, place, title)
    for place, each in comments_on(source.comments, posts):
        add(1, place, str(each["body"]))
    means = sums / np.maximum(totals, 1)[:, :, None]
    return np.concatenate([means[0], means[1]], axis=1).astype(np.float32)


def _numbers(posts: Posts, counts: Array) -> Array:
    return np.stack([np.array(posts.scores), counts], axis=1).astype(np.float32)


def comments_on(path: Path, posts: Posts) -> Iterator[tuple[int, dict[str, Any]]]:
    """Comments on the posts, with the post's place; `link_id` is `t3_` and the post's id."""
    for each in objects(path, "link_id", "author", "body"):
        place = posts.place.get(str(each["link_id"]).removeprefix("t3_"))
        if place is not None:
            yield place, each


def split_by_day(times: Array, seed: int) -> Split:
    """The first 20 days of the (only) month train; 30% of the later posts validate, the rest are for testing."""
    days = np.array([datetime.fromtimestamp(int(time), UTC).day for time in times])
    if not 0 < (days <= TRAIN_DAYS).sum() < len(days):
        raise DataError(
            f"no joined post is from {'up to' if days[0] > TRAIN_DAYS else 'after'} day {TRAIN_DAYS} of "
            "the month; earlier posts train, later ones test"
        )
    held_out = Split.masks(days <= TRAIN_DAYS, test=days > TRAIN_DAYS)
    return with_validation(held_out, Stream(seed, "reddit split"))


def objects(path: Path, *needed: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, one per line, checked for the needed fields."""
    for number, line in enumerate(lines(path), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict) or any(name not in value for name in needed):
            raise DataError(f"{path} line {number} must be a JSON object with {', '.join(needed)}; got {line[:60]!r}")
        yield value
