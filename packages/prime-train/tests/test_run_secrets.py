"""Secrets of a run are collected from files and arguments, within the platform's limits."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import unhurried

from prime_core.secret import Secret
from prime_train import build_request, load_config
from prime_train.configs.secrets import RunSecrets, read_secrets
from prime_train.errors import InvalidConfigError

NAME = st.from_regex(re.compile(r"[A-Z_][A-Z0-9_]{0,8}", re.ASCII), fullmatch=True).filter(
    lambda name: name not in ("HF_TOKEN", "WANDB_API_KEY", "PRIME_API_KEY")
)
VALUE = st.text(
    st.one_of(
        st.sampled_from("'\"\\#$ {}\n\t="), st.characters(codec="utf-8", exclude_characters="\r")
    ),
    max_size=12,
)


def revealed(secrets: RunSecrets) -> dict[str, str]:
    return {name: value.reveal() for name, value in secrets.values.items()}


def issues(*arguments: str, **more: object) -> list[str]:
    with pytest.raises(InvalidConfigError) as caught:
        read_secrets(*arguments, environ={}, **more)  # type: ignore[arg-type]
    return [str(issue) for issue in caught.value.issues]


def test_a_name_takes_the_variable_of_the_environment() -> None:
    secrets = read_secrets("A", "B=x=y", "C=", environ={"A": "1", "B": "2"})
    assert revealed(secrets) == {"A": "1", "B": "x=y", "C": ""}


def test_a_variable_that_is_not_set_is_refused_by_its_name() -> None:
    assert issues("MISSING") == ["MISSING: is not set in the environment; pass KEY=VALUE"]


def test_files_come_first_and_later_ones_win(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("a.env", "b.env", "c.env"))
    first.write_text("A=1\nB=1\nC=1\nD=1\n")
    second.write_text("B=2\nC=2\nD=2\n")
    third.write_text("C=3\nD=3\n")
    secrets = read_secrets(str(third), "D=4", env_files=[first, str(second)], environ={})
    assert revealed(secrets) == {"A": "1", "B": "2", "C": "3", "D": "4"}


def test_known_keys_have_places_of_their_own() -> None:
    secrets = read_secrets("WANDB_API_KEY=w", "HF_TOKEN", "A=1", environ={"HF_TOKEN": "h"})
    assert secrets.wandb_api_key == Secret("w")
    assert secrets.hf_token == Secret("h")
    assert revealed(secrets) == {"A": "1"}
    assert read_secrets("WANDB_API_KEY=", environ={}) == RunSecrets()


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=plain", "plain"),
        ("A = spaced out  # comment", "spaced out"),
        ("export A=1", "1"),
        ("A=a#b", "a#b"),
        ("A=", ""),
        ("A=   # comment", ""),
        ("A='single ${HOME} \\n' # comment", "single ${HOME} \\n"),
        ('A="double ${HOME} \\" \\n \\${HOME}"', 'double /h " \n ${HOME}'),
        ("A=${HOME}/x", "/h/x"),
        ("A=$HOME ${}", "$HOME ${}"),
        ('A="two\nlines"', "two\nlines"),
        ("A='-----\nkey\n-----'", "-----\nkey\n-----"),
        ("A=x\r", "x"),
        ('A="${B}"', "'\"\\n"),
    ],
)
def test_a_line_of_a_file_is_read_as_env_files_are(line: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_bytes(f"# first\n\n{line}\nLAST=1\n".encode())
    secrets = read_secrets(str(path), environ={"HOME": "/h", "B": "'\"\\n"})
    assert revealed(secrets) == {"A": value, "LAST": "1"}


@unhurried
@given(values=st.dictionaries(NAME, VALUE, max_size=5), data=st.data())
def test_what_is_quoted_comes_back(
    values: dict[str, str], data: st.DataObject, tmp_path: Path
) -> None:
    text = ""
    for name, value in values.items():
        if "'" not in value and data.draw(st.booleans()):
            text += f"{name}='{value}'\n"
        else:
            escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
            text += f'{name}="{escaped}" # {name}\n'
    path = tmp_path / "quoted.env"
    path.write_bytes(text.encode())
    assert revealed(read_secrets(env_files=[path], environ={})) == values


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("A=${B}", "b"),
        ("A='${B}'", "${B}"),
        ('A="${B}"', "b"),
        ("A=it's # ${B}", "it's # b"),
        ("A='", "'"),
    ],
)
def test_variables_in_an_argument_are_replaced_unless_in_single_quotes(
    argument: str, value: str
) -> None:
    assert revealed(read_secrets(argument, environ={"B": "b"})) == {"A": value}


def test_a_value_may_refer_to_what_was_read_before(tmp_path: Path) -> None:
    path = tmp_path / "a.env"
    path.write_text("HOST=db\nURL=pg://${USER}@${HOST}\n")
    secrets = read_secrets("X=${URL}/y", env_files=[path], environ={"USER": "u", "HOST": "outer"})
    assert revealed(secrets)["URL"] == "pg://u@db"
    assert revealed(secrets)["X"] == "pg://u@db/y"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("A=1\nhunter2\n", 2, "written as KEY=VALUE"),
        ("A=1\n2B=hunter2\n", 2, "written as KEY=VALUE"),
        ("A=1\n\nB='hunter2\n", 3, "unbalanced quotes"),
        ('B="hunter2" hunter2\n', 1, "unbalanced quotes"),
        ("A=1\nB=hunter2${MISSING}\n", 2, "refers to MISSING"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line_and_without_its_values(
    text: str, line: int, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.env"
    path.write_text(text)
    [message] = issues(env_files=[path])
    assert message.startswith(f"{path}:{line}: ")
    assert words in message
    assert "hunter2" not in message


def test_a_file_that_can_t_be_read_is_named(tmp_path: Path) -> None:
    binary = tmp_path / "binary.env"
    binary.write_bytes(b"A=\xff")
    missing = tmp_path / "no.env"
    assert issues(env_files=[missing]) == [f"{missing}: can't be read: No such file or directory"]
    assert issues(env_files=["\0"]) == ["\0: can't be read: ValueError"]
    assert issues(str(binary)) == [f"{binary}: is not UTF-8 text"]
    assert issues("B=${NONE}") == ["B: refers to NONE, which is not set"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["PRIME_API_KEY=hunter2"], "reserved"),
        ([f"A{n}=hunter2" for n in range(33)], "there are 33 secrets"),
        (["A" * 129 + "=hunter2"], "longer than 128"),
        (["A=" + "hunter2" + "x" * (32 * 1024 - 6)], "32,769 bytes; the most is 32,768"),
        (["A=" + "é" * (16 * 1024 + 1)], "32,770 bytes"),
        ([f"A{n}=" + "x" * 32_000 for n in range(9)], "288,000 bytes in all"),
    ],
)
def test_what_is_over_a_limit_is_refused(arguments: list[str], words: str) -> None:
    [message] = issues(*arguments)
    assert words in message
    assert "hunter2" not in message


def test_what_is_just_within_the_limits_is_accepted() -> None:
    arguments = [f"A{n}=x" for n in range(24)] + [f"B{n}=" + "é" * 16_380 for n in range(7)]
    arguments += ["C" * 128 + "=" + "x" * 32_768, "HF_TOKEN=x", "WANDB_API_KEY=x"]
    secrets = read_secrets(*arguments, environ={})
    assert len(secrets.values) == 32


def test_reserved_names_given_by_hand_are_told_their_place() -> None:
    secrets = RunSecrets(values={"HF_TOKEN": Secret("x"), "a b": Secret("y")})
    assert dict(secrets.problems()) == {
        "HF_TOKEN": "is a reserved name; pass it as hf_token",
        "a b": "is not the name of an environment variable",
    }


def test_plain_texts_are_refused_without_being_quoted() -> None:
    plain: list[dict[str, Any]] = [{"hf_token": "hunter2"}, {"values": {"A": "hunter2"}}]
    for arguments in (*plain, {"values": ["hunter2"]}):
        with pytest.raises(TypeError) as caught:
            RunSecrets(**arguments)
        assert "hunter2" not in str(caught.value)
    with pytest.raises(TypeError, match="read_secrets"):
        build_request(load_config({"max_steps": 1}), secrets={"A": "1"})  # type: ignore[arg-type]


def test_no_secret_is_shown_or_pickled() -> None:
    secrets = read_secrets("HF_TOKEN=hunter2", "A=hunter2", environ={})
    assert "hunter2" not in repr(secrets)
    assert b"hunter2" not in pickle.dumps(secrets)


@pytest.mark.parametrize("value", ["sk-hunter2", "1A=hunter2", "hunter2 x", "hunter2/" * 999])
def test_a_value_without_its_name_is_refused_without_being_quoted(value: str) -> None:
    [message] = issues("A=1", value)
    assert message == "argument 2 is neither KEY nor KEY=VALUE nor a file"


def test_every_unusable_argument_is_listed() -> None:
    assert len(issues("MISSING", "no/such.env", "PRIME_API_KEY=x")) == 3
