//! The plans that come with the project.

use plan::PlanFile;

/// A plan ready to be loaded.
pub struct Preset {
    /// Name of its file, without `.json`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The ε its paper states, where it has a paper that states one.
    pub published: Option<&'static str>,
}

/// All of `plan/presets/`.
pub const PRESETS: &[Preset] = &[
    preset("quickstart", include_str!("../../plan/presets/quickstart.json"), None),
    preset("wikitext", include_str!("../../plan/presets/wikitext.json"), None),
    preset("strict-review", include_str!("../../plan/presets/strict-review.json"), None),
    preset("anil-2021-dp-bert", include_str!("../../plan/presets/anil-2021-dp-bert.json"), Some("5.36")),
    preset(
        "anil-2021-dp-bert-schedule",
        include_str!("../../plan/presets/anil-2021-dp-bert-schedule.json"),
        None,
    ),
    preset(
        "hoory-2021-dp-wordpiece",
        include_str!("../../plan/presets/hoory-2021-dp-wordpiece.json"),
        Some("0.6"),
    ),
    preset(
        "igamberdiev-2024-dp-nmt",
        include_str!("../../plan/presets/igamberdiev-2024-dp-nmt.json"),
        Some("5"),
    ),
    preset(
        "kerrigan-2020-reddit",
        include_str!("../../plan/presets/kerrigan-2020-reddit.json"),
        Some("9.75"),
    ),
    preset(
        "ponomareva-2022-dp-t5",
        include_str!("../../plan/presets/ponomareva-2022-dp-t5.json"),
        Some("13.4586238"),
    ),
];

const fn preset(name: &'static str, text: &'static str, published: Option<&'static str>) -> Preset {
    Preset { name, text, published }
}

/// The ε that a paper states for this very plan.
#[must_use]
pub fn published(plan: &PlanFile) -> Option<&'static str> {
    let of_a_paper = PRESETS.iter().filter(|preset| preset.published.is_some());
    of_a_paper.filter(|preset| preset.plan().as_ref() == Some(plan)).find_map(|preset| preset.published)
}

impl Preset {
    /// The plan. `None` only for a text that is no plan, which a test rules out.
    #[must_use]
    pub fn plan(&self) -> Option<PlanFile> {
        serde_json::from_str(self.text).ok()
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_offered_and_is_a_plan() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../plan/presets");
        let files =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<String> =
            files.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect();
        let mut offered: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        files.sort();
        offered.sort_unstable();
        assert_eq!(files, offered);
        for preset in PRESETS {
            assert_eq!(preset.plan(), Some(PlanFile::parse(preset.text).unwrap()), "{}", preset.name);
        }
    }
}
