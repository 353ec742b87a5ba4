//! The plans that come with the project.

use plan::PlanFile;

/// A plan ready to be loaded.
pub struct Preset {
    /// Name of its file, without `.json`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// The ε its paper states, where it has a paper that states one.
    pub published: Option<&'static str>,
    /// Why that differs from what is certified.
    pub remark: &'static str,
}

/// All of `plan/presets/`.
pub const PRESETS: &[Preset] = &[
    own("quickstart", include_str!("../../plan/presets/quickstart.json"), "Quickstart on a laptop"),
    own("wikitext", include_str!("../../plan/presets/wikitext.json"), "WikiText-2"),
    own("strict-review", include_str!("../../plan/presets/strict-review.json"), "Strict review"),
    Preset {
        name: "anil-2021-dp-bert",
        text: include_str!("../../plan/presets/anil-2021-dp-bert.json"),
        title: "Anil 2021, DP-BERT",
        published: Some("5.36"),
        remark: "Rényi orders overstate; less noise would have done.",
    },
    own(
        "anil-2021-dp-bert-schedule",
        include_str!("../../plan/presets/anil-2021-dp-bert-schedule.json"),
        "Anil 2021, growing batches",
    ),
    Preset {
        name: "hoory-2021-dp-wordpiece",
        text: include_str!("../../plan/presets/hoory-2021-dp-wordpiece.json"),
        title: "Hoory 2021, DP-WordPiece",
        published: Some("0.6"),
        remark: "Rounded up; its “1 M steps” must be read as 31,250.",
    },
    Preset {
        name: "igamberdiev-2024-dp-nmt",
        text: include_str!("../../plan/presets/igamberdiev-2024-dp-nmt.json"),
        title: "Igamberdiev 2024, DP-NMT",
        published: Some("5"),
        remark: "Calibrated here to the same ε with less noise.",
    },
    Preset {
        name: "kerrigan-2020-reddit",
        text: include_str!("../../plan/presets/kerrigan-2020-reddit.json"),
        title: "Kerrigan 2020, Reddit",
        published: Some("9.75"),
        remark: "An asymptotic formula without its constant: no bound.",
    },
    Preset {
        name: "ponomareva-2022-dp-t5",
        text: include_str!("../../plan/presets/ponomareva-2022-dp-t5.json"),
        title: "Ponomareva 2022, DP-T5",
        published: Some("13.4586238"),
        remark: "Rényi orders overstate; Poisson sampling was assumed.",
    },
];

const fn own(name: &'static str, text: &'static str, title: &'static str) -> Preset {
    Preset { name, text, title, published: None, remark: "" }
}

/// The presets that state a paper's figure.
pub fn papers() -> impl Iterator<Item = &'static Preset> {
    PRESETS.iter().filter(|preset| preset.published.is_some())
}

/// The ε that a paper states for this very plan.
#[must_use]
pub fn published(plan: &PlanFile) -> Option<&'static str> {
    papers().filter(|preset| preset.plan().as_ref() == Some(plan)).find_map(|preset| preset.published)
}

impl Preset {
    /// The plan. `None` only for a text that is no plan, which a test rules out.
    #[must_use]
    pub fn plan(&self) -> Option<PlanFile> {
        PlanFile::unchecked(self.text)
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
