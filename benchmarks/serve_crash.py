"""Is anything lost when the process is killed? Killed at random and at every step, and with damaged journals.

    python -m benchmarks.serve_crash [--kills 200] [--torn 1000] [--no-restart] [--out results/serve/crash.json]

Half of the rounds fork a process that changes one live graph from several threads, with a compaction running, and kill
it with SIGKILL at a random moment; then the graph is opened again. The other half do so to the service, with clients
that write over HTTP. Every change that was acknowledged must be there, every node must have all its edges or not be
there. At the end it times opening 100,000 nodes and 10,000 journaled changes, the fastest of five times; the aim is for
processor time, because other work may share the machine.
"""

import argparse
import http.client
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.serve_process import ROOT, surroundings, write_result
from graphsage.errors import GraphSageError
from graphsage.graph.build import from_edges
from graphsage.live.adjacency import Cap
from graphsage.live.backup import verify
from graphsage.live.change import Change, NodeChange
from graphsage.live.faults import POINTS, arm
from graphsage.live.journal import START, Journal
from graphsage.live.materialize import whole
from graphsage.live.store import LiveGraph, create_store
from graphsage.serving.client import Client, Node, ServiceError
from graphsage.serving.keys import ApiKeys
from graphsage.serving.run import serve
from graphsage.serving.settings import Settings

sys.path.append(str(ROOT / "tests" / "helpers"))
from small_service import N, Small, make_small, small_model

FORK = multiprocessing.get_context("fork")  # a hundred new processes would take minutes to start
BASE, WIDTH, WRITERS, EDGES = 200, 8, 4, 3
CAP = Cap(16, "symmetric", 0)
OPENINGS = 5
GONE = (OSError, http.client.HTTPException)  # what a client sees of a service that was killed
States = dict[str, str]  # by name: + acknowledged, - its deletion acknowledged, ? sent and not (yet) answered


def node(name: str) -> Node:
    """Everything about a node follows from its name, so that anybody can tell whether all of it is there."""
    around = sorted(random.Random(name).sample(range(N), EDGES))
    return Node(name, {"words": f"about {name}", "size": len(name)}, edges=[f"node-{row}" for row in around])


@contextmanager
def forked(small: Small, fault: str = "") -> Iterator[tuple[int, str]]:
    """The service in a child process: its number and address."""
    reading, writing = os.pipe()

    def run() -> None:
        arm(fault)
        serve(
            small.run,
            small.graph,
            host="127.0.0.1",
            port=0,
            keys=ApiKeys(),
            settings=Settings(compact_after=20),
            on_start=lambda at: [os.write(writing, at.encode()), None][1],
        )

    process = FORK.Process(target=run, daemon=True)
    process.start()
    os.close(writing)
    try:
        address = os.read(reading, 1000).decode()
        assert address, "the service did not start"
        assert process.pid is not None
        yield process.pid, address
    finally:
        os.close(reading)
        if process.is_alive():
            process.kill()
        process.join()
    assert process.exitcode == -9, f"exit code {process.exitcode}"


def write(address: str, prefix: str, states: States, first: threading.Event) -> None:
    """Add nodes, and delete every fourth again, until the service is gone."""
    with Client(address, retries=0) as client:
        for count in range(10**9):
            name = f"{prefix}-{count}"
            states[name] = "?"
            try:
                client.put_nodes([node(name)])
                states[name] = "+"
                first.set()
                if count % 4 == 3:
                    states[name] = "?"
                    client.delete_node(name)
                    states[name] = "-"
            except GONE:
                return


def compare(address: str, states: States) -> Counter[str]:
    """Ask for every node that was ever sent. What had no answer may be there or not, but whole; and then stay so."""
    found: Counter[str] = Counter()
    with Client(address) as client:
        for name, state in states.items():
            try:
                info = client.node(name)
            except ServiceError as error:
                if error.status != 404:
                    raise
                found["lost"] += state == "+"
                states[name] = "-"
                continue
            sent = node(name)
            whole = info.neighbors == list(sent.edges) and info.attributes == sent.attributes
            found["half_applied"] += not whole
            found["came_back"] += state == "-"
            states[name] = "+"
    return found


