//! The pre-tokenizer `UnicodeScripts`, which cuts a text between scripts.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};

use super::PreTokenize;
use crate::FormatError;

/// A pre-tokenizer whose words are runs of one script. Hiragana and katakana go with Han, and a space goes with what is
/// before it.
pub(super) struct UnicodeScripts {
    /// For each 256 code points, the place in `scripts` of the numbers of their scripts, 0 for none.
    pages: Vec<u16>,
    scripts: Vec<[u8; 256]>,
}

impl std::fmt::Debug for UnicodeScripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UnicodeScripts")
    }
}

/// The scripts of Unicode 9, which the table of Hugging Face tokenizers has, the three of Japanese first.
const SCRIPTS: &str = "Han Hiragana Katakana Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah \
    Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham \
    Cherokee Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Duployan Egyptian_Hieroglyphs Elbasan Ethiopic Georgian \
    Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Hangul Hanunoo Hatran Hebrew Imperial_Aramaic Inherited \
    Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Kayah_Li Kharoshthi Khmer Khojki Khudawadi Lao Latin \
    Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Malayalam Mandaic Manichaean Marchen Meetei_Mayek Mende_Kikakui \
    Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean New_Tai_Lue Newa Nko Ogham Ol_Chiki \
    Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_South_Arabian Old_Turkic Oriya Osage Osmanya \
    Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian \
    Siddham SignWriting Sinhala Sora_Sompeng Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil \
    Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Ugaritic Vai Warang_Citi Yi";

/// The number that the three scripts of Japanese share.
const HAN: u8 = 1;

impl UnicodeScripts {
    pub(super) fn read(_: &Value) -> Result<Arc<dyn PreTokenize>, FormatError> {
        let mut of_code = vec![[0_u8; 256]; 0x1100];
        for (number, name) in (1_u8..).zip(SCRIPTS.split_whitespace()) {
            let number = if number <= 3 { HAN } else { number };
            let class = crate::regex::class(&format!("\\p{{{name}}}")).map_err(FormatError::inconsistent)?;
            for code in
                class.ranges().iter().flat_map(|range| u32::from(range.start())..=u32::from(range.end()))
            {
                of_code[code as usize >> 8][code as usize & 0xFF] = number;
            }
        }
        of_code[0][usize::from(b' ')] = 0;
        of_code[0x30][0xFC] = HAN;
        let (mut pages, mut scripts) = (Vec::new(), Vec::<[u8; 256]>::new());
        for page in of_code {
            let known = scripts.iter().position(|other| *other == page);
            pages.push(known.unwrap_or(scripts.len()) as u16);
            if known.is_none() {
                scripts.push(page);
            }
        }
        Ok(Arc::new(Self { pages, scripts }))
    }

    fn script(&self, c: char) -> u8 {
        let code = c as usize;
        self.scripts[usize::from(self.pages[code >> 8])][code & 0xFF]
    }
}

impl PreTokenize for UnicodeScripts {
    fn cut(&self, text: &str, take: &mut dyn FnMut(Range<usize>)) {
        let mut last = None;
        let mut start = None;
        for (at, c) in text.char_indices() {
            let script = self.script(c);
            // A character without a script goes with its neighbors; before the first script, it is dropped.
            if script == 0 {
                continue;
            }
            if last != Some(script) {
                if let Some(start) = start.replace(at) {
                    take(start..at);
                }
                last = Some(script);
            }
        }
        if let Some(start) = start {
            take(start..text.len());
        }
    }

    fn json(&self) -> Value {
        json!({"type": "UnicodeScripts"})
    }
}
