use serde_json::Value;

use super::*;

/// What `transformers` makes of the templates beside it: `tests/vectors/make_chat.py`.
const EXPECTED: &str = include_str!("../../tests/vectors/chat/expected.json");

fn expected() -> Value {
    serde_json::from_str(EXPECTED).unwrap()
}

fn template(name: &str, expected: &Value) -> ChatTemplate {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/chat/templates");
    let source = std::fs::read_to_string(format!("{folder}/{name}.jinja")).unwrap();
    let special = special_tokens(&expected["special"]);
    ChatTemplate::new(&source, special, expected["date"].as_str()).unwrap()
}

/// The bytes of characters `span` of `text`.
fn bytes(text: &str, span: &Value) -> Range<usize> {
    let at = |place: &Value| text.chars().take(place.as_u64().unwrap() as usize).map(char::len_utf8).sum();
    at(&span[0])..at(&span[1])
}

#[test]
fn templates_are_rendered_as_transformers_renders_them() {
    let expected = expected();
    // As written: the order of fields counts.
    #[derive(serde::Deserialize)]
    struct Written {
        conversations: Vec<Box<serde_json::value::RawValue>>,
    }
    let Written { conversations } = serde_json::from_str(EXPECTED).unwrap();
    let (mut rendered, mut refused) = (0, 0);
    for (name, cases) in expected["templates"].as_object().unwrap() {
        let template = template(name, &expected);
        for (messages, case) in conversations.iter().zip(cases.as_array().unwrap()) {
            let messages = messages.get();
            for (own, wanted) in
                [(template.text(messages), &case["whole"]), (template.prompt(messages), &case["prompt"])]
            {
                match (own, wanted["text"].as_str()) {
                    (Ok(own), Some(wanted)) => {
                        assert_eq!(own, wanted, "{name}: {messages}");
                        rendered += 1;
                    }
                    (Err(what), None) => {
                        assert!(what.lines().count() == 1, "{what}");
                        refused += 1;
                    }
                    (own, wanted) => panic!("{name}: {messages}: {own:?}, not {wanted:?}"),
                }
            }
            let Some(spans) = case["whole"]["answers"].as_array() else { continue };
            let own = template.conversation(messages).unwrap();
            let wanted: Vec<_> = spans.iter().map(|span| bytes(&own.text, span)).collect();
            assert_eq!(own.answers, wanted, "{name}: {messages}");
        }
    }
    assert!(rendered > 150 && refused > 10, "{rendered} {refused}");
}

#[test]
fn answers_without_marks_are_what_a_message_adds_to_the_prompt_before_it() {
    let expected = expected();
    let messages = r#"[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello!"},{"role":"user","content":"Who?"},{"role":"assistant","content":"Me."}]"#;
    for (name, first, second) in [
        ("chatml", "Hello!<|im_end|>\n", "Me.<|im_end|>\n"),
        ("llama3", "Hello!<|eot_id|>", "Me.<|eot_id|>"),
        ("qwen", "Hello!<|im_end|>\n", "Me.<|im_end|>\n"),
        ("gemma", "Hello!<end_of_turn>\n", "Me.<end_of_turn>\n"),
        ("phi3", "Hello!<|end|>\n", "Me.<|end|>\n</s>"),
        ("mistral", " Hello!</s>", " Me.</s>"),
        ("llama2", " Hello! </s>", " Me. </s>"),
    ] {
        let Conversation { text, answers } = template(name, &expected).conversation(messages).unwrap();
        let answers: Vec<&str> = answers.into_iter().map(|answer| &text[answer]).collect();
        assert_eq!(answers, [first, second], "{name}");
    }
    // This template writes earlier answers otherwise than the last one.
    let refused = template("qwen3", &expected).conversation(messages).unwrap_err();
    assert!(refused.contains("message 2") && refused.contains("{% generation %}"), "{refused}");
}

