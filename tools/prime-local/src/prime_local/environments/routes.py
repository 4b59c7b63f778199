"""Routes of the Environments Hub."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply
from prime_local.contract.document import JsonObject
from prime_local.control import team_of
from prime_local.environments.record import Artifact, inspect_source
from prime_local.environments.registry import Environment, EnvironmentRegistry
from prime_local.environments.store import PREFIX
from prime_local.environments.value_routes import HANDLERS as VALUE_HANDLERS
from prime_local.errors import PlatformError


async def list_environments(call: Call) -> Reply:
    found = _hub(call).select(call.parameters, private=_has_key(call))
    first, limit = call.parameters["offset"], call.parameters["limit"]
    rows = [_list_item(call, each) for each in found[first : first + limit]]
    return Reply({"data": rows, "total_count": len(found)})


async def resolve_environment(call: Call) -> Reply:
    asked = dict(call.body)
    team = team_of(call, asked)
    if team is not None:
        asked["team_id"] = team
    environment, created = _hub(call).resolve(asked)
    await call.core.saved()
    return Reply({"data": {**environment.identity(), "created": created}})


async def lookup_environment(call: Call) -> Reply:
    return Reply({"data": _hub(call).by_id(call.body["id"]).identity()})


async def get_environment(call: Call) -> Reply:
    environment = _environment(call)
    files = _hub(call).files
    wire = environment.to_wire()
    versions = files.versions(environment.id)
    if not versions and call.parameters["version"] == "latest":
        return Reply({"data": wire})
    version = files.version(environment.id, call.parameters["version"])
    wheel = files.wheel(version)
    return Reply(
        {
            "data": {
                **wire,
                **version.to_ref(),
                "latest_version": versions[0].to_ref(),
                "package_url": _address(call, version),
                "wheel_url": None if wheel is None else _address(call, wheel),
                "metadata": version.asked["metadata"],
            }
        }
    )


async def delete_environment_version(call: Call) -> Reply:
    environment = _own(call, _environment(call))
    files = _hub(call).files
    files.delete_version(files.version(environment.id, call.parameters["version"]))
    await call.core.saved()
    return Reply({})


async def inspect_environment(call: Call) -> Reply:
    environment, files = _environment(call), _hub(call).files
    version = files.version(environment.id, call.parameters["version"])
    path, most = call.parameters.get("path", ""), call.parameters["max_bytes"]
    return Reply({"data": inspect_source(files.content(version.id), version.id, path, most)})


async def get_environment_status(call: Call) -> Reply:
    environment = _environment(call)
    versions = _hub(call).files.versions(environment.id)
    return Reply(
        {
            "data": {
                "name": environment.name,
                "description": _description(versions),
                "visibility": environment.visibility,
                "latest_version": versions[0].to_ref() if versions else None,
            }
        }
    )


async def list_environment_versions(call: Call) -> Reply:
    environment, files = _environment(call), _hub(call).files
    rows = [
        each.to_version(1 if files.wheel(each) is None else 2)
        for each in files.versions(environment.id)
    ]
    return Reply({"data": {"versions": rows}})


async def fork_environment(call: Call) -> Reply:
    source = _environment(call)
    asked: JsonObject = {"name": source.name, "visibility": "PRIVATE", **call.body}
    team = team_of(call, asked)
    if team is not None:
        asked["team_id"] = team
    made, created = _hub(call).resolve(asked)
    if not created:
        raise PlatformError(409, "There is an environment of this name")
    version_id = _hub(call).files.copy(source.id, made.id)
    await call.core.saved()
    return Reply(
        {
            "data": {
                "success": True,
                "message": "Environment forked successfully",
                "environment_id": made.id,
                "version_id": version_id or "",
                "name": made.name,
                "owner": made.identity()["owner"],
                "slug": f"{made.owner}/{made.name}",
            }
        }
    )


async def register_environment_wheel(call: Call) -> Reply:
    made = await _announce(call, "wheel")
    return Reply({"data": {"wheel_id": made.id, "upload_url": _presigned(call, made)}})


async def register_environment_source(call: Call) -> Reply:
    made = await _announce(call, "source")
    return Reply({"data": {"version_id": made.id, "upload_url": _presigned(call, made)}})


async def finalize_environment_wheel(call: Call) -> Reply:
    environment, files = _by_id(call), _hub(call).files
    problem = files.confirm(files.get("wheel", environment.id, call.parameters["wheel_id"]))
    if problem is not None:
        raise PlatformError(400, problem)
    await call.core.saved()
    return Reply({})


async def finalize_environment_source(call: Call) -> Reply:
    environment, files = _by_id(call), _hub(call).files
    problem = files.confirm(files.get("source", environment.id, call.parameters["version_id"]))
    await call.core.saved()
    return Reply({"data": {"success": problem is None, "message": problem}})


async def delete_environment(call: Call) -> Reply:
    _hub(call).delete(_by_id(call))
    await call.core.saved()
    return Reply({})


HANDLERS: dict[str, Handler] = {
    **{
        handler.__name__: handler
        for handler in (
            list_environments,
            resolve_environment,
            lookup_environment,
            get_environment,
            delete_environment_version,
            inspect_environment,
            get_environment_status,
            list_environment_versions,
            fork_environment,
            register_environment_wheel,
            finalize_environment_wheel,
            register_environment_source,
            finalize_environment_source,
            delete_environment,
        )
    },
    **VALUE_HANDLERS,
}


def _hub(call: Call) -> EnvironmentRegistry:
    return call.core.recording.environments


def _has_key(call: Call) -> bool:
    return "Authorization" in call.request.headers  # a wrong one has been refused


def _environment(call: Call) -> Environment:
    """Return the environment of a slug, if the caller can see it."""
    found = _hub(call).by_slug(call.parameters["owner"], call.parameters["name"])
    if found.visibility != "PUBLIC" and not _has_key(call):
        raise PlatformError(404, "Environment not found")
    return found


def _by_id(call: Call) -> Environment:
    return _own(call, _hub(call).by_id(call.parameters["environment_id"]))


def _own(call: Call, environment: Environment) -> Environment:
    _hub(call).check_owned(environment)
    return environment


async def _announce(call: Call, kind: str) -> Artifact:
    made = _hub(call).files.announce(kind, _by_id(call).id, call.body)
    await call.core.saved()
    return made


def _address(call: Call, artifact: Artifact) -> str:
    name = artifact.asked["filename"]
    return f"{call.request.scheme}://{call.request.host}{PREFIX}{artifact.id}/{name}"


def _presigned(call: Call, artifact: Artifact) -> str:
    host = f"{call.request.scheme}://{call.request.host}"
    return f"{host}{PREFIX}{artifact.id}?signature={artifact.signature}"


def _description(versions: list[Artifact]) -> str | None:
    return versions[0].asked["metadata"].get("description") if versions else None


def _list_item(call: Call, environment: Environment) -> JsonObject:
    versions = _hub(call).files.versions(environment.id)
    newest = versions[0] if versions else None
    return {
        **environment.identity(),
        "name": environment.name,
        "description": _description(versions),
        "visibility": environment.visibility,
        "latest_version": None if newest is None else newest.asked.get("semantic_version"),
        "stars": 0,
        "updated_at": environment.created_at if newest is None else newest.created_at,
        "tags": [] if newest is None else newest.asked["metadata"].get("tags", []),
    }
