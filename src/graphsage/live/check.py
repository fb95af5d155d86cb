"""Whether a change can be made: every node it names is there, or comes with it. Checked before it is journaled."""

from collections.abc import Callable

from graphsage.errors import DataError, UnknownNodeError
from graphsage.live.change import Change
from graphsage.live.overlay import Overlay

LONGEST_ID = 512  # characters


class Checker:
    """Checks the changes of one group, each as if those before it were made already."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._pending: dict[str, bool] = {}
        graph = overlay.base.graph
        self._width, self._classes, self._many = graph.num_features, graph.num_classes, graph.multilabel

    def check(self, change: Change) -> None:
        """Refuse the change, naming the place of what is wrong in it, never its content."""
        pending: dict[str, bool] = {}

        def there(id: str) -> bool:
            for known in (pending, self._pending):
                if id in known:
                    return known[id]
            return self._overlay.find(id) is not None

        self._check_nodes(change, there, pending)
        for what, pairs in (("edges", change.edges), ("cut", change.cut)):
            for place, pair in enumerate(pairs):
                for end, id in zip(("source", "target"), pair, strict=True):
                    if not there(id):
                        raise UnknownNodeError(f"{what}[{place}] has a {end} that is not in the graph; add it first")
        for place, id in enumerate(change.gone):
            if not there(id):
                raise UnknownNodeError(f"gone[{place}] is not in the graph")
            pending[id] = False
        self._pending |= pending

    def _check_nodes(self, change: Change, there: Callable[[str], bool], pending: dict[str, bool]) -> None:
        for place, node in enumerate(change.nodes):
            if not node.id or len(node.id) > LONGEST_ID:
                raise DataError(f"nodes[{place}] must have an id of 1 to {LONGEST_ID} characters")
            if node.features is None:
                if self._width and not there(node.id):
                    raise DataError(f"nodes[{place}] is new and needs features")
            elif len(node.features) != self._width:
                raise DataError(f"nodes[{place}] must have {self._width} features; got {len(node.features)}")
            if node.label is not None:
                labels = node.label if isinstance(node.label, tuple) else (node.label,)
                if isinstance(node.label, tuple) != self._many or not all(0 <= c < self._classes for c in labels):
                    raise DataError(f"nodes[{place}] has a label that the graph does not know")
            pending[node.id] = True
