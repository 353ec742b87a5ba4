//! Base64 (RFC 4648, section 4), the encoding of a character map in a `tokenizer.json`.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().enumerate().fold(0u32, |group, (i, b)| group | u32::from(*b) << (16 - 8 * i));
        for place in 0..4 {
            let six = (group >> (18 - 6 * place) & 63) as usize;
            text.push(if place <= chunk.len() { char::from(ALPHABET[six]) } else { '=' });
        }
    }
    text
}

/// `None` if the text is not padded base64.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let body = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in body.as_bytes().chunks(4) {
        let mut group = 0;
        for (place, symbol) in chunk.iter().enumerate() {
            let six = ALPHABET.iter().position(|a| a == symbol)?;
            group |= (six as u32) << (18 - 6 * place);
        }
        let whole = chunk.len() * 6 / 8;
        bytes.extend(&group.to_be_bytes()[1..=whole]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_rfc_s_vectors_hold() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), coded);
            assert_eq!(decode(coded).unwrap(), plain.as_bytes());
        }
        assert!(
            decode("Zg=").is_none()
                && decode("Z===").is_none_or(|x| x.is_empty())
                && decode("Z!==").is_none()
        );
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding_and_refuses_the_rest_quietly(bytes: Vec<u8>, text in "[A-Za-z0-9+/=é]{0,12}") {
            prop_assert_eq!(decode(&encode(&bytes)).unwrap(), bytes);
            let _ = decode(&text);
        }
    }
}
