"""For each operation of the contract of training: how a user's program comes to call it.

Only public methods are used, and each must succeed; a test compares the keys with the contract.
"""

from __future__ import annotations

import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import reaching_run_outputs
import reaching_runs
import reaching_volumes

from prime_compute import AsyncComputeClient
from prime_local import PlatformProcess
from prime_train import (
    AsyncTrainClient,
    EnvironmentSecret,
    EnvironmentVariable,
    ExternalRun,
    HostedEvalConfig,
    PublishedEnvironment,
)

PUBLISHED = "primeintellect/gsm8k"
MODEL = "openai/gpt-4.1-mini"
TEAM = "cmb4f0k2p0001l8zq7h3n9x5t"
METADATA = "Metadata-Version: 2.4\nName: reached\nVersion: 0.1.0\n"


@dataclass(frozen=True)
class Ground:
    """What every operation finds there.

    Args:
        client: a client of the platform.
        compute: another one, of what is not training.
        folder: an empty folder of this machine.
        platform: the platform.
    """

    client: AsyncTrainClient
    compute: AsyncComputeClient
    folder: Path
    platform: PlatformProcess

    async def evaluation(self) -> str:
        made = await self.client.evaluations.create("reached", environments=[PUBLISHED])
        return made.evaluation_id

    async def hosted(self) -> str:
        """The id of a hosted evaluation that runs for long."""
        environment = await self.client.environments.get(PUBLISHED)
        assert environment.id is not None
        config = HostedEvalConfig(num_examples=1, rollouts_per_example=1)
        made = await self.client.hosted_evaluations.create([environment.id], MODEL, config)
        return made.ids[0]

    async def environment(self) -> str:
        return (await self.client.environments.resolve("reached")).id

    async def pushed(self) -> PublishedEnvironment:
        (self.folder / "dist").mkdir()
        (self.folder / "reached.py").write_text("def load_environment():\n    return None\n")
        (self.folder / "pyproject.toml").write_text(
            '[project]\nname = "reached"\nversion = "0.1.0"\n'
        )
        wheel = self.folder / "dist" / "reached-0.1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("reached-0.1.0.dist-info/METADATA", METADATA)
        return await self.client.environments.push(self.folder, visibility="PUBLIC")

    async def slug(self) -> str:
        pushed = await self.pushed()
        assert pushed.owner is not None
        return f"{pushed.owner.name}/{pushed.name}"

    async def secret(self) -> tuple[str, EnvironmentSecret]:
        environment = await self.environment()
        made = await self.client.environments.create_secret(environment, "REACHED", "value")
        return environment, made

    async def variable(self) -> tuple[str, EnvironmentVariable]:
        environment = await self.environment()
        made = await self.client.environments.create_variable(environment, "REACHED", "value")
        return environment, made

    async def linked(self) -> tuple[str, str]:
        """An environment, and the account's secret that it has."""
        environment = await self.environment()
        secret = await self.compute.secrets.create("REACHED", "value")
        await self.client.environments.link_secret(environment, secret.id)
        return environment, secret.id

    async def external_run(self) -> ExternalRun:
        return await self.client.external_runs.create("m", [PUBLISHED], team_id=TEAM)


async def list_evaluations(ground: Ground) -> None:
    made = await ground.evaluation()
    found = await ground.client.evaluations.list()
    assert [each.evaluation_id for each in found.evaluations] == [made]


async def get_evaluation(ground: Ground) -> None:
    made = await ground.evaluation()
    assert (await ground.client.evaluations.get(made)).evaluation_id == made


async def update_evaluation(ground: Ground) -> None:
    made = await ground.evaluation()
    assert (await ground.client.evaluations.update(made, name="other")).name == "other"


async def delete_evaluation(ground: Ground) -> None:
    await ground.client.evaluations.delete(await ground.evaluation())


async def bulk_delete_evaluations(ground: Ground) -> None:
    made = await ground.evaluation()
    assert (await ground.client.evaluations.bulk_delete([made])).successful_ids == [made]


async def finalize_evaluation(ground: Ground) -> None:
    await ground.client.evaluations.finalize(await ground.evaluation())


async def push_samples(ground: Ground) -> str:
    made = await ground.evaluation()
    pushed = await ground.client.evaluations.push_samples(made, [{"example_id": 1, "reward": 1.0}])
    assert pushed.samples_pushed == 1
    return made


async def read_samples(ground: Ground) -> None:
    page = await ground.client.evaluations.samples(await push_samples(ground))
    assert page.total == 1


async def cancel_hosted(ground: Ground) -> None:
    made = await ground.hosted()
    assert (await ground.client.hosted_evaluations.cancel(made)).status == "CANCELLED"


async def read_hosted_logs(ground: Ground) -> None:
    assert await ground.client.hosted_evaluations.get_logs(await ground.hosted()) == ""


async def put_hosted_logs(ground: Ground) -> None:
    await ground.client.hosted_evaluations.put_logs(await ground.hosted(), "a line\n")


async def list_environments(ground: Ground) -> None:
    assert (await ground.client.environments.list(search="gsm8k")).total_count == 1


async def lookup_environment(ground: Ground) -> None:
    made = await ground.environment()
    assert (await ground.client.environments.lookup(made)).id == made


async def delete_version(ground: Ground) -> None:
    slug = await ground.slug()
    found = await ground.client.environments.get(slug)
    assert found.content_hash is not None
    await ground.client.environments.delete_version(slug, found.content_hash)