#[test]
fn templates_and_messages_that_cannot_be_used_are_refused_in_a_line() {
    for (source, want) in [
        ("{% if %}", "line 1 of the chat template"),
        ("a\n{{ bos_token", "line 2"),
        ("{% generation %}a", "without {% endgeneration %}"),
        ("a{% endgeneration %}", "without {% generation %}"),
        ("{% generation %}{% generation %}{% endgeneration %}{% endgeneration %}", "inside another"),
    ] {
        let refused = ChatTemplate::new(source, Vec::new(), None).unwrap_err();
        assert!(refused.contains(want) && refused.lines().count() == 1, "{source}: {refused}");
    }
    let template =
        ChatTemplate::new("{{ messages[0].content }}{{ strftime_now('%Y') }}", Vec::new(), None).unwrap();
    for (messages, want) in [
        ("\"Secret\"", "no list"),
        ("[]", "no message"),
        (r#"["Secret"]"#, "message 1 has no \"role\""),
        (r#"[{"role":"user","content":"a"},{"content":"Secret"}]"#, "message 2 has no \"role\""),
        (r#"[{"role":"user","content":"a"}]"#, "strftime_now"),
    ] {
        let refused = template.conversation(messages).unwrap_err();
        assert!(refused.contains(want) && !refused.contains("Secret"), "{messages}: {refused}");
    }
}

/// Each would take a machine's time or memory, or overflow the stack.
#[test]
fn no_template_costs_more_than_its_budget() {
    let nested =
        |depth: usize, open: &str, close: &str| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    let loops = "{% for i in range(1000) %}".repeat(4) + &"{% endfor %}".repeat(4);
    for (name, source) in [
        ("loops in loops", loops),
        (
            "a text that doubles",
            "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(100) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}".to_owned(),
        ),
        (
            "a sum that doubles",
            "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(100) %}{% set n.x = n.x + n.x %}{% endfor %}{{ n.x }}".to_owned(),
        ),
        ("a product", "{{ 'a' * 1000000000 }}".to_owned()),
        ("a macro that calls itself", "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}".to_owned()),
        (
            "lists in lists as JSON",
            "{% set n = namespace(x=1) %}{% for i in range(3000) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x|tojson }}".to_owned(),
        ),
        ("a wide indent", "{{ [1]|tojson(indent=1000000000000) }}".to_owned()),
        ("parentheses in parentheses", format!("{{{{ {} }}}}", nested(100_000, "(", ")"))),
        ("lists written in lists", format!("{{{{ {} }}}}", nested(100_000, "[", "]"))),
        ("minus before minus", format!("{{{{ {}1 }}}}", "-".repeat(100_000))),
        ("signs before signs", format!("{{{{ {}1 }}}}", "not ".repeat(100_000))),
        ("conditions in conditions", "{% if true %}".repeat(100_000) + &"{% endif %}".repeat(100_000)),
        (
            "lists in lists",
            "{% set n = namespace(x=1) %}{% for i in range(90000) %}{% set n.x = [n.x] %}{% endfor %}{{ raise_exception('built') }}".to_owned(),
        ),
        ("ranges", "{% for i in range(1000000000000) %}x{% endfor %}".to_owned()),
    ] {
        let messages = r#"[{"role": "user", "content": "x"}]"#;
        let started = std::time::Instant::now();
        let rendered = ChatTemplate::new(&source, Vec::new(), None).and_then(|template| template.text(messages));
        assert!(rendered.is_err(), "{name}");
        assert!(started.elapsed().as_secs() < 20, "{name}");
    }
}

/// As long as a template may be, and as deep.
#[test]
fn the_deepest_template_that_is_read_has_room_on_the_stack() {
    let messages = r#"[{"role": "user", "content": "x"}]"#;
    for source in [
        format!("{{{{ {}1 }}}}", "-".repeat(60_000)),
        format!("{{{{ {}1 }}}}", "not ".repeat(16_000)),
        format!("{{{{ 1{} }}}}", "+1".repeat(30_000)),
        format!("{{{{ messages{} }}}}", ".a".repeat(30_000)),
        format!("{{{{ messages{} }}}}", "|e".repeat(30_000)),
    ] {
        // Whether it has a value or not, it ends.
        let _ = ChatTemplate::new(&source, Vec::new(), None).and_then(|template| template.text(messages));
    }
}
