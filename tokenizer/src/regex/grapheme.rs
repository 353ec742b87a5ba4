//! `\X`: what a reader sees as one character.
//!
//! # References
//! Unicode Standard Annex 29, tables 1b, 1c and 2, without rule GB9c, which Oniguruma does not have.

use super::class::read;
use super::node::Node;

const EXTEND: &str = "[\\p{Grapheme_Extend}\\p{Emoji_Modifier}]";
/// Signs that go before a letter.
const PREPEND: &str = "[\\p{Prepended_Concatenation_Mark}\\x{D4E}\\x{111C2}\\x{111C3}\\x{1193F}\\x{11941}\\x{11A3A}\\x{11A84}-\\x{11A89}\\x{11D46}\\x{11F02}]";
const SPACING: &str = "[[\\p{Mc}\\x{E33}\\x{EB3}]--[\\x{102B}\\x{102C}\\x{1038}\\x{1062}-\\x{1064}\\x{1067}-\\x{106D}\\x{1083}\\x{1087}-\\x{108C}\\x{108F}\\x{109A}-\\x{109C}\\x{1A61}\\x{1A63}\\x{1A64}\\x{AA7B}\\x{AA7D}\\x{11720}\\x{11721}]]";
const CONTROL: &str = "[[\\p{Zl}\\p{Zp}\\p{Cc}\\p{Cf}[\\p{Cn}&&\\p{Default_Ignorable_Code_Point}]]--[\\x{200C}\\x{200D}\\p{Grapheme_Extend}\\p{Prepended_Concatenation_Mark}]]";
/// Parts of Korean syllables: leading consonants, vowels, trailing consonants.
const LEADING: &str = "[\\x{1100}-\\x{115F}\\x{A960}-\\x{A97C}]";
const VOWEL: &str = "[\\x{1160}-\\x{11A7}\\x{D7B0}-\\x{D7C6}]";
const TRAILING: &str = "[\\x{11A8}-\\x{11FF}\\x{D7CB}-\\x{D7FB}]";
/// Whole syllables. Each 28th, from the first on, has no trailing consonant.
const SYLLABLES: std::ops::RangeInclusive<u32> = 0xAC00..=0xD7A3;

/// Returns the expression of a cluster.
pub(super) fn cluster() -> Result<Node, String> {
    let open: String = SYLLABLES.step_by(28).filter_map(char::from_u32).collect();
    let open = format!("[{open}]");
    let closed = format!("[\\x{{AC00}}-\\x{{D7A3}}--{open}]");
    let class = |source: &str| read(source).map(Node::Class);
    let some = |source: &str, min| {
        Ok::<_, String>(Node::Repeat { body: Box::new(class(source)?), min, max: None, is_lazy: false })
    };
    let syllable = Node::Sequence(vec![
        some(LEADING, 0)?,
        Node::Alternatives(vec![
            some(VOWEL, 1)?,
            Node::Sequence(vec![class(&open)?, some(VOWEL, 0)?]),
            class(&closed)?,
        ]),
        some(TRAILING, 0)?,
    ]);
    let joined =
        Node::Sequence(vec![some(EXTEND, 0)?, class("\\x{200D}")?, class("\\p{Extended_Pictographic}")?]);
    let picture = Node::Sequence(vec![
        class("\\p{Extended_Pictographic}")?,
        Node::Repeat { body: Box::new(joined), min: 0, max: None, is_lazy: false },
    ]);
    let flag = vec![class("\\p{Regional_Indicator}")?, class("\\p{Regional_Indicator}")?];
    let core = Node::Alternatives(vec![
        syllable,
        some(LEADING, 1)?,
        some(TRAILING, 1)?,
        Node::Sequence(flag),
        picture,
        class(&format!("[^{CONTROL}]"))?,
    ]);
    let cluster = Node::Alternatives(vec![
        Node::Sequence(vec![class("\\r")?, class("\\n")?]),
        class(CONTROL)?,
        Node::Sequence(vec![some(PREPEND, 0)?, core, some(&format!("[{EXTEND}{SPACING}\\x{{200D}}]"), 0)?]),
    ]);
    Ok(Node::Atomic(Box::new(cluster)))
}
