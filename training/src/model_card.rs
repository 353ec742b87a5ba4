//! Writes the model card of an export. The card follows from the certificate, the plan and the figures on public text,
//! so it can be verified too.

use plan::Objective;

use crate::infer::Evaluation;
use crate::store::certificate::Certificate;

/// Name of the card's file.
pub const NAME: &str = "README.md";

/// Writes a model card in the form of model hubs. It begins with the guarantee and its limits.
pub fn render(c: &Certificate, plan: &plan::Plan, evaluation: Option<&Evaluation>) -> String {
    let title = c.name.replace(['\n', '\r'], " ");
    let tags = if c.private { "\n- differential-privacy" } else { "" };
    let library = match plan.model().pooling {
        Some(plan::Pooling::Mean) => "library_name: sentence-transformers\n",
        None if plan.model().family.is_in_transformers() => "library_name: transformers\n",
        None => "",
    };
    let task = match plan.training().objective {
        Objective::CausalLm | Objective::Chat => "text-generation",
        Objective::SpanCorruption | Objective::PrefixLm | Objective::TextToText => "text2text-generation",
        Objective::MaskedLm | Objective::MaskedLmNextSentence => "fill-mask",
        Objective::SequenceClassification | Objective::MultiLabelClassification => "text-classification",
        Objective::TokenClassification => "token-classification",
    };
    let promise = c.summary.as_ref().unwrap_or(&c.guarantee.statement);
    let mut card = format!("---\n{library}tags:\n- {task}{tags}\n---\n\n# {title}\n\n{promise}\n");
    card.push_str(&c.promise_in_markdown());
    if let Some(evaluation) = evaluation {
        card.push_str(&format!(
            "\nOn held-out public text: {}.\n",
            evaluation.to_string().replace('\n', "; ")
        ));
        if let Some(warning) = evaluation.warning() {
            card.push_str(&format!("\n**Warning: {warning}.**\n"));
        }
    }
    card.push_str("\n## What is not protected\n\n");
    for item in &c.not_protected {
        card.push_str(&format!("- {item}\n"));
    }
    card.push_str(
        "\n`certificate.md` has every parameter and condition. `trainer-native verify` on this folder recomputes ε from the plan \
         and the ledger, compares every file with the digests on the ledger, also weights in 16 bits, and lists every file that \
         no digest covers.\n",
    );
    card
}
