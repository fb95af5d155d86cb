"""The paper's Algorithms 1 and 2 with loops and dictionaries, one node at a time: the slow twins of the fast code.

Written from the pseudo-code and Equations 2 and 3; of the package they use only weights and integer hashes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from graphsage.kernels.random import GOLDEN, mix_int
from graphsage.model.encoder import Encoder

Vector = np.ndarray[Any, Any]
PERMUTATION = 1 << 20  # the LSTM's counters


def hashed(key: int, counter: int) -> int:
    return mix_int(key + (counter + 1) * GOLDEN)


def array(tensor: torch.Tensor) -> Vector:
    return tensor.detach().double().numpy()


def linear(module: Any, x: Vector) -> Vector:
    y = array(module.weight) @ x
    return y if module.bias is None else y + array(module.bias)


def lstm(module: torch.nn.LSTM, sequence: Sequence[Vector]) -> Vector:
    """The last hidden state of the top layer, gate by gate."""

    def sigmoid(x: Vector) -> Vector:
        return 1 / (1 + np.exp(-x))

    for layer in range(module.num_layers):
        w_x, w_h, b_x, b_h = (
            array(getattr(module, f"{n}_l{layer}")) for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        h, c, states = np.zeros(module.hidden_size), np.zeros(module.hidden_size), []
        for x in sequence:
            i, f, g, o = np.split(w_x @ x + b_x + w_h @ h + b_h, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            states.append(h)
        sequence = states
    return sequence[-1]


def mlp(module: Any, x: Vector) -> Vector:
    for layer in (part for part in module if isinstance(part, torch.nn.Linear)):
        x = np.maximum(linear(layer, x), 0)
    return x


def aggregate(name: str, module: Any, h_self: Vector, neighbors: Sequence[Vector], key: int) -> Vector:
    """AGGREGATE of the paper's section 3.3 for one node; a node without neighbors has the zero vector."""
    if name == "gcn":  # Equation 2
        return np.mean([h_self, *neighbors], axis=0)
    if not neighbors:
        return np.zeros(module.out_dim)
    if name == "mean":
        return np.mean(neighbors, axis=0)
    if name == "pool":  # Equation 3
        return np.max([mlp(module.mlp, u) for u in neighbors], axis=0)
    if name == "meanpool":
        return np.mean([mlp(module.mlp, u) for u in neighbors], axis=0)
    if name == "lstm":
        order = sorted(range(len(neighbors)), key=lambda slot: hashed(key, slot + PERMUTATION) >> 1)
        return lstm(module.lstm, [neighbors[slot] for slot in order])
    raise AssertionError(f"write {name} from the paper first")


def iteration(encoder: Encoder, k: int, h_self: Vector, neighbors: Sequence[Vector], key: int) -> Vector:
    """Algorithm 1, lines 4, 5 and 7, for one node at iteration k; LayerNorm before the ReLU and h_self after it all."""
    config, layer = encoder.config, encoder.layer(k)
    h_neighbors = aggregate(config.aggregator, layer.aggregator, h_self, neighbors, key)
    if config.aggregator == "gcn":
        h = linear(layer.weight, h_neighbors)
    elif config.combine == "halves":
        h = np.concatenate(
            [linear(layer.weight.self_weight, h_self), linear(layer.weight.neighbor_weight, h_neighbors)]
        )
    else:
        h = linear(layer.weight, np.concatenate([h_self, h_neighbors]))
    if config.layer_norm:
        h = (h - h.mean()) / np.sqrt(h.var() + layer.norm.eps) * array(layer.norm.weight) + array(layer.norm.bias)
    if k < config.num_layers or config.last_activation:
        h = np.maximum(h, 0)
    if config.normalize == "every" or (config.normalize == "last" and k == config.num_layers):
        length = np.linalg.norm(h)
        h = h / length if length else h
    if config.residual:
        h = h + (h_self if len(h_self) == len(h) else linear(layer.skip, h_self))
    return h


def inputs(encoder: Encoder, tables: Sequence[torch.Tensor]) -> list[Vector]:
    """x_v of every node: tables side by side, scaled, then the identity vector."""
    x = np.concatenate([array(t) for t in tables], axis=1)
    x = (x - array(encoder.shift)) * array(encoder.scale)
    if encoder.identity is not None:
        x = np.concatenate([x, array(encoder.identity.weight)], axis=1)
    return list(x)


def algorithm_1(encoder: Encoder, x: Sequence[Vector], neighbors: dict[int, list[int]], keys: Sequence[int]) -> Vector:
    h = dict(enumerate(x))
    for k in range(1, encoder.config.num_layers + 1):
        h = {v: iteration(encoder, k, h[v], [h[u] for u in neighbors[v]], hashed(keys[v], k)) for v in h}
    return np.stack([h[v] for v in sorted(h)])


def below(bits: int, n: int) -> int:
    return (((bits >> 32) & 0xFFFFFFFF) * n) >> 32


def sample(neighbors: Sequence[int], size: int, key: int) -> list[int]:
    """`size` of the neighbors: distinct by Floyd's method where there are enough, else with replacement."""
    degree = len(neighbors)
    if degree == 0:
        return []
    if degree < size:
        return [neighbors[below(hashed(key, slot), degree)] for slot in range(size)]
    chosen: list[int] = []
    for slot in range(size):
        last = degree - size + slot
        place = below(hashed(key, slot), last + 1)
        chosen.append(last if place in chosen else place)
    return [neighbors[place] for place in chosen]


def algorithm_2(
    encoder: Encoder, x: Sequence[Vector], neighbors: dict[int, list[int]], sizes: Sequence[int], target: int, key: int
) -> Vector:
    """z of one target: h^k of a node calls for h^(k-1) of itself and of S_k neighbors drawn for this k."""

    def h(v: int, path: int, k: int) -> Vector:
        if k == 0:
            return x[v]
        draw = hashed(path, k)
        below_v = [
            h(u, hashed(draw, sizes[k - 1] + slot), k - 1)
            for slot, u in enumerate(sample(neighbors[v], sizes[k - 1], draw))
        ]
        return iteration(encoder, k, h(v, path, k - 1), below_v, draw)

    return h(target, key, len(sizes))


def released_tree(
    encoder: Encoder, x: Sequence[Vector], neighbors: dict[int, list[int]], sizes: Sequence[int], target: int, key: int
) -> Vector:
    """The released code: a node at hop j draws S_(K-j) neighbors once, and they serve it at every layer."""
    depth = len(sizes)

    def h(v: int, path: int, hop: int, k: int) -> Vector:
        if k == 0:
            return x[v]
        size, draw = sizes[depth - hop - 1], hashed(path, depth - hop)
        children = [(u, hashed(draw, size + slot)) for slot, u in enumerate(sample(neighbors[v], size, draw))]
        below_v = [h(u, child, hop + 1, k - 1) for u, child in children]
        return iteration(encoder, k, h(v, path, hop, k - 1), below_v, draw)

    return h(target, key, 0, depth)