def http_kills(folder: Path, rounds: int) -> dict[str, Any]:
    """Each round starts the service on what the last kill left, asks for that round's nodes, writes, and kills."""
    folder.mkdir()
    torch.set_num_threads(1)
    small, draw = make_small(folder), random.Random(3)
    everything, last = States(), States()
    total, started = Counter[str](lost=0, came_back=0, half_applied=0, acknowledged=0), []
    for number in range(rounds):
        began, first = time.monotonic(), threading.Event()
        with forked(small) as (process, address):
            started.append(time.monotonic() - began)
            total += compare(address, last)
            everything |= last
            last = States()
            writers = [
                threading.Thread(target=write, args=(address, f"w{number}-{w}", last, first)) for w in range(WRITERS)
            ]
            for writer in writers:
                writer.start()
            assert first.wait(60), "nothing was acknowledged"
            time.sleep(draw.random() * 0.5)
            os.kill(process, signal.SIGKILL)
            for writer in writers:
                writer.join()
        total["acknowledged"] += sum(state in "+-" for state in last.values())
        if number % 20 == 19:
            print(f"{number + 1} kills of the service: {dict(total)}", file=sys.stderr, flush=True)
    with forked(small) as (_, address):
        total += compare(address, everything | last)
    verify(small.graph)
    counts = {name: total[name] for name in ("acknowledged", "lost", "came_back", "half_applied")}
    return {"kills": rounds, **counts, "slowest_start_s": round(max(started), 2)}


def reload_steps(folder: Path) -> dict[str, dict[str, int]]:
    """Killed at every step of a reload: started again, it serves the model in the run's folder and the whole graph."""
    found = {}
    torch.set_num_threads(1)
    for number, point in enumerate(p for p in POINTS if p.startswith("reload")):
        (folder / point).mkdir(parents=True)
        small, states = make_small(folder / point), {"kept": "+"}
        with forked(small, point) as (_, address), Client(address, retries=0) as client:
            client.put_nodes([node("kept")])
            before = client.embed(ids=["kept"])
            small_model(seed=number + 1)[0].save(small.run)
            try:
                client.reload()
            except GONE:
                pass
            else:
                raise AssertionError(f"{point} was not passed")
        with forked(small) as (_, address), Client(address) as client:
            seen = compare(address, states)
            after = client.embed(ids=["kept"])
            mixed = after.model == before.model or (after.vectors == before.vectors).all()
            mixed = mixed or client.reload() != after.model
        found[point] = {"lost": seen["lost"], "came_back": 0, "half_applied": seen["half_applied"] + bool(mixed)}
    return found


