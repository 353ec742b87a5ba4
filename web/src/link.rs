//! Writes the text of a plan for a link.

use plan::{Initial, PlanFile, Source, Tokenizer};

/// Fields of a checkpoint's `config.json` that name the folder that it was loaded from. They affect no figure.
const FOLDERS: [&str; 2] = ["_name_or_path", "name_or_path"];

/// Returns the plan without names of files, folders and fields, in one line. Its figures stay the same.
pub(crate) fn text(plan: &PlanFile) -> String {
    let mut plan = plan.clone();
    remove_file_names(&mut plan);
    // JSON strings contain no line breaks, so dropping line breaks and indentation keeps the meaning.
    plan.text().lines().map(str::trim_start).collect()
}

fn remove_file_names(plan: &mut PlanFile) {
    let tokens = plan.data.token_file().map(|_| "text.tokens");
    let data = &mut plan.data;
    "text".clone_into(&mut data.text_field);
    let fields = [
        (&mut data.user_field, "user"),
        (&mut data.owners_field, "owners"),
        (&mut data.label_field, "label"),
        (&mut data.target_field, "target"),
        (&mut data.second_text_field, "second_text"),
    ];
    for (field, neutral) in fields {
        if let Some(field) = field {
            neutral.clone_into(field);
        }
    }
    data.columns = None;
    if let Some(evaluation) = &mut plan.evaluation {
        evaluation.text_field = None;
    }
    let evaluation = plan.evaluation.as_mut().map(|evaluation| &mut evaluation.source);
    let sources =
        [(Some(&mut plan.data.source), tokens.unwrap_or("text.jsonl")), (evaluation, "held-out.jsonl")];
    for (source, neutral) in sources {
        if let Some(source) = source.filter(|source| !matches!(source, Source::Embedded { .. })) {
            *source = Source::Path(neutral.to_owned());
        }
    }
    let tokenizers = match &mut plan.tokenizer {
        Tokenizer::Public(public) => std::slice::from_mut(&mut public.path),
        Tokenizer::Extend(extended) => std::slice::from_mut(&mut extended.path),
        Tokenizer::Train(trained) => &mut trained.prior,
        Tokenizer::Bytes => &mut [],
    };
    tokenizers.iter_mut().for_each(|path| "tokenizer.json".clone_into(path));
    if let Initial::Checkpoint(path) = &mut plan.model.initial {
        "checkpoint".clone_into(path);
    }
    plan.model.config.retain(|field, _| !FOLDERS.contains(&field.as_str()));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::handler::certify;
    use crate::presets::PRESETS;

    /// Returns a plan with these fields in place of its own.
    fn with(text: &str, fields: &[(&str, Value)]) -> String {
        let mut plan: Value = serde_json::from_str(text).unwrap();
        for (name, value) in fields {
            plan[name] = value.clone();
        }
        plan.to_string()
    }

    #[test]
    fn the_plan_of_a_link_names_no_file_and_has_the_figures_of_the_plan() {
        let sources = [
            json!({ "path": "secret/secret.csv" }),
            json!({ "paths": ["secret-1.jsonl", "secret-2.jsonl"] }),
            json!({ "path": "secret.tokens" }),
        ];
        let tokenizers = [
            json!({ "public": { "path": "secret.json", "made_from": "public_text" } }),
            json!({ "extend": { "path": "secret.json", "added_tokens": 100, "release": "sips" } }),
        ];
        let mut checked = 0;
        for preset in PRESETS {
            let plan: Value = serde_json::from_str(preset.text).unwrap();
            for source in &sources {
                for tokenizer in &tokenizers {
                    let mut model = plan["model"].clone();
                    model["initial"] = json!({ "checkpoint": "secret" });
                    model["checkpoint_made_from"] = json!("public_text");
                    model["config"] = json!({ "_name_or_path": "C:/secret" });
                    let mut data = plan["data"].clone();
                    data["source"] = source.clone();
                    data["text_field"] = json!("secret text");
                    data["columns"] = json!(["secret text"]);
                    if data.get("user_field").is_some() {
                        data["user_field"] = json!("secret id");
                    }
                    let evaluation = json!({ "source": { "path": "secret-held-out.txt" }, "text_field": "secret", "every": 1 });
                    let fields = [
                        ("data", data),
                        ("tokenizer", tokenizer.clone()),
                        ("model", model),
                        ("evaluation", evaluation),
                    ];
                    let Some(plan) = PlanFile::unchecked(&with(preset.text, &fields)) else { continue };
                    let linked = text(&plan);
                    assert!(!linked.contains("secret") && !linked.contains('\n'), "{linked}");
                    let Ok(certified) = certify(&plan.text()) else { continue };
                    assert_eq!(certify(&linked).unwrap().epsilon, certified.epsilon, "{linked}");
                    checked += 1;
                }
            }
        }
        assert!(checked >= 3, "{checked}");
    }

    #[test]
    fn a_plan_without_files_is_itself_in_its_link() {
        let embedded = json!({ "embedded": { "records": 100, "seed": 1 } });
        for preset in PRESETS {
            let mut data: Value = serde_json::from_str::<Value>(preset.text).unwrap()["data"].clone();
            data["source"] = embedded.clone();
            let mut plan = PlanFile::unchecked(&with(preset.text, &[("data", data)])).unwrap();
            plan.evaluation = None;
            if plan.tokenizer.file().is_none() && plan.model.initial == Initial::Random {
                assert_eq!(PlanFile::unchecked(&text(&plan)), Some(plan), "{}", preset.name);
            }
        }
    }

    #[test]
    fn the_field_of_owners_stays_out_of_links() {
        let plan: Value = serde_json::from_str(PRESETS[0].text).unwrap();
        let (mut data, mut privacy) = (plan["data"].clone(), plan["privacy"].clone());
        data["owners_field"] = json!("secret owners");
        privacy["unit"] = json!("owner");
        let plan =
            PlanFile::unchecked(&with(PRESETS[0].text, &[("data", data), ("privacy", privacy)])).unwrap();
        assert!(!text(&plan).contains("secret") && text(&plan).contains("\"owners_field\": \"owners\""));
    }
}
