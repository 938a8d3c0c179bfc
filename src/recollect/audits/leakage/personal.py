"""What looks like personal data in a text: hints for a reader, by what such data look like, not by what they mean."""

from __future__ import annotations

import re

_EMAIL = re.compile(r"[^\s@<>()]+@[^\s@<>()]+\.[A-Za-z]{2,}")
_CARD = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_PHONE = re.compile(r"(?<![\w.])(?:\+|00|0|\()\d[\d ()/.-]{6,18}\d(?!\w)")


def personal(text: str) -> tuple[str, ...]:
    """The kinds of personal data that a text seems to hold.

    >>> personal("write to ann@example.org or call +44 20 7946 0958")
    ('e-mail', 'phone')
    >>> personal("pay with 4111 1111 1111 1111"), personal("number 4111 1111 1111 1112")
    (('card',), ())
    """
    rest = _IBAN.sub("", text)  # the groups of an account number look like telephone numbers
    found = {
        "e-mail": bool(_EMAIL.search(text)),
        "card": any(luhn(match.group()) for match in _CARD.finditer(rest)),
        "iban": any(iban(match.group()) for match in _IBAN.finditer(text)),
        "phone": bool(_PHONE.search(rest)),
    }
    return tuple(kind for kind, is_there in found.items() if is_there)


def luhn(number: str) -> bool:
    """Whether the check digit of a card number is right (ISO/IEC 7812).

    >>> luhn("4111-1111-1111-1111"), luhn("4111-1111-1111-1112")
    (True, False)
    """
    digits = [int(sign) for sign in number if sign.isdecimal()][::-1]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def iban(number: str) -> bool:
    """Whether the check digits of an account number are right (ISO 13616).

    >>> iban("GB82 WEST 1234 5698 7654 32"), iban("GB83 WEST 1234 5698 7654 32")
    (True, False)
    """
    plain = number.replace(" ", "")
    return int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1