def first_graph(nodes: int, width: int, degree: int = 6) -> Any:
    draw = np.random.default_rng(0)
    pairs = draw.integers(0, nodes, (nodes * degree // 2, 2))
    return from_edges(
        pairs,
        nodes,
        features=draw.normal(size=(nodes, width)).astype(np.float32),
        ids=[f"b{row}" for row in range(nodes)],
    )


def change(name: str, width: int = WIDTH, base: int = BASE, edges: int = EDGES) -> Change:
    """A node with its edges; both follow from its name, so that anybody can tell whether all of it is there."""
    draw = random.Random(name)
    x = np.array([draw.gauss(0, 1) for _ in range(width)], np.float32)
    return Change((NodeChange(name, x, {"name": name}),), tuple((f"b{row}", name) for row in around(name, base, edges)))


def around(name: str, base: int = BASE, edges: int = EDGES) -> list[int]:
    return sorted(random.Random(f"edges of {name}").sample(range(base), edges))


def write_until_killed(folder: Path, number: int, fault: str, pipe: int) -> None:
    torch.set_num_threads(1)
    arm(fault)
    live = LiveGraph(folder, CAP)

    def write(writer: int) -> None:
        for count in range(10**9):
            name = f"w{number}-{writer}-{count}"
            live.apply(change(name))
            os.write(pipe, f"+{name}\n".encode())
            if count % 4 == 3:
                gone = f"w{number}-{writer}-{count - 2}"
                os.write(pipe, f"?{gone}\n".encode())  # from now on it may or may not be there
                live.apply(Change(removed_nodes=(gone,)))
                os.write(pipe, f"-{gone}\n".encode())

    threads = [threading.Thread(target=write, args=(writer,), daemon=True) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    while True:
        time.sleep(0.05)
        live.compact()


def one_kill(folder: Path, number: int, draw: random.Random, expected: dict[str, str], fault: str = "") -> int:
    """Kill a writer; `expected` learns what it acknowledged. The number of acknowledgements."""
    reading, writing = os.pipe()
    process = FORK.Process(target=write_until_killed, args=(folder, number, fault, writing), daemon=True)
    process.start()
    os.close(writing)
    heard = os.read(reading, 1 << 16)  # the first acknowledgement: writing has begun
    after = 60.0 if fault else draw.random() * 0.5
    killer = threading.Timer(after, lambda: os.kill(process.pid or 0, signal.SIGKILL))
    killer.start()
    while block := os.read(reading, 1 << 16):
        heard += block
    process.join()
    killer.cancel()
    os.close(reading)
    assert process.exitcode == -9, process.exitcode
    lines = heard.decode().splitlines()
    for line in lines:
        expected[line[1:]] = line[0]
    return len(lines)


def look(folder: Path, expected: dict[str, str], number: int) -> dict[str, int]:
    """Open the graph again and compare. Nodes of this round that nobody acknowledged may be there, but whole."""
    with LiveGraph(folder, CAP) as live, live.reading() as (overlay, _):
        graph = whole(overlay).graph
    names = [str(id) for id in graph.ids or ()]
    there = {name: row for row, name in enumerate(names)}
    lost = [name for name, state in expected.items() if state == "+" and name not in there]
    back = [name for name, state in expected.items() if state == "-" and name in there]
    half = 0
    for name, row in there.items():
        if name.startswith("w"):
            found = sorted(int(names[other][1:]) for other in graph.neighbors(row).tolist())
            half += found != around(name)
    for name in [name for name, state in expected.items() if state == "?"]:
        expected[name] = "+" if name in there else "-"
    for name in there:  # journaled, not acknowledged in time: from now on it must stay
        if name.startswith(f"w{number}-"):
            expected.setdefault(name, "+")
    return {"lost": len(lost), "came_back": len(back), "half_applied": half}


def kills(folder: Path, rounds: int) -> dict[str, Any]:
    create_store(folder, first_graph(BASE, WIDTH))
    draw, expected, total, opened = random.Random(1), dict[str, str](), Counter[str](), []
    for number in range(rounds):
        total["acknowledged"] += one_kill(folder, number, draw, expected)
        began = time.monotonic()
        total.update(look(folder, expected, number))
        opened.append(time.monotonic() - began)
        if number % 20 == 19:
            print(f"{number + 1} kills: {dict(total)}", file=sys.stderr, flush=True)
    verify(folder)
    return {"kills": rounds, **total, "slowest_reopening_s": round(max(opened), 3)}


def every_step(folder: Path) -> dict[str, Any]:
    """Killed at every fault point of writing and compaction: the old graph or the new one."""
    found = {}
    for number, point in enumerate(p for p in POINTS if not p.startswith("reload")):
        shutil.rmtree(folder, ignore_errors=True)
        create_store(folder, first_graph(BASE, WIDTH))
        expected: dict[str, str] = {}
        one_kill(folder, number, random.Random(0), expected, f"{point}:7" if point.startswith("write") else point)
        found[point] = look(folder, expected, number)
        verify(folder)
    return found


def torn(folder: Path, count: int) -> dict[str, int]:
    """Journals cut off or with a flipped bit: what opens must be the beginning of what was written."""
    folder.mkdir()
    journal = Journal(folder / "j", 0, START)
    for start in range(0, 60, 3):
        journal.append([change(f"w{start + i}") for i in range(3)])
        if start == 30:
            journal._connection.execute("PRAGMA wal_checkpoint(FULL)")
    pieces = {end: Path(f"{folder / 'j'}{end}").read_bytes() for end in ("", "-wal")}
    journal.close()
    draw, seen = random.Random(2), Counter[str]()
    for number in range(count):
        place = folder / str(number)
        place.mkdir()
        hit = draw.choice(["", "-wal"])
        for end, content in pieces.items():
            (place / f"j{end}").write_bytes(_damaged(content, draw) if end == hit else content)
        try:
            opened = Journal(place / "j", 0, START)
            names = [made.nodes[0].id for _, made, _ in opened.since(0)]
            opened.close()
            good = names == [f"w{i}" for i in range(len(names))] and len(names) % 3 == 0
            seen["clean_prefix" if good else "WRONG"] += 1
        except GraphSageError as error:
            seen["clear_refusal" if "restore a backup" in str(error) else "UNCLEAR"] += 1
        shutil.rmtree(place)
    return {"journals": count, **seen}


def _damaged(content: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(content))
    if draw.random() < 0.4:
        return content[:place]
    flipped = bytearray(content)
    flipped[place] ^= 1 << draw.randrange(8)
    return bytes(flipped)


def restart(folder: Path) -> dict[str, Any]:
    nodes, changes, width, edges = 100_000, 10_000, 256, 10
    create_store(folder, first_graph(nodes, width, 20))
    with LiveGraph(folder, Cap(128, "symmetric", 0)) as live:
        pending = [live.submit(change(f"w{i}", width, nodes, edges)) for i in range(changes)]
        for future in pending:
            future.result()
    times = []
    for _ in range(OPENINGS):
        began, cpu = time.monotonic(), time.process_time()
        with LiveGraph(folder, Cap(128, "symmetric", 0)) as live:
            times.append((time.monotonic() - began, time.process_time() - cpu))
            assert live.version.sequence == changes
    opened, used = min(times)
    return {
        "nodes": nodes,
        "journal_rows": changes,
        "features": width,
        "edges_a_change": edges,
        "fastest_of": OPENINGS,
        "seconds": round(opened, 2),
        "cpu_seconds": round(used, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--torn", type=int, default=1000)
    parser.add_argument("--restart", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--out", type=Path, default=Path("results/serve/crash.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    where = surroundings()
    with tempfile.TemporaryDirectory() as folder:
        over_http = options.kills // 2
        result: dict[str, Any] = {
            "kill_9": kills(Path(folder) / "kills", options.kills - over_http),
            "kill_9_over_http": http_kills(Path(folder) / "http", over_http),
            "every_step": {**every_step(Path(folder) / "steps"), **reload_steps(Path(folder) / "reload")},
            "damaged_journals": torn(Path(folder) / "torn", options.torn),
        }
        if options.restart:
            result["restart"] = restart(Path(folder) / "large")
    clean = [result["kill_9"], result["kill_9_over_http"], *result["every_step"].values()]
    bad = sum(each[name] for each in clean for name in ("lost", "came_back", "half_applied"))
    wrong = result["damaged_journals"].get("WRONG", 0) + result["damaged_journals"].get("UNCLEAR", 0)
    quick = result.get("restart", {}).get("cpu_seconds", 0) <= 5
    passed = not bad and not wrong and quick
    about = "a live graph and a service killed with SIGKILL, and damaged journals"
    write_result(
        options.out, about, "python -m benchmarks.serve_crash", {"surroundings": where, "passed": passed, **result}
    )
    raise SystemExit(not passed)


if __name__ == "__main__":
    main()
