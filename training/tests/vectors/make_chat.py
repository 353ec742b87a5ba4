"""Writes chat/expected.json: what transformers makes of the templates in chat/templates, and chat/expressions.json: what it makes of
the short templates that this file has, one for each part of Jinja.

The templates are our own, in the shapes of families that people use. Run with transformers 5.23:
python make_chat.py
"""

import datetime
import json
import pathlib

import transformers.utils.chat_template_utils as chat

HERE = pathlib.Path(__file__).parent / "chat"
DATE = "2026-01-31"


class FixedDay(datetime.datetime):
    """The clock that templates see."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 31)


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


SYSTEM = {"role": "system", "content": " Be brief.\n"}
CONVERSATIONS = [
    [user("Hi")],
    [user(" Hi  \n"), assistant("Hello!")],
    [SYSTEM, user("Hi"), assistant("Hello!"), user("Who?"), assistant("  Me.\n")],
    [user("é <b>&'\" 你好"), assistant("{{ no }} {% raw %}"), user("")],
    [user("a"), user("b")],
    [assistant("first")],
    [user("x"), {"role": "assistant", "content": "y", "name": "Ann", "tags": ["b", 2, 1.5, None, True, {"z": 1, "a": {}}]}],
    [{"role": "tool", "content": "42"}, user("and?"), assistant("42")],
]
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}


def render(template, messages, generation, mask=False):
    try:
        texts, spans = chat.render_jinja_template(
            conversations=[messages], chat_template=template, return_assistant_tokens_mask=mask,
            add_generation_prompt=generation, **SPECIAL)
        return {"text": texts[0], "answers": [list(span) for span in spans[0]] if mask else None}
    except Exception as error:  # whatever the template raises
        return {"error": type(error).__name__}


def main():
    chat.datetime = FixedDay
    expected = {"date": DATE, "special": SPECIAL, "conversations": CONVERSATIONS, "templates": {}}
    for path in sorted((HERE / "templates").glob("*.jinja")):
        template = path.read_text(encoding="utf-8")
        mask = "generation %}" in template or "generation -%}" in template
        expected["templates"][path.stem] = [
            {"whole": render(template, messages, False, mask), "prompt": render(template, messages, True)}
            for messages in CONVERSATIONS
        ]
    text = json.dumps(expected, ensure_ascii=False, indent=1) + "\n"
    (HERE / "expected.json").write_text(text, encoding="utf-8")
    path = HERE / "expressions.json"
    short = json.loads(path.read_text(encoding="utf-8"))
    cases = [[source, render(source, short["messages"], False).get("text")] for source, _ in short["cases"]]
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    messages = json.dumps(short["messages"], ensure_ascii=False)
    path.write_text(f'{{"messages": {messages},\n"cases": [\n{lines}\n]}}\n', encoding="utf-8")


main()
