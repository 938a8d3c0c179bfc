"""What looks like personal data in a text: hints for a reader, by pattern, not by meaning.

Telephone numbers are found by `phonenumbers` (the rules of libphonenumber), check digits are those of `python-stdnum`.
Both are tables and rules that come with the packages; nothing is looked up anywhere.
"""

from __future__ import annotations

import re

REGIONS = (None, "US", "GB", "DE", "FR", "IN")
"""Numbers are read as international ones, and as they are written within these countries."""
SHORTEST = 7
"""No telephone number that names a person has fewer digits."""

_EMAIL = re.compile(r"[^\s@<>()]+@[^\s@<>()]+\.[A-Za-z]{2,}")
_CARD = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_STREETS = (
    "street|st|road|rd|avenue|ave|lane|ln|drive|dr|boulevard|blvd|court|ct|square|sq|terrace|close|way|highway|hwy"
)
_NO_NAMES = "(?:in|on|at|of|to|by|down|per|and|the|a) "
_ADDRESSES = (
    re.compile(rf"\b\d{{1,5}}[a-z]?,? (?:(?!{_NO_NAMES})[\w.'-]+ ){{1,3}}(?:{_STREETS})\b", re.IGNORECASE),
    re.compile(r"\b\w{3,}(?:str(?:aße|asse|\.)|weg|gasse|platz|allee) \d{1,4}\b", re.IGNORECASE),
    re.compile(r"\b\d{1,4}(?: bis| ter)?,? (?:rue|avenue|boulevard|place|chemin|impasse) \w", re.IGNORECASE),
    re.compile(r"\b(?:[A-Z][A-Za-z.-]+,? )[A-Z]{2} \d{5}(?:-\d{4})?\b"),
    re.compile(r"\b[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}\b"),
)
"""A house number before a street (English), after it (German), before "rue" (French); US and UK postal codes."""


def detect_personal_data(text: str) -> tuple[str, ...]:
    """The kinds of personal data that a text seems to hold.

    >>> detect_personal_data("write to ann@example.org or call +44 20 7946 0958")
    ('e-mail', 'phone')
    >>> detect_personal_data("pay with 4111 1111 1111 1111"), detect_personal_data("number 4111 1111 1111 1112")
    (('card',), ())
    >>> detect_personal_data("I live at 12 Acacia Avenue")
    ('address',)
    """
    from phonenumbers import PhoneNumberMatcher  # tables of all countries: only who searches waits for them
    from stdnum import iban, luhn

    digits = sum(sign.isdigit() for sign in text)
    rest = _IBAN.sub("", text)  # the groups of an account number look like telephone numbers
    cards = [match.group() for match in _CARD.finditer(rest) if luhn.is_valid(re.sub("[ -]", "", match.group()))]
    for card in cards:
        rest = rest.replace(card, "")
    found = {
        "e-mail": bool(_EMAIL.search(text)),
        "card": bool(cards),
        "iban": any(iban.is_valid(match.group()) for match in _IBAN.finditer(text)),
        "phone": digits >= SHORTEST and any(PhoneNumberMatcher(rest, region).has_next() for region in REGIONS),
        "address": digits > 0 and any(pattern.search(text) for pattern in _ADDRESSES),
    }
    return tuple(kind for kind, is_there in found.items() if is_there)
