"""What the names of data sets mean in the experiments."""

import torch

from graphsage.datasets.open import open_data
from graphsage.experiments.data import Source, opened
from graphsage.graph.split import TEST, TRAIN, VAL, training_graph


def test_setmm_is_split_by_date_as_the_paper_splits_its_citation_data() -> None:
    """All that is older than the test nodes trains; 30% of the newest validate, at random and so in all their years."""
    data = opened(Source("setmm"))
    time, codes = data.graph.time, data.split.codes
    assert time is not None
    by_date = open_data("setmm").split("date")
    assert torch.equal(codes == TRAIN, by_date.codes != TEST)
    new = codes != TRAIN
    assert time[new].min() > time[codes == TRAIN].max() == data.split.cutoff
    assert int((codes == VAL).sum()) == round(0.3 * int(new.sum()))
    middle = time[new].double().median()
    for part in (VAL, TEST):
        assert 0.45 < (time[codes == part] > middle).double().mean() < 0.55


def test_no_edge_of_setmm_leads_to_an_unseen_node_in_training() -> None:
    data = opened(Source("setmm"))
    graph = data.graph.replace(features=None)
    seen = training_graph(graph, data.split)
    unseen = data.split.codes != TRAIN
    assert int(unseen[seen.edge_rows].sum()) == int(unseen[seen.indices].sum()) == 0
    assert seen.num_edges > 0.5 * graph.num_edges