async def inspect_environment(ground: Ground) -> None:
    found = await ground.client.environments.inspect(await ground.slug(), "reached.py")
    assert "def load_environment" in str(found.content)


async def list_versions(ground: Ground) -> None:
    (version,) = await ground.client.environments.versions(await ground.slug())
    assert version.semantic_version == "0.1.0"


async def fork_environment(ground: Ground) -> None:
    fork = await ground.client.environments.fork(await ground.slug(), team_id=TEAM)
    assert fork.slug == f"{TEAM}/reached"


async def delete_environment(ground: Ground) -> None:
    await ground.client.environments.delete(await ground.environment())


async def list_secrets(ground: Ground) -> None:
    environment, made = await ground.secret()
    (listed,) = await ground.client.environments.list_secrets(environment)
    assert listed.id == made.id


async def update_secret(ground: Ground) -> None:
    environment, made = await ground.secret()
    await ground.client.environments.update_secret(environment, made.id, value="other")


async def delete_secret(ground: Ground) -> None:
    environment, made = await ground.secret()
    await ground.client.environments.delete_secret(environment, made.id)
    assert not await ground.client.environments.list_secrets(environment)


async def unlink_secret(ground: Ground) -> None:
    environment, secret = await ground.linked()
    await ground.client.environments.unlink_secret(environment, secret)
    assert not await ground.client.environments.list_secrets(environment)


async def list_variables(ground: Ground) -> None:
    environment, made = await ground.variable()
    (listed,) = await ground.client.environments.list_variables(environment)
    assert listed.id == made.id


async def update_variable(ground: Ground) -> None:
    environment, made = await ground.variable()
    changed = await ground.client.environments.update_variable(environment, made.id, value="other")
    assert changed.value == "other"


async def delete_variable(ground: Ground) -> None:
    environment, made = await ground.variable()
    await ground.client.environments.delete_variable(environment, made.id)
    assert not await ground.client.environments.list_variables(environment)


async def list_models(ground: Ground) -> None:
    assert await ground.client.capacity.list_models()


async def list_gpu_types(ground: Ground) -> None:
    assert "H200_141GB" in await ground.client.capacity.list_gpu_types()


async def end_external_run(ground: Ground) -> None:
    made = await ground.external_run()
    await ground.client.external_runs.set_status(made.id, "failed", "reached")


async def finalize_external_run(ground: Ground) -> None:
    await ground.client.external_runs.finalize((await ground.external_run()).id)


async def log_metrics(ground: Ground) -> None:
    made = await ground.external_run()
    await ground.client.external_runs.log_metrics(made.id, {"loss": 0.5}, step=1)


async def upload_samples(ground: Ground) -> None:
    made = await ground.external_run()
    await ground.client.external_runs.push_samples(made.id, 10, b"PAR1 columns, footer PAR1")


REACH: dict[str, Callable[[Ground], Awaitable[object]]] = {
    **reaching_runs.REACH,
    **reaching_run_outputs.REACH,
    **reaching_volumes.REACH,
    "list_available_fft_models": list_models,
    "list_available_gpu_types": list_gpu_types,
    "create_external_run": lambda ground: ground.external_run(),
    "set_external_run_status": end_external_run,
    "finalize_external_run": finalize_external_run,
    "log_external_run_metrics": log_metrics,
    "presign_external_run_samples": upload_samples,
    "confirm_external_run_samples": upload_samples,
    "list_evaluations": list_evaluations,
    "create_evaluation": lambda ground: ground.evaluation(),
    "bulk_delete_evaluations": bulk_delete_evaluations,
    "get_evaluation": get_evaluation,
    "update_evaluation": update_evaluation,
    "delete_evaluation": delete_evaluation,
    "finalize_evaluation": finalize_evaluation,
    "get_evaluation_samples": read_samples,
    "push_evaluation_samples": push_samples,
    "create_hosted_evaluation": lambda ground: ground.hosted(),
    "list_hosted_evaluation_models": lambda ground: ground.client.hosted_evaluations.models(),
    "cancel_hosted_evaluation": cancel_hosted,
    "get_hosted_evaluation_logs": read_hosted_logs,
    "put_hosted_evaluation_logs": put_hosted_logs,
    "list_environments": list_environments,
    "resolve_environment": lambda ground: ground.environment(),
    "lookup_environment": lookup_environment,
    "get_environment": lambda ground: ground.client.environments.get(PUBLISHED),
    "delete_environment_version": delete_version,
    "inspect_environment": inspect_environment,
    "get_environment_status": lambda ground: ground.client.environments.status(PUBLISHED),
    "list_environment_versions": list_versions,
    "fork_environment": fork_environment,
    "register_environment_wheel": lambda ground: ground.pushed(),
    "finalize_environment_wheel": lambda ground: ground.pushed(),
    "register_environment_source": lambda ground: ground.pushed(),
    "finalize_environment_source": lambda ground: ground.pushed(),
    "delete_environment": delete_environment,
    "list_environment_secrets": list_secrets,
    "create_environment_secret": lambda ground: ground.secret(),
    "update_environment_secret": update_secret,
    "delete_environment_secret": delete_secret,
    "link_environment_secret": lambda ground: ground.linked(),
    "unlink_environment_secret": unlink_secret,
    "list_environment_variables": list_variables,
    "create_environment_variable": lambda ground: ground.variable(),
    "update_environment_variable": update_variable,
    "delete_environment_variable": delete_variable,
}
