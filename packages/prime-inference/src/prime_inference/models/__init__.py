"""What the inference service takes and answers, a module per resource.

Requests are checked before anything is sent. Responses keep fields and words that a newer
platform adds.
"""

from prime_inference.models.catalogue import (
    InferenceModel,
    InferenceModelList,
    ModelPricing,
    ModelSpecs,
    Serving,
)
from prime_inference.models.chat import (
    ChatCompletion,
    ChatCompletionMessage,
    Choice,
    ChoiceLogprobs,
    CompletionTokensDetails,
    CompletionUsage,
    CustomToolCall,
    FunctionCall,
    PromptTokensDetails,
    TokenLogprob,
    ToolCall,
    TopLogprob,
)
from prime_inference.models.chat_requests import (
    ChatCompletionRequest,
    ChatOptions,
    ChatRequest,
    JSONObject,
    Message,
)
from prime_inference.models.chunks import (
    ChatCompletionChunk,
    ChoiceDelta,
    ChunkChoice,
    CustomToolCallDelta,
    FunctionCallDelta,
    ToolCallDelta,
)

__all__ = [
    "ChatCompletion",
    "ChatCompletionChunk",
    "ChatCompletionMessage",
    "ChatCompletionRequest",
    "ChatOptions",
    "ChatRequest",
    "Choice",
    "ChoiceDelta",
    "ChoiceLogprobs",
    "ChunkChoice",
    "CompletionTokensDetails",
    "CompletionUsage",
    "CustomToolCall",
    "CustomToolCallDelta",
    "FunctionCall",
    "FunctionCallDelta",
    "InferenceModel",
    "InferenceModelList",
    "JSONObject",
    "Message",
    "ModelPricing",
    "ModelSpecs",
    "PromptTokensDetails",
    "Serving",
    "TokenLogprob",
    "ToolCall",
    "ToolCallDelta",
    "TopLogprob",
]
