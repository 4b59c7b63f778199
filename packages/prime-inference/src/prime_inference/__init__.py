"""Inference on the Prime Intellect platform: chat, streams, evaluation models, async and sync."""

# A bare table: nothing is imported before a name of it is used (PEP 562).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from prime_core._async.api_client import AsyncAPIClient as AsyncAPIClient
    from prime_core._sync.api_client import APIClient as APIClient
    from prime_core.config import Config as Config
    from prime_core.errors import APIConnectionError as APIConnectionError
    from prime_core.errors import APIError as APIError
    from prime_core.errors import APIResponseError as APIResponseError
    from prime_core.errors import APITimeoutError as APITimeoutError
    from prime_core.errors import BadRequestError as BadRequestError
    from prime_core.errors import ConfigurationError as ConfigurationError
    from prime_core.errors import ConflictError as ConflictError
    from prime_core.errors import ForbiddenError as ForbiddenError
    from prime_core.errors import NotFoundError as NotFoundError
    from prime_core.errors import PaymentRequiredError as PaymentRequiredError
    from prime_core.errors import PrimeError as PrimeError
    from prime_core.errors import QuotaExceededError as QuotaExceededError
    from prime_core.errors import RateLimitError as RateLimitError
    from prime_core.errors import ServerError as ServerError
    from prime_core.errors import StreamStateError as StreamStateError
    from prime_core.errors import UnauthorizedError as UnauthorizedError
    from prime_core.errors import ValidationError as ValidationError
    from prime_inference._async.chat import AsyncChat as AsyncChat
    from prime_inference._async.chat import AsyncChatCompletions as AsyncChatCompletions
    from prime_inference._async.chat_streams import (
        AsyncChatCompletionStream as AsyncChatCompletionStream,
    )
    from prime_inference._async.completion_map import AsyncCompletionMap as AsyncCompletionMap
    from prime_inference._async.evaluations import AsyncEvaluations as AsyncEvaluations
    from prime_inference._async.inference_client import AsyncInferenceClient as AsyncInferenceClient
    from prime_inference._async.models import AsyncModels as AsyncModels
    from prime_inference._sync.chat import Chat as Chat
    from prime_inference._sync.chat import ChatCompletions as ChatCompletions
    from prime_inference._sync.chat_streams import ChatCompletionStream as ChatCompletionStream
    from prime_inference._sync.completion_map import CompletionMap as CompletionMap
    from prime_inference._sync.evaluations import Evaluations as Evaluations
    from prime_inference._sync.inference_client import InferenceClient as InferenceClient
    from prime_inference._sync.models import Models as Models
    from prime_inference.completion_results import CompletionResult as CompletionResult
    from prime_inference.completion_results import CompletionTotals as CompletionTotals
    from prime_inference.errors import ModelNotFoundError as ModelNotFoundError
    from prime_inference.errors import ResultFileError as ResultFileError
    from prime_inference.models import BooleanAnswer as BooleanAnswer
    from prime_inference.models import BooleanQuestion as BooleanQuestion
    from prime_inference.models import ChatCompletion as ChatCompletion
    from prime_inference.models import ChatCompletionChunk as ChatCompletionChunk
    from prime_inference.models import ChatCompletionMessage as ChatCompletionMessage
    from prime_inference.models import ChatCompletionRequest as ChatCompletionRequest
    from prime_inference.models import ChatOptions as ChatOptions
    from prime_inference.models import ChatRequest as ChatRequest
    from prime_inference.models import Choice as Choice
    from prime_inference.models import ChoiceAnswer as ChoiceAnswer
    from prime_inference.models import ChoiceDelta as ChoiceDelta
    from prime_inference.models import ChoiceLogprobs as ChoiceLogprobs
    from prime_inference.models import ChoiceQuestion as ChoiceQuestion
    from prime_inference.models import ChunkChoice as ChunkChoice
    from prime_inference.models import CompletionTokensDetails as CompletionTokensDetails
    from prime_inference.models import CompletionUsage as CompletionUsage
    from prime_inference.models import CustomToolCall as CustomToolCall
    from prime_inference.models import CustomToolCallDelta as CustomToolCallDelta
    from prime_inference.models import EvaluationResponse as EvaluationResponse
    from prime_inference.models import EvaluationUsage as EvaluationUsage
    from prime_inference.models import FunctionCall as FunctionCall
    from prime_inference.models import FunctionCallDelta as FunctionCallDelta
    from prime_inference.models import InferenceModel as InferenceModel
    from prime_inference.models import InferenceModelList as InferenceModelList
    from prime_inference.models import ModelPricing as ModelPricing
    from prime_inference.models import ModelSpecs as ModelSpecs
    from prime_inference.models import PromptTokensDetails as PromptTokensDetails
    from prime_inference.models import Rounding as Rounding
    from prime_inference.models import ScoreAnswer as ScoreAnswer
    from prime_inference.models import ScoreQuestion as ScoreQuestion
    from prime_inference.models import Serving as Serving
    from prime_inference.models import TokenLogprob as TokenLogprob
    from prime_inference.models import ToolCall as ToolCall
    from prime_inference.models import ToolCallDelta as ToolCallDelta
    from prime_inference.models import TopLogprob as TopLogprob
    from prime_inference.models import UnknownAnswer as UnknownAnswer
    from prime_inference.openai_clients import async_openai_client as async_openai_client
    from prime_inference.openai_clients import openai_client as openai_client

