//! Makes examples of conversations.

use std::sync::Arc;

use serde_json::{Value, json};
use tokenizer::{Encoding, OffsetUnit, Tokenizer};

use super::end_of_text;
use crate::RunError;
use crate::chat::{ChatTemplate, Conversation};
use network::Example;

/// The template of conversations, and the parts of them that are learnt.
#[derive(Clone, Debug)]
pub(super) struct Conversations {
    template: Arc<ChatTemplate>,
    settings: plan::Chat,
    /// The token after an answer.
    end: u32,
}

impl Conversations {
    /// Makes an example that predicts each learnt token of a conversation from those before it. The
    /// conversation was checked when it was read.
    pub fn example(&self, messages: &str, tokenizer: &Tokenizer, context: usize) -> Example {
        let Ok(Conversation { text, answers }) =
            self.template.conversation_for(messages, self.settings.learn)
        else {
            return Example::default();
        };
        let Encoding { mut ids, mut offsets } = tokenizer.encode_with_offsets(&text, OffsetUnit::Bytes);
        let beyond = ids.len().saturating_sub(context.saturating_add(1));
        let kept = match self.settings.truncation_side {
            plan::Side::Right => 0..ids.len() - beyond,
            plan::Side::Left => beyond..ids.len(),
        };
        (ids, offsets) = (ids[kept.clone()].to_vec(), offsets[kept].to_vec());
        let is_learnt = |token: &usize| {
            let (start, end) = offsets[*token];
            answers.iter().any(|answer| start < answer.end && answer.start < end)
        };
        let learnt: Vec<usize> = (1..ids.len()).filter(is_learnt).collect();
        Example {
            positions: learnt.iter().map(|token| *token as u32 - 1).collect(),
            targets: learnt.iter().map(|token| ids[*token]).collect(),
            input: ids[..ids.len().saturating_sub(1)].to_vec(),
            ..Example::default()
        }
    }

    /// Creates the settings of a plan's conversations.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the template writes no token after an answer and the tokenizer has
    /// no end-of-text token.
    pub fn new(
        plan: &plan::Plan,
        tokenizer: &Tokenizer,
        template: Option<&Arc<ChatTemplate>>,
    ) -> Result<Self, RunError> {
        let template =
            template.ok_or_else(|| RunError::Failed("conversations need their template".to_owned()))?;
        let end = template.end_of_turn(tokenizer).map_or_else(|| end_of_text(tokenizer), Ok)?;
        Ok(Self { template: Arc::clone(template), settings: plan.training().chat(), end })
    }

    /// Returns the template.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// Returns the token after an answer.
    pub fn end(&self) -> u32 {
        self.end
    }

    /// Returns the text of a conversation in which the assistant speaks next. Plain text becomes
    /// one message of the user.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the template refuses it.
    pub fn turn(&self, prompt: &str) -> Result<String, RunError> {
        let messages = Value::from(messages_of(prompt)).to_string();
        self.template.prompt(&messages).map_err(|what| RunError::Refused(format!("prompt: {what}")))
    }
}

/// Returns the messages of a conversation in JSON; other text is one message of the user.
pub fn messages_of(prompt: &str) -> Vec<Value> {
    let listed = Some(prompt).filter(|prompt| prompt.trim_start().starts_with('['));
    let listed = listed.and_then(|prompt| serde_json::from_str(prompt).ok());
    listed.unwrap_or_else(|| vec![json!({ "role": "user", "content": prompt })])
}

#[cfg(test)]
mod tests {
    use dp_tokenizer::train::{CharacterConfig, characters};

    use super::*;

    const CHATML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor \
                          %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

    /// Conversations, and a tokenizer with a token for each turn's ends and each letter.
    fn chat(settings: plan::Chat) -> (Conversations, Tokenizer) {
        let words = [("▁abcdefghijklmnopqrstuvwxyz".to_owned(), 1.0)];
        let config = CharacterConfig { vocab_size: 400, byte_fallback: true, ..CharacterConfig::default() };
        let tokenizer = characters(&words, &config).unwrap().tokenizer;
        let tokenizer = tokenizer.with_special_tokens(&["<|im_start|>", "<|im_end|>"]);
        let template = Arc::new(ChatTemplate::new(CHATML, Vec::new(), None).unwrap());
        let end = template.end_of_turn(&tokenizer).unwrap();
        assert_eq!(tokenizer.token(end), Some("<|im_end|>"));
        (Conversations { template, settings, end }, tokenizer)
    }

    fn conversation() -> String {
        let messages = json!([
            { "role": "user", "content": "ab" },
            { "role": "assistant", "content": "cd" },
            { "role": "user", "content": "ef" },
            { "role": "assistant", "content": "g" },
            { "role": "user", "content": "h" }
        ]);
        messages.to_string()
    }

    #[test]
    fn only_what_the_assistant_says_is_learnt_and_each_token_of_it() {
        let (chat_of, tokenizer) = chat(plan::Chat::default());
        let example = chat_of.example(&conversation(), &tokenizer, 500);
        assert_eq!(
            tokenizer.decode(&example.targets),
            tokenizer.decode(&tokenizer.encode("cd<|im_end|>\ng<|im_end|>\n"))
        );
        // Each target belongs to the place before it. The prompt ends before the first target.
        for (position, target) in example.positions.iter().zip(&example.targets) {
            let next = example.input.get(*position as usize + 1);
            assert!(next.is_none_or(|next| next == target));
        }
        let first = example.positions[0] as usize;
        let prompt = tokenizer.encode("<|im_start|>user\nab<|im_end|>\n<|im_start|>assistant\n");
        assert_eq!(example.input[..=first], prompt);
        let all = plan::Chat { learn: plan::Learn::All, ..plan::Chat::default() };
        let (chat_of, tokenizer) = chat(all);
        let example = chat_of.example(&conversation(), &tokenizer, 500);
        assert_eq!((example.targets.len(), example.positions[0]), (example.input.len(), 0));
    }

    #[test]
    fn a_long_conversation_loses_the_end_that_the_plan_says() {
        let (right, tokenizer) = chat(plan::Chat::default());
        let whole = right.example(&conversation(), &tokenizer, 500).input;
        assert_eq!(right.example(&conversation(), &tokenizer, 8).input, whole[..8]);
        let left = plan::Chat { truncation_side: plan::Side::Left, ..plan::Chat::default() };
        let (left, _) = chat(left);
        let example = left.example(&conversation(), &tokenizer, 8);
        // The last token of the conversation can only be a target.
        assert_eq!(example.input, whole[whole.len() - 7 - 1..]);
    }
}
