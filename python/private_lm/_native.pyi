from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, final, overload

import numpy
import numpy.typing
from typing_extensions import Unpack

__all__ = [
    "Bounds",
    "CertifiedPlan",
    "Estimate",
    "NoiseBatch",
    "Progress",
    "Proposal",
    "Split",
    "Tokenizer",
    "VerificationError",
    "VerifiedRun",
    "audited_epsilon",
    "batch_size",
    "certify",
    "delta",
    "epsilon",
    "epsilon_of_mu",
    "epsilon_of_rates",
    "exact_epsilon",
    "gaussian_equivalent",
    "generate",
    "init",
    "noise_batch_ratio",
    "noise_multiplier",
    "odds",
    "renyi_divergence",
    "renyi_epsilon",
    "smallest_batch_size",
    "split_budget",
    "statement",
    "steps",
    "train",
    "train_tokenizer",
    "true_positive_rate",
    "verify",
    "zcdp",
]

_Event: TypeAlias = Mapping[str, Any]
_Events: TypeAlias = _Event | Sequence[_Event]
_Relation: TypeAlias = Literal["add_or_remove_one", "replace_one", "zero_out"]
_Path: TypeAlias = str | PathLike[str]
_Device: TypeAlias = Literal["cpu", "wgpu", "cuda"]

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

_Text: TypeAlias = _ArrowStream | _ArrowArray | Iterable[Mapping[str, Any]] | Iterable[str]

class _InitOptions(TypedDict, total=False):
    name: str
    task: Literal["language-model", "chat", "classification", "multi-label", "tags", "text-to-text", "synthesis"]
    columns: Sequence[str]
    text_field: str
    user_field: str
    label_field: str
    target_field: str
    label_separator: str
    labels: Sequence[str]
    unit: str
    units: int
    epsilon: float
    delta: float
    checkpoint: _Path
    evaluation: _Path
    context: int
    steps: int
    batch_size: int

class _GenerateOptions(TypedDict, total=False):
    tokens: int
    min_tokens: int
    temperature: float
    top_k: int
    top_p: float
    no_repeat_ngram: int
    beams: int
    length_penalty: float
    early_stopping: Literal["true", "false", "never"]
    batch: int
    seed: int
    device: _Device

@final
class Bounds:
    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Estimate:
    @property
    def bounds(self) -> Bounds: ...
    @property
    def point(self) -> float: ...
    @property
    def source(self) -> Literal["inversion", "certified"]: ...

