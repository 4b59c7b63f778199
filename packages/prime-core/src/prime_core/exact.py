"""Numbers whose digits stay as they were written: prices never become binary floats.

pydantic reads and writes JSON numbers through floats, also for `Decimal` fields. Models with
`ExactNumbers` among their bases read the source text instead, which takes about twice as long.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any, NoReturn, TypeAlias

from pydantic import BaseModel, BeforeValidator
from pydantic_core import InitErrorDetails, PydanticCustomError, to_json
from pydantic_core import ValidationError as InvalidData
from typing_extensions import Self

__all__ = ["ExactNumbers", "Price"]

# Numbers smaller than this are written with an exponent, lest a short one fill the memory.
SMALLEST_EXPONENT = -400


def _refuse_float(value: object) -> object:
    if isinstance(value, (bool, float)):
        raise PydanticCustomError(
            "inexact_price", "a price is a Decimal, or text such as '2.69': a float loses digits"
        )
    return value


Price: TypeAlias = Annotated[Decimal, BeforeValidator(_refuse_float)]
"""An amount of money, exact to the digit. Its model needs `ExactNumbers` among its bases."""


class ExactNumbers(BaseModel):
    """Base of models that hold prices: JSON numbers keep their digits, both ways.

    Also those in fields that the model does not know. It goes before the other base, on the
    outermost model of an answer or a request: what that holds is read and written with it.
    """

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        try:
            data = json.loads(json_data, parse_float=Decimal, parse_constant=_refuse_constant)
        except (ValueError, ArithmeticError, RecursionError) as error:
            problem = InitErrorDetails(
                type="json_invalid", input=json_data, ctx={"error": str(error)}
            )
            raise InvalidData.from_exception_data(
                cls.__name__, [problem], input_type="json", hide_input=True
            ) from None
        return cls.model_validate(data, **options)

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        return _write(self.model_dump(**options), indent, "\n")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _write(value: object, indent: int | None, line: str) -> str:
    """JSON as pydantic writes it, but for numbers; ``line`` ends one at the present depth."""
    inner = line + " " * (indent or 0)
    if isinstance(value, Decimal):
        return _digits(value)
    if isinstance(value, dict):
        colon = ":" if indent is None else ": "
        pairs = (
            f"{to_json(str(key)).decode()}{colon}{_write(item, indent, inner)}"
            for key, item in value.items()
        )
        return "{" + _enclosed(pairs, indent, line, inner) + "}"
    if isinstance(value, (list, tuple)):
        items = (_write(item, indent, inner) for item in value)
        return "[" + _enclosed(items, indent, line, inner) + "]"
    return to_json(value).decode()


def _enclosed(items: Iterable[str], indent: int | None, line: str, inner: str) -> str:
    if indent is None:
        return ",".join(items)
    text = f",{inner}".join(items)
    return f"{inner}{text}{line}" if text else ""


def _digits(number: Decimal) -> str:
    if not number.is_finite():
        raise ValueError(f"{number} is no JSON number")
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    # Where "f" would add zeros, or very many, the exponent stays.
    return f"{number:f}" if SMALLEST_EXPONENT <= exponent <= 0 else str(number)
