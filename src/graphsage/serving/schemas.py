"""Schemas of requests and answers; the OpenAPI description is generated from them."""

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import PydanticCustomError

from graphsage.live.change import LARGEST_ATTRIBUTES, LONGEST_ID, attributes_size
from graphsage.serving.settings import Settings

_LIMITS = Settings()
Id = Annotated[str, Field(min_length=1, max_length=LONGEST_ID, description="A node's name.")]
Number = Annotated[float, Field(allow_inf_nan=False)]


def plain(value: Any) -> Any:
    """Refuse values that Python's reader accepts but JSON forbids: NaN, infinity, lone surrogates."""
    if isinstance(value, dict):
        for name, each in value.items():
            plain(name)
            plain(each)
    elif isinstance(value, list):
        for each in value:
            plain(each)
    elif isinstance(value, str):
        value.encode()  # UnicodeEncodeError is a ValueError
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must be finite")
    return value


def _small(attributes: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if attributes_size(attributes) > LARGEST_ATTRIBUTES:
        raise PydanticCustomError("too_large", "is too large")
    return attributes


Attributes = Annotated[
    dict[str, JsonValue],
    Field(max_length=256, description=f"At most {LARGEST_ATTRIBUTES:,} bytes as JSON, with those that are stored."),
    AfterValidator(plain),
    AfterValidator(_small),
]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


class NodeFields(Strict):
    attributes: Attributes | None = Field(
        None, description="The columns that the model makes features from, and any others."
    )
    features: list[Number] | None = Field(None, max_length=65536, description="Ready features instead of attributes.")
    edges: list[Id] = Field(default_factory=list, max_length=_LIMITS.max_neighbors)


class NewNode(NodeFields):
    """A node outside the graph: its attributes (or ready features) and the ids of its neighbors."""

    id: Id | None = None


class NodesRequest(Strict):
    """Stored nodes by id, then new nodes, which are not stored."""

    ids: list[Id] = Field(default_factory=list, max_length=_LIMITS.max_nodes)
    nodes: list[NewNode] = Field(default_factory=list, max_length=_LIMITS.max_nodes)


class EmbedRequest(NodesRequest):
    encoding: Literal["list", "base64"] = Field("list", description="base64: little-endian float32.")


class PredictRequest(NodesRequest):
    pass


class SearchRequest(Strict):
    """Search around a stored node (id) or a new one (node); give one of them."""

    id: Id | None = None
    node: NewNode | None = None
    k: int = Field(10, ge=1, le=1000)


class RecommendRequest(SearchRequest):
    """Likely links of a stored node (id) or a new one (node); give one of them."""


class NodeBody(NodeFields):
    """A node to add or change, named in the path. Given fields replace stored ones, and edges are added."""

    label: Id | list[Id] | None = Field(None, description="Its class, or a list of labels for multi-label data.")


class StoredNode(NodeBody):
    """A node to add or change. Given fields replace stored ones, and edges are added."""

    id: Id


class PutNodes(Strict):
    nodes: list[StoredNode] = Field(min_length=1, max_length=_LIMITS.max_nodes)


class Edge(Strict):
    source: Id
    target: Id


class ScoreRequest(Strict):
    """Pairs of stored nodes; each is scored as if it were not linked."""

    pairs: list[Edge] = Field(min_length=1, max_length=_LIMITS.max_nodes)


class PutEdges(Strict):
    edges: list[Edge] = Field(min_length=1, max_length=_LIMITS.max_nodes)


class BackupRequest(Strict):
    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Folder to create next to the live graph."
    )


class GraphVersion(BaseModel):
    generation: int
    sequence: int


class Answer(BaseModel):
    model: str = Field(description="Version of the model.")
    graph: GraphVersion


class Embedded(BaseModel):
    id: str | None
    embedding: list[float] | str


class Embeddings(Answer):
    dim: int
    results: list[Embedded]


class ClassPrediction(BaseModel):
    """The most probable class, and the probabilities of all classes in descending order."""

    predicted: str = Field(alias="class")
    probability: float
    probabilities: dict[str, float]


class LabelsPrediction(BaseModel):
    """For multi-label data: the labels above their thresholds, and the probabilities of all in descending order."""

    labels: list[str]
    probabilities: dict[str, float]


class NumbersPrediction(BaseModel):
    """The numbers of a regression by target, in their own units."""

    values: dict[str, float]


class NamedClassPrediction(ClassPrediction):
    id: str | None


class NamedLabelsPrediction(LabelsPrediction):
    id: str | None


