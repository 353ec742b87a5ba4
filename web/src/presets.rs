//! The plans in `plan/presets/`.

use plan::PlanFile;

/// A plan that the page can load.
pub struct Preset {
    /// Name of the preset's file, without `.json`.
    pub name: &'static str,
    /// Text of the file.
    pub text: &'static str,
    /// Name on the page.
    pub title: &'static str,
    /// ε in the paper, if there is a paper that states one.
    pub published: Option<&'static str>,
    /// Reason why the certified ε differs from the published one.
    pub remark: &'static str,
}

/// All presets. The page starts with the first one.
pub const PRESETS: &[Preset] = &[
    without_paper("quickstart", include_str!("../../plan/presets/quickstart.json"), "Quickstart on a laptop"),
    without_paper("wikitext", include_str!("../../plan/presets/wikitext.json"), "WikiText-2"),
    without_paper("strict-review", include_str!("../../plan/presets/strict-review.json"), "Strict review"),
    Preset {
        name: "anil-2021-dp-bert",
        text: include_str!("../../plan/presets/anil-2021-dp-bert.json"),
        title: "Anil 2021, DP-BERT",
        published: Some("5.36"),
        remark: "Rényi accounting overestimates ε. Less noise would have been enough.",
    },
    without_paper(
        "anil-2021-dp-bert-schedule",
        include_str!("../../plan/presets/anil-2021-dp-bert-schedule.json"),
        "Anil 2021, growing batches",
    ),
    Preset {
        name: "hoory-2021-dp-wordpiece",
        text: include_str!("../../plan/presets/hoory-2021-dp-wordpiece.json"),
        title: "Hoory 2021, DP-WordPiece",
        published: Some("1.1"),
        remark: "The paper adds two ε. Its “1 M steps” must mean 31,250 steps.",
    },
    Preset {
        name: "igamberdiev-2024-dp-nmt",
        text: include_str!("../../plan/presets/igamberdiev-2024-dp-nmt.json"),
        title: "Igamberdiev 2024, DP-NMT",
        published: Some("5"),
        remark: "This plan reaches the same ε with less noise.",
    },
    Preset {
        name: "kerrigan-2020-reddit",
        text: include_str!("../../plan/presets/kerrigan-2020-reddit.json"),
        title: "Kerrigan 2020, Reddit",
        published: Some("9.75"),
        remark: "The paper’s formula is asymptotic and omits a constant, so it is not a bound.",
    },
    Preset {
        name: "ponomareva-2022-dp-t5",
        text: include_str!("../../plan/presets/ponomareva-2022-dp-t5.json"),
        title: "Ponomareva 2022, DP-T5",
        published: Some("13.4586238"),
        remark: "Rényi accounting overestimates ε. The paper assumes Poisson sampling.",
    },
];

const fn without_paper(name: &'static str, text: &'static str, title: &'static str) -> Preset {
    Preset { name, text, title, published: None, remark: "" }
}

/// Returns the presets with a published ε.
pub fn papers() -> impl Iterator<Item = &'static Preset> {
    PRESETS.iter().filter(|preset| preset.published.is_some())
}

/// Returns the published ε of exactly this plan.
#[must_use]
pub fn published(plan: &PlanFile) -> Option<&'static str> {
    papers().filter(|preset| preset.plan().as_ref() == Some(plan)).find_map(|preset| preset.published)
}

impl Preset {
    /// Parses the plan. Never returns `None`: a test parses every preset.
    #[must_use]
    pub fn plan(&self) -> Option<PlanFile> {
        PlanFile::unchecked(self.text)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_preset_and_parses() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../plan/presets");
        let files =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<String> =
            files.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect();
        let mut names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        files.sort();
        names.sort_unstable();
        assert_eq!(files, names);
        for preset in PRESETS {
            assert_eq!(preset.plan(), Some(PlanFile::parse(preset.text).unwrap()), "{}", preset.name);
        }
    }
}
