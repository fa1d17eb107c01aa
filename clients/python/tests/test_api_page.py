"""The page of the API says what the code does."""

from __future__ import annotations

import inspect

import api_page

import bernstream


def test_the_page_is_what_the_signatures_and_docstrings_say() -> None:
    anew = "write it anew with: python tests/api_page.py"
    assert api_page.PAGE.read_text() == api_page.page(), anew


def test_every_public_name_has_a_place_on_it() -> None:
    page = api_page.PAGE.read_text()
    for name in bernstream.__all__:
        assert f"\n## `{name}`\n" in page, name
    members = [name for name, found in inspect.getmembers(bernstream.Synopsis, inspect.isfunction) if name[0] != "_"]
    assert len(members) > 20
    for name in members:
        assert f"\n### `Synopsis.{name}`\n" in page, name
    assert ":meth:" not in page and "``" not in page.replace("```", "")
