"""How much disk, memory and time does a live graph of a given size need?

    python -m benchmarks.serve_sizing [--nodes 10000 100000] [--out results/serve/sizing.json]

Random graphs with 20 neighbors a node and 256 float32 features, a two-layer mean model of width 256; each size in a
process of its own. Times are processor seconds, so that other work on the machine does not count.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.serve_process import surroundings, write_result

WIDTH, DEGREE = 256, 20


def measure(nodes: int) -> dict[str, Any]:
    import torch

    from benchmarks.serve_crash import change, first_graph
    from graphsage.graph.ids import node_key
    from graphsage.inference.model import Model
    from graphsage.inference.nearest import NearestIndex
    from graphsage.live.adjacency import Cap
    from graphsage.live.embed import LiveEncoder
    from graphsage.live.overlay_view import Target
    from graphsage.live.store import LiveGraph, create_store
    from graphsage.model.encoder import Encoder, EncoderConfig
    from graphsage.sampling.minibatch import SamplingConfig
    from graphsage.serving.index import SearchIndex

    torch.set_num_threads(1)

    def timed(what: Any) -> tuple[Any, float]:
        began = time.process_time()
        made = what()
        return made, time.process_time() - began

    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        graph = first_graph(nodes, WIDTH, DEGREE)
        create_store(store, graph)
        del graph
        disk = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
        live, opened = timed(lambda: LiveGraph(store, Cap(128, "symmetric", 0)))
        model = Model(Encoder(EncoderConfig(), WIDTH).eval(), None, SamplingConfig())
        encoder = LiveEncoder.of(model)
        with live.reading() as (overlay, _):
            draw = np.random.default_rng(0)
            x = draw.normal(size=WIDTH).astype(np.float32)
            around = [draw.integers(0, nodes, 10).tolist() for _ in range(200)]
            targets = [Target(*overlay.visitor(node_key(str(i)), x, rows)) for i, rows in enumerate(around)]
            _, alone = timed(lambda: [encoder.embed([target]) for target in targets])
            _, batches = timed(lambda: [encoder.embed(targets[i : i + 32]) for i in range(0, 192, 32)])
        for future in [live.submit(change(f"w{i}", WIDTH, nodes, 10)) for i in range(1000)]:
            future.result()
        before = psutil.Process().memory_info().rss
        _, compacted = timed(live.compact)
        z = draw.normal(size=(nodes, 256)).astype(np.float32)
        index, built = timed(lambda: SearchIndex([str(i) for i in range(nodes)], NearestIndex.build(z)))
        _, searched = timed(lambda: [index.search(z[i], 10) for i in range(50)])
        live.close()
    return {
        "nodes": nodes,
        "disk_mb": round(disk / 1e6),
        "open_s": round(opened, 2),
        "memory_mb": round(before / 1e6),
        "embed_alone_ms": round(1000 * alone / 200, 2),
        "embed_of_32_ms": round(1000 * batches / 192, 2),
        "compaction_s": round(compacted, 2),
        "index_s": round(built, 2),
        "search_ms": round(1000 * searched / 50, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path("results/serve/sizing.json"))
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    where, rows = surroundings(), []
    for nodes in options.nodes:
        done = subprocess.run([sys.executable, __file__, "--one", str(nodes)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    about = "what a live graph of random edges and features needs"
    body = {"surroundings": where, "features": WIDTH, "degree": DEGREE, "rows": rows}
    write_result(options.out, about, "python -m benchmarks.serve_sizing", body)


if __name__ == "__main__":
    main()
