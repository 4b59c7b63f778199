"""Routes of images, and of the store that build contexts are uploaded to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import parse_qsl

from prime_local.calls import Call, Handler, Reply
from prime_local.contract import Problem
from prime_local.contract.document import JsonObject
from prime_local.control import team_of
from prime_local.errors import PlatformError, invalid
from prime_local.images.builds import UPLOAD_SECONDS, BuildLife
from prime_local.images.record import Build
from prime_local.images.references import (
    PLATFORM,
    ImageKey,
    ImageOwner,
    Source,
    destination_problem,
    owner_of,
    read_reference,
)
from prime_local.images.updates import update

T = TypeVar("T")

_UPLOAD_TYPE = "application/octet-stream"
# Headers that are for the platform's own hosts alone.
_FOREIGN_HEADERS = ("Authorization", "X-Prime-Team-ID")


async def list_images(call: Call) -> Reply:
    query = call.parameters
    if query.get("ownerScope") == "platform":
        if query.get("teamId") is not None:
            raise _wrong("query", "ownerScope", "Excludes teamId")
        owner = PLATFORM
    else:
        owner = _owner(call, query)
    found = call.core.images.list_rows(owner, query.get("search", ""))
    page = [row for rows in _page(found, query) for row in rows]
    return Reply({"data": page, "totalCount": len(found), **_window(query)})


async def list_image_builds(call: Call) -> Reply:
    query = call.parameters
    builds = call.core.images.list_builds()
    page = [build.to_wire() for build in _page(builds, query)]
    return Reply({"data": page, "totalCount": len(builds), **_window(query)})


async def initiate_image_build(call: Call) -> Reply:
    body = call.body
    visibility = body.get("visibility")
    visibility = None if visibility == "INHERIT" else visibility
    if body.get("source_image", body.get("sourceImage")) is not None:
        reply = _transfer(call, visibility)
    else:
        owner = _owner(call, body)
        missing = [name for name in ("image_name", "image_tag") if not body.get(name)]
        if missing:
            found = [Problem(("body", name), "Field required", "missing") for name in missing]
            raise invalid(found)
        key = _destination(call, owner, body["image_name"], body["image_tag"], visibility)
        path = body.get("dockerfile_path", "Dockerfile")
        platform = body.get("platform", "linux/amd64")
        life = call.core.images.build(key, platform, visibility, dockerfile_path=path)
        url = f"{call.request.scheme}://{call.request.host}/store/{life.record.id}"
        upload = {
            "upload_url": f"{url}?signature={life.signature}",
            "expires_in": UPLOAD_SECONDS,
        }
        reply = Reply({**_begun(call, life.record), **upload}, 201)
    await call.core.saved()
    return reply


async def upload_build_context(call: Call) -> Reply:
    headers = call.request.headers
    if any(name in headers for name in _FOREIGN_HEADERS):
        return _store_error(PlatformError(403, "The request holds headers that are not signed"))
    if call.request.content_type != _UPLOAD_TYPE:
        return _store_error(PlatformError(403, f"The content type is not {_UPLOAD_TYPE}"))
    query = dict(parse_qsl(call.request.rel_url.raw_query_string))
    try:
        life = call.core.images.get_build(call.parameters["presigned_upload"])
        await life.upload(query.get("signature", ""), call.request.content.iter_any())
    except PlatformError as error:
        return _store_error(error)
    return Reply(b"", 200, content_type="text/plain")


async def get_image_build(call: Call) -> Reply:
    return Reply(_build(call).record.to_wire())


async def start_image_build(call: Call) -> Reply:
    life = _build(call)
    life.start()
    await call.core.saved()
    return Reply(life.record.to_wire())


async def update_images(call: Call) -> Reply:
    dry_run = call.body.get("dryRun", False)
    results = update(
        call.core.images,
        call.body["updates"],
        call.core.user_id,
        dry_run=dry_run,
        admin=call.assumptions.platform_role == "admin",
    )
    await call.core.saved()
    success = all(result["success"] for result in results)
    return Reply({"success": success, "dryRun": dry_run, "results": results})


async def delete_image(call: Call) -> Reply:
    name, tag = call.parameters["image_name"], call.parameters["image_tag"]
    plain = _owner(call, call.parameters)
    images = call.core.images
    key = read_reference(f"{name}:{tag}", call.core.user_id, legacy=True, plain=plain)
    if key is None or not await images.delete(key):
        shared = ImageKey(PLATFORM, name, tag)
        if shared not in images.images:
            raise PlatformError(404, f"Image {name}:{tag} not found")
        if call.assumptions.platform_role != "admin":
            raise PlatformError(403, "Only admins delete images of the platform")
        await images.delete(shared)
    await call.core.saved()
    return Reply({"success": True, "message": "Image deleted"})


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        list_images,
        list_image_builds,
        initiate_image_build,
        upload_build_context,
        get_image_build,
        start_image_build,
        update_images,
        delete_image,
    )
}


def _transfer(call: Call, visibility: str | None) -> Reply:
    body = call.body
    text = body.get("source_image", body.get("sourceImage"))
    sources = [Source(part.strip()) for part in text.split(",")]
    named = body.get("image_name"), body.get("image_tag")
    if len(sources) == 1:
        key = _copy_key(call, sources[0], named, visibility)
        return Reply(_begun(call, _copy(call, sources[0], key, visibility)), 201)
    if any(named):
        raise _wrong("body", "image_name", "Goes with one source only")
    results = []
    for source in sources:
        result: JsonObject = {"sourceImage": source.reference, "retryable": False}
        try:
            key = _copy_key(call, source, named, visibility)
            if not source.exists:
                raise PlatformError(404, "source image not found")
            build = _copy(call, source, key, visibility)
            result |= {"build": _begun(call, build), "error": None}
        except PlatformError as error:
            result |= {"build": None, "error": _text(error)}
        results.append(result)
    return Reply({"results": results}, 201)


def _copy(call: Call, source: Source, key: ImageKey, visibility: str | None) -> Build:
    platform = call.body.get("platform", "linux/amd64")
    shown = "PUBLIC" if key.owner == PLATFORM else visibility
    return call.core.images.build(key, platform, shown, source=source.reference).record


def _copy_key(
    call: Call, source: Source, named: tuple[str | None, str | None], visibility: str | None
) -> ImageKey:
    """Return where the copy of a source goes.

    Raises:
        PlatformError: 403 or 422.
    """
    if source.refusal is not None:
        raise _wrong("body", "source_image", source.refusal)
    name, tag = source.derived()
    if source.on_hub:
        team = call.body.get("team_id", call.body.get("teamId"))
        if any(named) or team is not None or visibility == "PRIVATE":
            text = "A Docker Hub image becomes a public image of the platform, under its own name"
            raise _wrong("body", "source_image", text)
        return ImageKey(PLATFORM, name, tag)
    owner = _owner(call, call.body)
    return _destination(call, owner, named[0] or name, named[1] or tag, visibility)


def _destination(
    call: Call, owner: ImageOwner, name: str, tag: str, visibility: str | None
) -> ImageKey:
    if call.body.get("owner_scope", call.body.get("ownerScope")) == "platform":
        if call.assumptions.platform_role != "admin":
            raise PlatformError(403, "Only admins make images of the platform")
        if visibility == "PRIVATE":
            raise _wrong("body", "visibility", "Images of the platform are PUBLIC")
        owner = PLATFORM
    problem = destination_problem(owner, name, tag)
    if problem is not None:
        raise _wrong("body", "image_name", problem)
    return ImageKey(owner, name, tag)


def _begun(call: Call, build: Build) -> JsonObject:
    return {
        "build_id": build.id,
        "buildIds": [build.id],
        "upload_url": None,
        "expires_in": None,
        "fullImagePath": build.key.reference,
        "visibility": build.visibility or call.core.images.visibility(build.key),
    }


def _build(call: Call) -> BuildLife:
    return call.core.images.get_build(call.parameters["build_id"])


def _owner(call: Call, asked: JsonObject) -> ImageOwner:
    """Return whose images are meant; a query spells the team in camelCase."""
    team = asked.get("teamId", asked.get("team_id"))
    return owner_of(team_of(call, {"team_id": team}))


def _page(items: Sequence[T], query: JsonObject) -> Sequence[T]:
    return items[query["offset"] : query["offset"] + query["limit"]]


def _window(query: JsonObject) -> JsonObject:
    return {"offset": query["offset"], "limit": query["limit"]}


def _store_error(error: PlatformError) -> Reply:
    """The answer of a store, which speaks no JSON."""
    return Reply(str(error.detail).encode(), error.status, content_type="text/plain")


def _wrong(place: str, name: str, text: str) -> PlatformError:
    return invalid([Problem((place, name), text, "value_error")])


def _text(error: PlatformError) -> str:
    if isinstance(error.detail, str):
        return error.detail
    return "; ".join(problem["msg"] for problem in error.detail)
