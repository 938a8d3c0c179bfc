"""What the made-up people say: patterns whose gaps their own words fill."""

from __future__ import annotations

GREETINGS = ("hi", "hello", "hey there", "good morning", "good evening", "dear all", "howdy", "greetings")
FAREWELLS = ("bye", "cheers", "best wishes", "see you soon", "take care", "yours", "talk later", "ciao")
FILLERS = ("honestly", "you know", "as always", "to be fair", "by the way", "of course", "as I said", "believe me")
HOBBIES = (
    "gardening", "chess", "cycling", "pottery", "birdwatching", "baking", "climbing", "sailing", "knitting",
    "astronomy", "painting", "fencing", "beekeeping", "archery", "origami", "rowing",
)  # fmt: skip
ENDINGS = (".", "!", "...", " :)")

STATEMENTS = (
    "I met {contact} at the {word} in {city}",
    "{filler}, the {word} was better than the {other}",
    "{contact} asked me about {hobby} again",
    "we talked about {word} and {other} all evening",
    "my {word} broke, so I took the {other} to {employer}",
    "{filler}, nobody at {employer} likes {word}",
    "next week I will try {hobby} with {contact}",
    "the road to {city} was full of {word}",
    "I keep thinking about the {word} that {contact} gave me",
    "at {hour} o'clock I always do some {hobby}",
    "{contact} and I share the {word} near {street}",
    "being a {job}, I see every kind of {word}",
    "I sold the {word} and bought the {other}",
    "{filler}, {city} is too far for {hobby}",
    "the {word} of {contact} reminds me of the {other}",
    "I read about {word} until {hour}",
)
QUESTIONS = (
    "what did you do in {city}?",
    "how is {hobby} going?",
    "do you still have the {word}?",
    "have you heard from {contact}?",
    "is the {word} better than the {other}?",
    "will you come to {street} at {hour}?",
    "how is work at {employer}?",
    "who told you about the {word}?",
)
SECRETS = {
    "card": "my card number is {secret}",
    "pin": "my pin is {secret}",
    "passcode": "the passcode of my door is {secret}",
    "phone": "call me on {secret}",
    "email": "write to {secret}",
}
