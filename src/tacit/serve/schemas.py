"""What the API takes and gives, as OpenAPI describes it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from tacit.serve.limits import Limits

ItemId = Annotated[int, Field(ge=-(2**63), lt=2**64)] | Annotated[str, Field(min_length=1)]


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Problem(BaseModel):
    """Why a request was refused."""

    detail: str


class Reason(BaseModel):
    """One of the caller's ratings, and what it adds to a prediction."""

    item: ItemId
    title: str
    rating: float
    contribution: float


class Recommended(BaseModel):
    """One recommended item."""

    item: ItemId
    title: str
    score: float = Field(description="The predicted rating, or for interactions the share.")
    choice: float | None = Field(None, description="The share of her next choices.")
    std: float | None = Field(None, description="How far off the rating may be.")
    baseline: float | None = None
    because: list[Reason] | None = None


class Recommendations(BaseModel):
    """A list for one person."""

    recommendations: list[Recommended]
    unknown: int = Field(description="How many own items are not in the catalogue.")


class Predictions(BaseModel):
    """Predicted ratings for one person, in the order asked for; null for an unknown item."""

    items: list[ItemId]
    scores: list[float | None]
    stds: list[float | None] | None = None
    unknown: int = Field(description="How many own items are not in the catalogue.")


class Answers(BaseModel):
    """What one person of a batch got: an answer, or why there is none."""

    recommendations: list[Recommended] | None = None
    items: list[ItemId] | None = None
    scores: list[float | None] | None = None
    stds: list[float | None] | None = None
    unknown: int | None = None
    detail: str | None = Field(None, description="Why this one was refused.")


class Item(BaseModel):
    """An item of the catalogue."""

    item: ItemId
    title: str


class Items(BaseModel):
    """A page of the catalogue."""

    total: int
    items: list[Item]


class State(BaseModel):
    """That the server is there, and what it answers with."""

    status: Literal["ok"]
    rule: str
    items: int
    rating_range: Annotated[list[float], Field(min_length=2, max_length=2)]
    implicit: bool
    private: bool
    digest: str | None


class Requests:
    """The shapes of requests, with a server's limits in them."""

    def __init__(self, limits: Limits) -> None:
        ids: Any = Annotated[list[ItemId], Field(max_length=limits.ratings)]
        own: dict[str, Any] = {
            "ratings": (
                Annotated[
                    dict[Annotated[str, Field(min_length=1)], float],
                    Field(max_length=limits.ratings, description="Own ratings, {item: rating}."),
                ],
                Field(default_factory=dict),
            ),
            "touched": (
                Annotated[ids, Field(description="For models of interactions: own items.")],
                Field(default_factory=list),
            ),
        }
        count: Any = Annotated[int, Field(ge=1, le=limits.items)]
        order: Any = Literal["rating", "choice"] | None
        asked: dict[str, Any] = own | {
            "n": (count, 10),
            "by": (order, None),
            "include_rated": (bool, False),
            "std": (bool, False),
            "because": (bool, False),
            "candidates": (ids | None, None),
            "exclude": (ids | None, None),
        }
        wanted: dict[str, Any] = own | {"items": (ids | None, None), "std": (bool, False)}
        self.recommend: Any = create_model("RecommendRequest", __base__=_Given, **asked)
        self.predict: Any = create_model("PredictRequest", __base__=_Given, **wanted)
        self.recommend_batch: Any = self._batch("RecommendBatch", self.recommend, limits)
        self.predict_batch: Any = self._batch("PredictBatch", self.predict, limits)

    @staticmethod
    def _batch(name: str, one: Any, limits: Limits) -> Any:
        many = Annotated[list[one], Field(min_length=1, max_length=limits.people)]
        return create_model(name, __base__=_Given, requests=(many, ...))
