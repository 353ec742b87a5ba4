use serde_json::Value;

use super::*;

/// Output of `transformers` for the templates beside it: `tests/vectors/make_chat.py`.
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

/// Returns the bytes of characters `span` of `text`.
fn bytes(text: &str, span: &Value) -> Range<usize> {
    let at = |place: &Value| text.chars().take(place.as_u64().unwrap() as usize).map(char::len_utf8).sum();
    at(&span[0])..at(&span[1])
}

#[test]
fn templates_are_rendered_as_transformers_renders_them() {
    let expected = expected();
    // The struct keeps the order of fields, which counts.
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
            for (own, wanted) in [
                (template.text(messages).map_err(|fault| fault.what), &case["whole"]),
                (template.prompt(messages), &case["prompt"]),
            ] {
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
}

/// Some templates write an answer differently when messages follow it: Qwen 3 leaves out earlier thoughts, and Mistral
/// moves the system prompt to the last turn. Oracle, by hand: the text that the model is to write after the prompt.
#[test]
fn answers_are_told_apart_where_later_messages_change_the_text() {
    let expected = expected();
    let [user, assistant] = ["user", "assistant"].map(|role| {
        move |content: &str| format!(r#"{{"role":"{role}","content":{}}}"#, serde_json::json!(content))
    });
    let system = r#"{"role":"system","content":"Be brief."}"#.to_owned();
    let thought = "<think>\nHm.\n</think>\n\nHello!";
    let empty = "<think>\n\n</think>\n\n";
    for (name, messages, wanted) in [
        (
            "qwen3",
            vec![user("Hi"), assistant("Hello!"), user("Who?"), assistant("Me.")],
            vec!["Hello!<|im_end|>\n".to_owned(), format!("{empty}Me.<|im_end|>\n")],
        ),
        (
            "qwen3",
            vec![user("Hi"), assistant(thought), user("Who?"), assistant("<think>\nOh.\n</think>\n\nMe.")],
            vec!["Hello!<|im_end|>\n".to_owned(), "<think>\nOh.\n</think>\n\nMe.<|im_end|>\n".to_owned()],
        ),
        (
            "mistral",
            vec![system.clone(), user("Hi"), assistant("  Hello! "), user("Who?"), assistant("Me.")],
            vec![" Hello!</s>".to_owned(), " Me.</s>".to_owned()],
        ),
    ] {
        let messages = format!("[{}]", messages.join(","));
        let Conversation { text, answers } = template(name, &expected).conversation(&messages).unwrap();
        let answers: Vec<&str> = answers.into_iter().map(|answer| &text[answer]).collect();
        assert_eq!(answers, wanted, "{name}: {text}");
    }
    // Earlier answers have no opening of their own: what the user says between two answers is not learnt.
    let source = "{% for m in messages %}{% if m.role == 'user' %}U:{{ m.content }};{% elif loop.last %}<a>{{ m.content }}!{% else %}\
                  {{ m.content }}!{% endif %}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}";
    let talk = [user("x"), assistant("y"), user("<a>z"), assistant("v"), user("w")].join(",");
    let template = ChatTemplate::new(source, Vec::new(), None).unwrap();
    let Conversation { text, answers } = template.conversation(&format!("[{talk}]")).unwrap();
    let answers: Vec<&str> = answers.into_iter().map(|answer| &text[answer]).collect();
    assert_eq!((text.as_str(), answers), ("U:x;y!U:<a>z;v!U:w;", vec!["y!", "v!"]));
    // These contents are lists of parts.
    let source = "{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content|trim }}{% else %}{% for p in m.content %}\
                  {{ p.text|trim }}{% endfor %}{% endif %}{{ '!' if loop.last else ';' }}{% endfor %}";
    let template = ChatTemplate::new(source, Vec::new(), None).unwrap();
    let parts = r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":" b"}]}"#;
    let refused = template.conversation(&format!("[{},{parts},{}]", user("x"), user("y"))).unwrap_err();
    assert!(refused.what.contains("message 2") && refused.what.contains("{% generation %}"), "{refused}");
    let Conversation { text, answers } = template.conversation(&format!("[{},{parts}]", user("x"))).unwrap();
    assert_eq!((text.as_str(), answers.len(), &answers[0]), ("[user]x;[assistant]ab!", 1, &(19..22)));
}

/// Templates of one line, one for each part of Jinja. Oracle: `transformers` (`tests/vectors/make_chat.py`).
#[test]
fn each_part_of_jinja_is_as_in_python_or_refused() {
    #[derive(serde::Deserialize)]
    struct Recorded {
        messages: Box<serde_json::value::RawValue>,
        cases: Vec<(String, Option<String>)>,
    }
    // Templates do not need what Python writes of its own objects, or numbers in lists.
    let other = [
        "{{ {'a': 1}.items() }}",
        "{{ [1e16, 1.5] }}",
        "{{ {'a': 1e-5} }}",
        "{{ range(3) }}",
        "{{ 'ǆ'.title() }}",
        "{% macro f(x) %}{{ x }}{% endmacro %}{{ f.name }}{{ f.arguments }}",
    ];
    let text = include_str!("../../tests/vectors/chat/expressions.json");
    let Recorded { messages, cases } = serde_json::from_str(text).unwrap();
    let (mut equal, mut refused, mut different) = (0, Vec::new(), Vec::new());
    for (source, wanted) in &cases {
        let special =
            vec![("bos_token".to_owned(), "<s>".to_owned()), ("eos_token".to_owned(), "</s>".to_owned())];
        let own = ChatTemplate::new(source, special, Some("2026-01-31")).map_err(Fault::from);
        let own = own.and_then(|template| template.text(messages.get()));
        match (own, wanted) {
            (Ok(own), Some(wanted)) if own == *wanted => equal += 1,
            (Ok(_), _) => different.push(source.as_str()),
            (Err(_), Some(_)) => refused.push(source.as_str()),
            (Err(_), None) => {}
        }
    }
    assert_eq!(different, other, "{refused:#?}");
    // Formatting with %, filters for web pages, and methods of texts that no template was seen to call.
    assert!(equal >= 408 && refused.len() <= 40, "{equal} {refused:#?}");
}

/// A line of the template that calls something unknown is named, even for private text. Other faults are not.
#[test]
fn a_fault_of_the_template_is_told_from_one_of_the_messages() {
    let private = |source: &str| {
        let template = ChatTemplate::new(source, Vec::new(), None).unwrap();
        let text = r#"[{"role":"user","content":"Secret"},{"role":"assistant","content":"y"}]"#.to_owned();
        let record = LabelledRecord {
            unit: 0,
            text,
            words: Vec::new(),
            second: None,
            answer: crate::data::Answer::Text(String::new()),
        };
        template.check(&[record], plan::Learn::Answers, "data.source", false).unwrap_err().to_string()
    };
    for (source, wanted) in [
        ("a\n{{ messages[0].content|nonsense }}", "line 2 of the chat template: filter nonsense is unknown"),
        (
            "{{ messages[0].content.encode() }}",
            "line 1 of the chat template: string has no method named encode",
        ),
        ("{{ messages[0].content is nonsense }}", "test nonsense is unknown"),
        ("{{ raise_exception(messages[0].content) }}", "record 1: its messages do not fit the chat template"),
    ] {
        let message = private(source);
        assert!(message.contains(wanted) && !message.contains("Secret"), "{message}");
    }
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
        let refused = template.conversation(messages).unwrap_err().what;
        assert!(refused.contains(want) && !refused.contains("Secret"), "{messages}: {refused}");
    }
}

/// Templates that take a machine's time or memory, or overflow the stack, each with a name.
fn deep_or_long() -> Vec<(&'static str, String)> {
    let nested =
        |depth: usize, open: &str, close: &str| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    let loops = "{% for i in range(1000) %}".repeat(4) + &"{% endfor %}".repeat(4);
    vec![
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
    ]
}

/// Returns templates whose values grow.
fn growing() -> Vec<(&'static str, String)> {
    let again_of = |value: &str, times: usize| {
        format!("{{% for i in range({times}) %}}{{% set n.x = {value} %}}{{% endfor %}}")
    };
    let again =
        |value: &str, times: usize| format!("{{% set n = namespace(x=[1]) %}}{}", again_of(value, times));
    vec![
        ("a list that doubles", again("n.x + n.x", 100)),
        ("an empty list that doubles", format!("{{% set n = namespace(x=[]) %}}{}", again_of("n.x + n.x", 40))),
        ("a list that names itself twice", again("[n.x, n.x]", 60) + "{{ n.x|tojson }}"),
        ("the same as text", again("[n.x, n.x]", 60) + "{% set y = n.x ~ 'a' %}"),
        ("the same compared", again("[n.x, n.x]", 60) + "{% if n.x == [n.x] %}{% endif %}"),
        ("an object that names another twice", again("{'a': n.x, 'b': n.x}", 60)),
        ("a tuple that names another twice", again("(n.x, n.x)", 60) + "{{ n.x }}"),
        ("a tuple without parentheses", again("n.x, n.x", 60) + "{{ n.x }}"),
        ("arguments that double", "{% macro m(x) %}{{ m(x + x) }}{% endmacro %}{{ m([1]) }}".to_owned()),
        ("arguments that name another twice", "{% macro m(x) %}{{ m([x, x]) }}{% endmacro %}{{ m([1]) }}".to_owned()),
        (
            "loops that name another twice",
            "{% for a in [[1]] %}".to_owned()
                + &"{% for a in [[a, a]] %}".repeat(60)
                + "{{ a|string }}"
                + &"{% endfor %}".repeat(61),
        ),
        ("a loop that calls itself", "{% for a in [[1]] recursive %}{{ loop([[a, a]]) }}{% endfor %}".to_owned()),
        ("a space that names itself", "{% set n = namespace() %}{% set n.x = n %}{{ n }}".to_owned()),
        ("the same in a list", "{% set n = namespace() %}{% set n.x = [n, n] %}{{ n.x|tojson }}".to_owned()),
        ("a list 100,000,000 times", "{% set x = [1] * 100000000 %}{{ x|tojson }}".to_owned()),
        ("lists 1000 times in lists", again("[n.x] * 1000", 60) + "{{ n.x|tojson }}"),
        ("slices of slices", again("n.x[0:]", 90_000) + &"{% set n.x = n.x + n.x %}".repeat(30)),
        ("sums of lists", again("[n.x, n.x]|sum(start=[])", 60)),
        ("chains", again("n.x|chain(n.x)", 60)),
        ("pairs of one list", again("n.x|zip(n.x)|list", 60) + "{{ n.x }}"),
        ("batches filled with a list", again("[1]|batch(1000, n.x)", 60) + "{{ n.x|string }}"),
        ("slices filled with a list", again("[1]|slice(1000, n.x)", 60) + "{{ n.x|string }}"),
        ("wide blanks in JSON", "{% set x = [[1]] * 100000 %}{% for i in range(1000) %}{% set y = x|tojson(indent=64) %}{% endfor %}".to_owned()),
        ("a wide text", "{{ '%1000000000d'|format(1) }}".to_owned()),
        ("a wide line", "{{ 'a'|indent(1000000000, true) }}".to_owned()),
        ("replacements", "{% set x = 'a' * 1000000 %}{{ x.replace('a', x) }}".to_owned()),
        ("an equal list again and again", "{% set x = [1] * 100000 %}{% for i in range(1000) %}{% for j in range(1000) %}{% if [x] == [x + []] %}{% endif %}{% endfor %}{% endfor %}".to_owned()),
    ]
}

#[test]
fn no_template_costs_more_than_its_budget() {
    for (name, source) in deep_or_long().into_iter().chain(growing()) {
        let messages = r#"[{"role": "user", "content": "x"}]"#;
        let started = std::time::Instant::now();
        let rendered = ChatTemplate::new(&source, Vec::new(), None)
            .is_ok_and(|template| template.text(messages).is_ok());
        // Adding an empty list to itself gives an empty list.
        assert_eq!(rendered, name.starts_with("an empty list"), "{name}");
        assert!(started.elapsed().as_secs() < 20, "{name}");
    }
}

/// Templates of the largest length and depth that are read.
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
        // Rendering ends, with a text or with a refusal.
        let _ = ChatTemplate::new(&source, Vec::new(), None).map(|template| template.text(messages));
    }
}