@final
class NoiseBatch:
    @property
    def expected_batch_size(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def noise_multiplier(self) -> float: ...
    @property
    def ratio(self) -> float: ...

@final
class Split:
    @property
    def noise_multipliers(self) -> list[float]: ...
    @property
    def alone(self) -> list[Bounds]: ...
    @property
    def together(self) -> Bounds: ...

def epsilon(
    event: _Events, delta: float, relation: _Relation = "add_or_remove_one", *, group: int | None = None, units: int | None = None
) -> Bounds: ...
def exact_epsilon(event: _Events, delta: float, relation: _Relation = "add_or_remove_one") -> Estimate: ...
def delta(
    event: _Events, epsilon: float, relation: _Relation = "add_or_remove_one", *, group: int | None = None
) -> Bounds: ...
def true_positive_rate(
    event: _Events, false_positive_rate: float, relation: _Relation = "add_or_remove_one", *, group: int | None = None
) -> Bounds: ...
def odds(event: _Events, relation: _Relation = "add_or_remove_one", *, group: int | None = None) -> Bounds: ...
def gaussian_equivalent(event: _Events, delta: float, relation: _Relation = "add_or_remove_one") -> Bounds: ...
def zcdp(event: _Events, relation: _Relation = "add_or_remove_one") -> float: ...
def renyi_divergence(event: _Events, order: float, relation: _Relation = "add_or_remove_one") -> float: ...
def renyi_epsilon(
    event: _Events,
    delta: float,
    relation: _Relation = "add_or_remove_one",
    *,
    conversion: Literal["improved", "classic"] = "improved",
) -> float: ...
def statement(event: _Events, delta: float, relation: _Relation = "add_or_remove_one", *, unit: str = "record") -> str: ...
def epsilon_of_mu(mu: float, delta: float) -> float: ...
def epsilon_of_rates(false_positive_rate: float, true_positive_rate: float, delta: float) -> float: ...
def audited_epsilon(canaries: int, guesses: int, correct: int, delta: float, confidence: float = 0.95) -> float: ...
def noise_multiplier(
    epsilon: float, delta: float, event_for: Callable[[float], _Events], relation: _Relation = "add_or_remove_one"
) -> float: ...
def steps(
    epsilon: float, delta: float, most: int, event_for: Callable[[int], _Events], relation: _Relation = "add_or_remove_one"
) -> int: ...
def batch_size(
    epsilon: float, delta: float, units: int, event_for: Callable[[int], _Events], relation: _Relation = "add_or_remove_one"
) -> int: ...
def smallest_batch_size(
    epsilon: float, delta: float, units: int, event_for: Callable[[int], _Events], relation: _Relation = "add_or_remove_one"
) -> int: ...
def noise_batch_ratio(
    epsilon: float,
    delta: float,
    units: int,
    event_for: Callable[[int, int, float], _Events],
    relation: _Relation = "add_or_remove_one",
    *,
    steps: int | None = None,
    examples: int | None = None,
    slack: float = 0.05,
) -> NoiseBatch: ...
def split_budget(
    epsilon: float,
    delta: float,
    shares: Sequence[float],
    event_for: Callable[[int, float], _Events],
    relation: _Relation = "add_or_remove_one",
) -> Split: ...
@final
class Tokenizer:
    @staticmethod
    def from_file(path: _Path) -> Tokenizer: ...
    @staticmethod
    def from_json(text: str) -> Tokenizer: ...
    def to_json(self) -> str: ...
    @property
    def vocab_size(self) -> int: ...
    def id_to_token(self, id: int) -> str | None: ...
    def token_to_id(self, token: str) -> int | None: ...
    def encode(self, text: str) -> list[int]: ...
    @overload
    def encode_batch(
        self, texts: Sequence[str], *, threads: int | None = None, output: Literal["lists"] = "lists"
    ) -> list[list[int]]: ...
    @overload
    def encode_batch(
        self, texts: Sequence[str], *, threads: int | None = None, output: Literal["numpy"]
    ) -> tuple[numpy.typing.NDArray[numpy.uint32], numpy.typing.NDArray[numpy.int64]]: ...
    def decode(self, ids: Sequence[int]) -> str: ...
    def decode_batch(self, batch: Sequence[Sequence[int]]) -> list[str]: ...
    def __len__(self) -> int: ...

def train_tokenizer(
    input: _Path | Sequence[_Path] | _Text, out: _Path, **options: Any
) -> tuple[Tokenizer, dict[str, Any]]: ...
@final
class Proposal:
    @property
    def plan(self) -> dict[str, Any]: ...
    @property
    def reasons(self) -> str: ...

def init(
    data: _Path | Sequence[_Path] | _Text, out: _Path | None = None, **options: Unpack[_InitOptions]
) -> Proposal: ...
@final
class CertifiedPlan:
    @property
    def name(self) -> str: ...
    @property
    def epsilon(self) -> Bounds | None: ...
    @property
    def delta(self) -> float: ...
    @property
    def sha256(self) -> str: ...

def certify(plan: _Path | dict[str, Any]) -> CertifiedPlan: ...

class VerificationError(Exception): ...

@final
class VerifiedRun:
    @property
    def run(self) -> PathLike[str]: ...
    @property
    def private(self) -> bool: ...
    @property
    def public_data(self) -> bool: ...
    @property
    def epsilon(self) -> Bounds | None: ...
    @property
    def delta(self) -> float: ...
    @property
    def steps_done(self) -> int: ...
    @property
    def steps_planned(self) -> int: ...
    @property
    def evaluation(self) -> dict[str, Any] | None: ...

def verify(folder: _Path) -> VerifiedRun: ...
@final
class Progress:
    @property
    def steps_done(self) -> int: ...
    @property
    def steps_planned(self) -> int: ...
    @property
    def epsilon(self) -> float | None: ...

def train(
    plan: _Path | dict[str, Any],
    out: _Path | None = None,
    *,
    data: _Text | None = None,
    resume: bool = False,
    copied: bool = False,
    device: _Device | None = None,
    physical_batch: int | None = None,
    test_key: int | None = None,
    non_private: bool = False,
    progress: Callable[[Progress], object] | None = None,
    quiet: bool = False,
) -> VerifiedRun: ...
@overload
def generate(run: _Path, prompts: str | None = None, **options: Unpack[_GenerateOptions]) -> str: ...
@overload
def generate(run: _Path, prompts: list[str] | tuple[str, ...], **options: Unpack[_GenerateOptions]) -> list[str]: ...
