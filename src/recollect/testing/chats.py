"""Chat templates of several families and a few conversations: for tests of everything that reads conversations."""

from __future__ import annotations

from recollect.corpora.messages import Messages, say
from recollect.corpora.record import Record

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' "
    "+ '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CHATML_GENERATION = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}{{ '\n' }}{% else %}"
    "{{ message['content'] + '<|im_end|>\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system = '<<SYS>>\n' + messages[0]['content'] + '\n<</SYS>>\n\n' %}{% else %}"
    "{% set loop_messages = messages %}{% set system = '' %}{% endif %}"
    "{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + (system if loop.index0 == 0 else '') + "
    "message['content'].strip() + ' [/INST]' }}{% else %}{{ ' ' + message['content'].strip() + ' ' + eos_token }}"
    "{% endif %}{% endfor %}"
)
ZEPHYR = (
    "{% for message in messages %}\n{{ '<|' + message['role'] + '|>\n' + message['content'] + eos_token }}\n"
    "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"
)
MISTRAL = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System turns are not supported') }}"
    "{% endif %}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + "
    "' [/INST]' }}{% else %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}"
)
TEMPLATES = {
    "chatml": CHATML,
    "chatml-generation": CHATML_GENERATION,
    "llama": LLAMA,
    "zephyr": ZEPHYR,
    "mistral": MISTRAL,
}
CHATS: tuple[Messages, ...] = (
    (say("user", "The quick fox?"), say("assistant", "jumps over the lazy dog, again")),
    (
        say("user", "Съешь же ещё"),
        say("assistant", "этих мягких булок. 🙂"),
        say("user", "and again"),
        say("assistant", "  The dog\n\njumps.  "),
    ),
    (say("user", "x"), say("assistant", "y")),
    (say("user", "again " * 30), say("assistant", "lazy " * 20), say("user", "fox"), say("assistant", "The dog")),
)
"""Turns of one and several languages, with white space around them, short and longer than a window."""


def build_chat_records(chats: tuple[Messages, ...] = CHATS) -> list[Record]:
    """The chats as records of two users."""
    return [Record(id=str(i), user="ab"[i % 2], messages=messages) for i, messages in enumerate(chats)]