/// Each step of the work is small, and templates of models take the same steps.
#[test]
fn templates_that_build_lists_are_rendered() {
    let messages = r#"[{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]"#;
    for (source, wanted) in [
        (
            "{% set n = namespace(x=[]) %}{% for m in messages %}{% set n.x = n.x + [m.role] %}{% endfor %}{{ n.x|join(' ') }}",
            "user assistant",
        ),
        ("{% for m in messages[1:] + messages[:1] %}{{ m['content'] }}{% endfor %}", "yx"),
        (
            "{{ ['a', 'b'][::-1]|join }}{{ ([1] * 3)|length }}{{ (1 + 2) * 3 }}{{ -(messages|length) + 5 }}",
            "ba393",
        ),
        (
            "{{ missing is not defined }}{{ missing|default('d') }}{{ messages[0].none is none }}",
            "TruedFalse",
        ),
        (
            "{% set a, b = 'c', ['d'] %}{{ a ~ b[0] + 'e' if b else '' }}{{ (messages + [])[1].content }}",
            "cdey",
        ),
        (
            "{% macro m(a, b=['z']) %}{{ a + b|first }}{{ caller() if caller }}{% endmacro %}{{ m('x') }}{% call m('q') %}w{% endcall %}",
            "xzqzw",
        ),
        (
            "{% filter upper %}a{% endfilter %}{% set t | trim %} b {% endset %}{{ t }}{{ {'k': [1, 2]}.items()|list|tojson }}",
            "Ab[[\"k\", [1, 2]]]",
        ),
        (
            "{% for a in [1, [2]] recursive %}{{ loop(a) if a is sequence else a }}{% endfor %}{{ [1, 2]|sum }}{{ 'a' in ['a'] and not [] }}",
            "123True",
        ),
    ] {
        let template = ChatTemplate::new(source, Vec::new(), None).unwrap();
        assert_eq!(template.text(messages).unwrap(), wanted, "{source}");
    }
}
