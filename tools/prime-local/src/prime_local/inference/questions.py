"""Checks of requests to evaluation models: every limit, and the path of what breaks it."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from prime_local.contract.document import JsonObject
from prime_local.inference.errors import refused

_MAX_QUESTIONS = 64
_MAX_OPTIONS = 255
_LEVELS = range(2, 11)
_MAX_IMAGES = 4
_MAX_IMAGE_BYTES = 4 * 1024 * 1024
_MAX_IMAGES_BYTES = 8 * 1024 * 1024
_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_IMAGE = re.compile(r"data:image/(?:png|jpeg|webp);base64,")


def check_evaluation(body: Any) -> None:
    """Check all of a request but its model.

    Raises:
        InferenceError: 400; `param` is the path of the field.
    """
    if not isinstance(body, dict):
        raise refused(None, "The body must be a JSON object")
    if not isinstance(body.get("state"), (str, dict, list)):
        raise refused("state", "state must be a text, an object or an array")
    questions = body.get("questions")
    if not isinstance(questions, dict):
        raise refused("questions", "questions must be an object")
    if not 1 <= len(questions) <= _MAX_QUESTIONS:
        raise refused("questions", f"questions must hold 1 to {_MAX_QUESTIONS} entries")
    for name, question in questions.items():
        where = f"questions.{name}"
        if not _ID.fullmatch(name):
            raise refused(where, "An id is 1 to 100 of A-Z, a-z, 0-9, _, . and -")
        if not isinstance(question, dict):
            raise refused(where, "A question must be an object")
        _check_question(where, question)
    if "images" in body:
        _check_images(body["images"])
    if not isinstance(body.get("providerOptions", {}), dict):
        raise refused("providerOptions", "providerOptions must be an object")


def _check_question(where: str, question: JsonObject) -> None:
    if not isinstance(question.get("instructions", ""), (str, dict, list)):
        where += ".instructions"
        raise refused(where, "instructions must be a text, an object or an array")
    kind, criteria = question.get("type"), question.get("criteria")
    of_criteria = f"{where}.criteria"
    if kind == "boolean":
        if "criteria" in question and not (
            isinstance(criteria, dict) and criteria.keys() <= {"true", "false"}
        ):
            raise refused(of_criteria, 'criteria must be an object of "true" and "false"')
    elif kind == "choice":
        if not isinstance(criteria, dict) or not 1 <= len(criteria) <= _MAX_OPTIONS:
            raise refused(of_criteria, f"criteria must be an object of 1 to {_MAX_OPTIONS} options")
    elif kind == "score":
        if not isinstance(criteria, list) or len(criteria) not in _LEVELS:
            raise refused(of_criteria, "criteria must be an array of 2 to 10 levels")
    else:
        raise refused(f"{where}.type", "type must be boolean, choice or score")


def _check_images(images: Any) -> None:
    if not isinstance(images, list) or len(images) > _MAX_IMAGES:
        raise refused("images", f"images must be an array of at most {_MAX_IMAGES}")
    total = 0
    for place, image in enumerate(images):
        size = _image_bytes(f"images.{place}", image)
        total += size
        if size > _MAX_IMAGE_BYTES:
            raise refused(f"images.{place}", f"An image has at most {_MAX_IMAGE_BYTES} bytes")
    if total > _MAX_IMAGES_BYTES:
        raise refused("images", f"All images have at most {_MAX_IMAGES_BYTES} bytes")


def _image_bytes(where: str, image: Any) -> int:
    """Return the size of an image, once it is decoded."""
    start = _IMAGE.match(image) if isinstance(image, str) else None
    if start is None:
        raise refused(where, "An image must be a base64 data URL of a PNG, JPEG or WebP")
    try:
        size = len(base64.b64decode(image[start.end() :], validate=True))
    except (binascii.Error, ValueError):
        size = 0
    if not size:
        raise refused(where, "The image is not valid base64")
    return size
