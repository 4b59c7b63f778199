"""A secret is shown to nobody who does not ask for it."""

from __future__ import annotations

import copy
import pickle

from prime_core.secret import Secret

KEY = "pit_0123456789abcdef"


def test_a_secret_shows_its_text_only_when_asked() -> None:
    secret = Secret(KEY)
    for text in (str(secret), repr(secret), f"{secret:>20}", str([secret]), repr([secret])):
        assert KEY not in text
        assert "**********" in text
    assert secret.reveal() == KEY
    assert not hasattr(secret, "__dict__")


def test_secrets_compare_by_text_and_an_empty_one_is_false() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert Secret("a")
    assert not Secret("")


def test_a_secret_pickles_to_an_empty_one() -> None:
    data = pickle.dumps(Secret(KEY))
    assert KEY.encode() not in data
    assert pickle.loads(data) == Secret("")
    assert copy.deepcopy(Secret(KEY)).reveal() == KEY