class NamedNumbersPrediction(NumbersPrediction):
    id: str | None


class Predictions(Answer):
    results: list[NamedClassPrediction] | list[NamedLabelsPrediction] | list[NamedNumbersPrediction]


class Found(BaseModel):
    id: str
    cosine: float


class SearchAnswer(Answer):
    recall: float
    results: list[Found]


class Suggested(BaseModel):
    id: str
    score: float


class Recommendations(Answer):
    """Nodes that are not linked yet, the most likely ones first."""

    recall: float
    results: list[Suggested]


class ScoredPair(BaseModel):
    source: str
    target: str
    score: float


class Scores(Answer):
    results: list[ScoredPair]


class Changed(Answer):
    """The version that includes the change."""


class NodeAnswer(Answer):
    id: str
    attributes: dict[str, Any]
    label: str | list[str] | None
    targets: dict[str, float | None] | None = Field(
        None, description="Of a graph for regression: the stored numbers by name, null for an unknown one."
    )
    degree: int
    neighbors: list[str]
    prediction: ClassPrediction | LabelsPrediction | NumbersPrediction | None = Field(
        description="null if the model was trained without labels."
    )


class RefusedLine(BaseModel):
    line: int
    detail: str


class Ingested(Answer):
    """`graph` is the version that includes all stored lines."""

    lines: int = Field(description="Lines that were read.")
    nodes: int = Field(description="Lines with a node that were stored.")
    edges: int = Field(description="Lines with an edge that were stored.")
    refused: int
    errors: list[RefusedLine] = Field(description="The first 100 refused lines, and why.")


class ListedNode(BaseModel):
    id: str
    label: str | list[str] | None
    degree: int
    attributes: dict[str, Any] | None = Field(None, description="Only if they were asked for.")


class NodeList(Answer):
    nodes: list[ListedNode]
    next: str | None = Field(description="The cursor of the next page; null at the end.")


class ChangedNode(BaseModel):
    """Given fields were added or replaced."""

    id: str
    attributes: dict[str, Any] | None = None
    label: str | list[str] | None = None
    features: list[float] | None = Field(None, description="Only if they were asked for.")


class GraphChange(BaseModel):
    """A change; fields without content are left out. An edge is [source, target]."""

    sequence: int
    nodes: list[ChangedNode] = []
    edges: list[tuple[str, str]] = []
    removed_edges: list[tuple[str, str]] = []
    removed_nodes: list[str] = []


class Health(BaseModel):
    status: str
    trouble: str | None = None


class ModelAnswer(Answer):
    """What the model reads and predicts."""

    model_config = ConfigDict(extra="allow")
    columns: list[str] = Field(description="Attributes that new nodes must have; null for unknown values.")
    features: int = Field(description="Length of ready features.")
    classes: list[str]
    targets: list[str] = Field(description="Names of the numbers that a regression predicts.")
    multilabel: bool
    dim: int = Field(description="Length of an embedding.")
    recommends: bool = Field(description="Whether `/v1/recommend` answers.")


class Reloaded(BaseModel):
    model: str = Field(description="Version of the model.")


class Stats(Answer):
    """Counters of the last seconds, for the map page."""

    nodes: int
    requests_per_second: float
    p99_ms: float | None
    recall: float | None


class MovedPoint(BaseModel):
    """A point that was added or moved, or one that is `gone`. `color` is a class's number; 65535 for none."""

    id: str
    x: float | None = None
    y: float | None = None
    color: int | None = None
    gone: bool | None = None


class MapChanges(BaseModel):
    """If `epoch` is not that of the map that a client has, it loads the whole map again."""

    model_config = ConfigDict(extra="allow")
    epoch: int
    next: int = Field(description="`since` of the next request.")
    changes: list[MovedPoint]
    classes: list[str]
    method: str


class MapAttribute(BaseModel):
    name: str
    type: Literal["category", "number", "date"]


class MapAttributes(BaseModel):
    attributes: list[MapAttribute]


class MapValues(BaseModel):
    """A value per node; null where it is unknown. Those of a category are numbers of `names`, dates are days since
    1970."""

    attribute: str
    type: Literal["category", "number", "date"]
    names: list[str] | None = None
    ids: list[str]
    values: list[float | None]


class FoundText(BaseModel):
    id: str
    text: str


class MapFound(BaseModel):
    results: list[FoundText]
    matches: int
    complete: bool = Field(description="false if the time was over before all nodes were read.")


class ProblemAnswer(BaseModel):
    type: str
    title: str
    status: int
    detail: str