_EXPORTS = {
    "APIClient": "prime_core._sync.api_client",
    "APIConnectionError": "prime_core.errors",
    "APIError": "prime_core.errors",
    "APIResponseError": "prime_core.errors",
    "APITimeoutError": "prime_core.errors",
    "AsyncAPIClient": "prime_core._async.api_client",
    "AsyncChat": "prime_inference._async.chat",
    "AsyncChatCompletionStream": "prime_inference._async.chat_streams",
    "AsyncChatCompletions": "prime_inference._async.chat",
    "AsyncCompletionMap": "prime_inference._async.completion_map",
    "AsyncEvaluations": "prime_inference._async.evaluations",
    "AsyncInferenceClient": "prime_inference._async.inference_client",
    "AsyncModels": "prime_inference._async.models",
    "BadRequestError": "prime_core.errors",
    "BooleanAnswer": "prime_inference.models",
    "BooleanQuestion": "prime_inference.models",
    "Chat": "prime_inference._sync.chat",
    "ChatCompletion": "prime_inference.models",
    "ChatCompletionChunk": "prime_inference.models",
    "ChatCompletionMessage": "prime_inference.models",
    "ChatCompletionRequest": "prime_inference.models",
    "ChatCompletionStream": "prime_inference._sync.chat_streams",
    "ChatCompletions": "prime_inference._sync.chat",
    "ChatOptions": "prime_inference.models",
    "ChatRequest": "prime_inference.models",
    "Choice": "prime_inference.models",
    "ChoiceAnswer": "prime_inference.models",
    "ChoiceDelta": "prime_inference.models",
    "ChoiceLogprobs": "prime_inference.models",
    "ChoiceQuestion": "prime_inference.models",
    "ChunkChoice": "prime_inference.models",
    "CompletionMap": "prime_inference._sync.completion_map",
    "CompletionResult": "prime_inference.completion_results",
    "CompletionTokensDetails": "prime_inference.models",
    "CompletionTotals": "prime_inference.completion_results",
    "CompletionUsage": "prime_inference.models",
    "Config": "prime_core.config",
    "ConfigurationError": "prime_core.errors",
    "ConflictError": "prime_core.errors",
    "CustomToolCall": "prime_inference.models",
    "CustomToolCallDelta": "prime_inference.models",
    "EvaluationResponse": "prime_inference.models",
    "EvaluationUsage": "prime_inference.models",
    "Evaluations": "prime_inference._sync.evaluations",
    "ForbiddenError": "prime_core.errors",
    "FunctionCall": "prime_inference.models",
    "FunctionCallDelta": "prime_inference.models",
    "InferenceClient": "prime_inference._sync.inference_client",
    "InferenceModel": "prime_inference.models",
    "InferenceModelList": "prime_inference.models",
    "ModelNotFoundError": "prime_inference.errors",
    "ModelPricing": "prime_inference.models",
    "ModelSpecs": "prime_inference.models",
    "Models": "prime_inference._sync.models",
    "NotFoundError": "prime_core.errors",
    "PaymentRequiredError": "prime_core.errors",
    "PrimeError": "prime_core.errors",
    "PromptTokensDetails": "prime_inference.models",
    "QuotaExceededError": "prime_core.errors",
    "RateLimitError": "prime_core.errors",
    "ResultFileError": "prime_inference.errors",
    "Rounding": "prime_inference.models",
    "ScoreAnswer": "prime_inference.models",
    "ScoreQuestion": "prime_inference.models",
    "ServerError": "prime_core.errors",
    "StreamStateError": "prime_core.errors",
    "Serving": "prime_inference.models",
    "TokenLogprob": "prime_inference.models",
    "ToolCall": "prime_inference.models",
    "ToolCallDelta": "prime_inference.models",
    "TopLogprob": "prime_inference.models",
    "UnauthorizedError": "prime_core.errors",
    "UnknownAnswer": "prime_inference.models",
    "ValidationError": "prime_core.errors",
    "async_openai_client": "prime_inference.openai_clients",
    "openai_client": "prime_inference.openai_clients",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> object:
    from prime_core.lazy import load

    return load(__name__, name, _EXPORTS)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
