"""What the dispatch of a run answers, and the requests beside `CreateRunRequest`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import ConfigDict, Field, SecretStr
from pydantic.alias_generators import to_camel

from prime_core.exact import ExactNumbers, Price
from prime_core.models import RequestModel, ResponseModel

__all__ = ["DispatchedRun", "PreparedRun", "RunRuntime"]


class DispatchedRun(ExactNumbers, ResponseModel):
    """A run that was dispatched. Follows the page "hosted-training/billing".

    Unknown fields are dropped rather than kept, since they may be secrets.

    Attributes:
        run_id: the run.
        token_value: the run's own API key, masked when printed. The platform tells it once: it is
            None when the answer was lost and the run was found by its name.
        job_id: of older platforms.
        on_demand: whether it is billed on demand; None when the answer was lost, as are the rest.
        gpu_type: GPU that it runs on.
        price_per_gpu_hour: USD, fixed for this run.
        estimated_cost_per_hour: USD for all of its GPUs.
        is_beta: whether on-demand training is in beta.
        volume_created: size of the volume that was made for it, such as ``5Ti``; None when none
            was. It costs money until it is deleted.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")

    run_id: str
    token_value: SecretStr | None = None
    job_id: str | None = None
    on_demand: bool | None = None
    gpu_type: str | None = None
    price_per_gpu_hour: Price | None = None
    estimated_cost_per_hour: Price | None = None
    is_beta: bool | None = None
    volume_created: str | None = None


class RunRuntime(ResponseModel):
    """The build of prime-rl that a run would get.

    Attributes:
        repository: of its image.
        digest: of its image.
        image_commit: what the image is built of.
        source_commit: what is laid over it; None without ``source_ref``.
        schema_commit: what its config is checked by.
    """

    repository: str
    digest: str
    image_commit: str
    source_commit: str | None = None
    schema_commit: str


class SchemaInstall(ResponseModel):
    """How to install the schema of a config.

    Attributes:
        python: version of Python.
        requirements: what to install.
        constraints: with which versions.
    """

    python: str
    requirements: list[str] = Field(default_factory=list)
    constraints: list[str] = Field(default_factory=list)


class PreparedRun(ResponseModel):
    """What a run would be checked against. Nothing is made, and nothing admitted by it.

    Attributes:
        contract_version: of this answer; 1 is known.
        mode: ``rl`` or ``sft``.
        runtime: the build that it would get.
        schema_install: how to install the schema of its config.
        submission_supported: whether a create may bring a config that was checked by it.
    """

    contract_version: int
    mode: str
    runtime: RunRuntime
    schema_install: SchemaInstall
    submission_supported: bool = False


class PrepareBody(RequestModel):
    """The body of a prepare, but for the team."""

    model_config = ConfigDict(alias_generator=to_camel)
    omits_null: ClassVar[bool] = True

    mode: Literal["rl", "sft"] | None = None
    image_tag: str | None = None
    source_ref: str | None = None


class ResumeBody(RequestModel):
    """The body of a resume."""

    model_config = ConfigDict(alias_generator=to_camel)
    omits_null: ClassVar[bool] = True

    gpu_type: str | None = None
    image_tag: str | None = None
    wandb_api_key: str | None = Field(default=None, repr=False)
    hf_token: str | None = Field(default=None, repr=False)
    secrets: dict[str, str] | None = Field(default=None, repr=False)
