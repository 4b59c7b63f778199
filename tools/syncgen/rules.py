"""The few things about a sync client that its async source does not say.

A class is named by its package and its name, a docstring by its package and the qualified name of
what it documents, a module's by its import path. A rule that changes nothing is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Constructor:
    """How the parameters of a sync constructor differ from those of the async one.

    Its docstring follows, where that describes them under ``Args:``.

    Args:
        first: the sync constructor's first parameter.
        passed_as: the keyword parameter of the async constructor that ``first`` stands for.
        without: async parameters that the sync constructor lacks.
    """

    first: str
    passed_as: str
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replacement:
    """A passage of a docstring's source that reads otherwise for the sync class."""

    old: str
    new: str


@dataclass(frozen=True)
class Rules:
    """Args:
    constructors: by class, the constructor's change.
    made_by: by class that users never construct, what makes it.
    texts: by what is documented, the passages to replace.
    """

    constructors: Mapping[str, Constructor] = field(default_factory=dict)
    made_by: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, tuple[Replacement, ...]] = field(default_factory=dict)


RULES = Rules(
    constructors={
        # The documentation shows AsyncSandboxClient(api_key) but SandboxClient(APIClient()).
        "prime_sandboxes.AsyncSandboxClient": Constructor(
            first="api_client",
            passed_as="client",
            without=("api_key", "max_connections", "max_keepalive_connections"),
        ),
    },
    texts={
        "prime_sandboxes.AsyncSandboxProcess": (
            Replacement(
                "It is used on the event loop that\nmade it.", "It is used from any thread."
            ),
        ),
        "prime_sandboxes.AsyncSandboxClient": (
            Replacement("in place of ``api_key``.", "in place of its own."),
        ),
        "prime_sandboxes.AsyncSandboxFiles.upload_file": (
            Replacement("an iterable of bytes, async or not.", "an iterable of bytes."),
        ),
        "prime_traces.AsyncTracesUploads.upload_records": (
            Replacement("makes; async or not. For", "makes. For"),
            Replacement("It may be async, and else runs in a thread.", "It runs in a thread."),
        ),
        "prime_traces.AsyncTracesUploads.upload_lines": (
            Replacement("an open binary file; async or not.", "an open binary file."),
        ),
    },
    made_by={
        "prime_core.AsyncResource": "the client of a package",
        "prime_core.AsyncResourceClient": "a package",
        "prime_core.AsyncScope": "a part of a client",
        "prime_sandboxes.AsyncFleet": "SandboxClient.fleet",
        "prime_sandboxes.AsyncSandboxHandle": "a fleet",
        "prime_sandboxes.AsyncProcessOutput": "SandboxProcess",
        "prime_sandboxes.AsyncSandboxProcess": "SandboxClient.open_process",
        "prime_sandboxes.AsyncSandboxProcesses": "SandboxClient",
        "prime_sandboxes.AsyncSandboxResource": "SandboxClient",
        "prime_sandboxes.AsyncSandboxLifecycle": "SandboxClient",
        "prime_sandboxes.AsyncSandboxCommands": "SandboxClient",
        "prime_sandboxes.AsyncSandboxNetworks": "SandboxClient",
        "prime_sandboxes.AsyncSandboxFiles": "SandboxClient",
        "prime_sandboxes.AsyncSandboxJobs": "SandboxClient",
        "prime_sandboxes.AsyncSandboxSSH": "SandboxClient",
        "prime_sandboxes.AsyncSandboxWaiting": "SandboxClient",
        "prime_sandboxes.AsyncSandboxCheckpoints": "SandboxClient",
        "prime_sandboxes.AsyncSandboxForking": "SandboxClient",
        "prime_sandboxes.AsyncVolumes": "SandboxClient.volumes",
        "prime_sandboxes.AsyncImageResource": "ImageClient",
        "prime_sandboxes.AsyncImageCatalog": "ImageClient",
        "prime_sandboxes.AsyncImageBuilds": "ImageClient",
        "prime_traces.AsyncTraceQueries": "TracesClient",
        "prime_traces.AsyncTraceIndex": "TracesClient",
        "prime_traces.AsyncEpisodeQueries": "TracesClient",
        "prime_traces.AsyncRunQueries": "TracesClient",
        "prime_traces.AsyncTraceSearch": "TracesClient",
        "prime_traces.AsyncTracesResource": "TracesClient",
        "prime_compute.AsyncAvailability": "ComputeClient.availability",
        "prime_traces.AsyncRun": "prime_traces.runs.init",
        "prime_compute.AsyncSshKeys": "ComputeClient.ssh_keys",
        "prime_compute.AsyncTeams": "ComputeClient.teams",
        "prime_compute.AsyncAccount": "ComputeClient.account",
        "prime_compute.AsyncTokens": "ComputeClient.tokens",
        "prime_compute.AsyncSecrets": "ComputeClient.secrets",
        "prime_compute.AsyncFeedback": "ComputeClient.feedback",
        "prime_compute.AsyncSlurm": "ComputeClient.slurm",
        "prime_compute.AsyncFactory": "ComputeClient.factory",
        "prime_inference.AsyncChat": "InferenceClient.chat",
        "prime_inference.AsyncChatCompletions": "InferenceClient.chat",
        "prime_inference.AsyncChatCompletionStream": "create with stream=True",
        "prime_inference.AsyncCompletionMap": "InferenceClient.map_completions",
        "prime_inference.AsyncEvaluations": "InferenceClient.evaluations",
        "prime_inference.AsyncModels": "InferenceClient.models",
        "prime_train.AsyncEvaluationSamples": "TrainClient.evaluations",
        "prime_train.AsyncEvaluationLife": "TrainClient.evaluations",
        "prime_train.AsyncEvaluations": "TrainClient.evaluations",
        "prime_train.AsyncCapacity": "TrainClient.capacity",
        "prime_train.AsyncExternalRuns": "TrainClient.external_runs",
        "prime_train.AsyncHostedEvaluations": "TrainClient.hosted_evaluations",
        "prime_train.AsyncRunLife": "TrainClient.runs",
        "prime_train.AsyncRunLogs": "TrainClient.runs",
        "prime_train.AsyncRunOutputs": "TrainClient.runs",
        "prime_train.AsyncRuns": "TrainClient.runs",
        "prime_train.AsyncEnvironmentFiles": "TrainClient.environments",
        "prime_train.AsyncEnvironmentValues": "TrainClient.environments",
        "prime_train.AsyncEnvironmentLookup": "TrainClient.environments",
        "prime_train.AsyncEnvironments": "TrainClient.environments",
        "prime_train.AsyncVolumes": "TrainClient.volumes",
        "prime_train.AsyncVolumeLife": "TrainClient.volumes",
        "prime_train.AsyncVolumeRoutes": "TrainClient.volumes",
        "prime_train.AsyncVolumeSessions": "TrainClient.volumes",
        "prime_train.AsyncOpenVolumeSession": "VolumeSessions.open",
        "prime_train.AsyncBucketTransfers": "TrainClient.volumes",
        "prime_train.AsyncVolumeTransfers": "TrainClient.volumes",
        "prime_traces.AsyncTracesUploads": "TracesClient",
        "prime_compute.AsyncPods": "ComputeClient.pods",
        "prime_compute.AsyncDisks": "ComputeClient.disks",
        "prime_compute.AsyncBilling": "ComputeClient.billing",
        "prime_compute.AsyncPodSession": "Pods.session",
        "prime_compute.AsyncDiskSession": "Disks.session",
    },
)
