//! The sentences of a certificate.

/// Sentences with places for figures in braces.
#[derive(Debug, PartialEq)]
pub struct Wording {
    /// The guarantee for a reader without background; absent in certificates without this sentence.
    pub summary: Option<&'static str>,
    pub guarantee: &'static str,
    /// Descriptions of neighbouring texts, one for each relation.
    pub add_or_remove_one: &'static str,
    pub replace_one: &'static str,
    pub zero_out: &'static str,
    pub guarantee_of_public_text: &'static str,
    pub public_text: &'static str,
    /// Origin of public files in which no mark of an earlier stage was found.
    pub public_checkpoint: &'static str,
    pub public_tokenizer: &'static str,
    pub public_prior: &'static str,
    /// Comparison with the text of earlier stages that called it public.
    pub earlier_public_text: &'static str,
    /// Text that an evolution or a paraphrase made from public text, with which it is not compared.
    pub chosen_text: &'static str,
    /// Origin of text that the model of an earlier run wrote.
    pub written_text: &'static str,
    pub written_evaluation: &'static str,
    /// Limit of the comparison of evaluation text, if there are earlier stages.
    pub evaluation_of_stages: &'static str,
    /// Statements of the number of units: two for sampling that does not depend on it, and one for sampling that does.
    pub declared_units: &'static str,
    pub declared_examples: &'static str,
    /// Replaces `declared_examples` if records have several owners.
    pub owned_records: &'static str,
    pub exact_units: &'static str,
    pub evaluation: &'static str,
    /// Two phrases in `evaluation`: the length from which equal records count, and the length below which they do not.
    /// [`Wording::equal_phrases`] replace them if the plan accepts equal phrases.
    pub every_record: [&'static str; 2],
    pub equal_phrases: [&'static str; 2],
    /// Condition that the training text is not refused.
    pub refusals: &'static str,
    /// Condition on users, if they are the unit.
    pub user_ids: &'static str,
    /// Condition on owners, if they are the unit.
    pub owner_ids: &'static str,
    /// Meaning of a unit that is a number of words.
    pub unit_of_words: &'static str,
    pub hyperparameters: &'static str,
    /// Replaces `hyperparameters` if a sweep published the best trial, or every trial.
    pub selected_trial: &'static str,
    pub published_trial: &'static str,
    /// Secrecy of the trials of a sweep that published only the best one.
    pub secret_trials: &'static str,
    pub randomness: &'static str,
    /// Limit of floating-point sums within a micro-batch.
    pub fast_sums: &'static str,
    /// Limits of the privacy unit.
    pub records: &'static str,
    pub users: &'static str,
    pub owners: &'static str,
    pub words: &'static str,
    pub population: &'static str,
    pub side_channels: &'static str,
    pub other_releases: &'static str,
    pub copies: &'static str,
    pub public_inputs: &'static str,
    pub unprotected_public_text: &'static str,
    /// Trust among the ranks, if there are several.
    pub trusted_hosts: &'static str,
    /// Relation of the text behind an earlier stage to the training text, as the plan declares it.
    pub stage_on_same_units: &'static str,
    pub stage_on_disjoint_units: &'static str,
    pub stage_on_public_text: &'static str,
    /// The way in which gradient noise is drawn, and the way in which clipped gradients are summed.
    pub exact_noise: &'static str,
    pub sums_of_floats: &'static str,
    pub sums_of_integers: &'static str,
    /// The reasons why a run took fewer steps than its plan.
    pub stopped_early: &'static str,
    pub out_of_spare_steps: &'static str,
}

/// The sentences that new certificates have.
pub(crate) const CURRENT: Wording = Wording {
    summary: Some(
        "Under the conditions of its certificate, {run} {unit} of the training text from everyone who sees what was released (the vocabulary, \
         all intermediate and final weights, the metrics and the certificate), even from someone who knows the plan, the \
         program and all other text. Whatever they look for, its probability changes by at most a factor of e^ε with ε = \
         {epsilon} if the text differs in that one unit, apart from a probability of at most δ = {delta}.",
    ),
    guarantee: "For any two training texts {neighbors}, and for any set of outcomes (vocabulary, every intermediate and the \
                final weights), the probability under one text is at most e^ε times the probability under the other, plus \
                δ, with ε = {epsilon} and δ = {delta}.",
    add_or_remove_one: "that differ by the presence of {unit}",
    replace_one: "of equal size that differ in {unit}",
    zero_out: "that differ in {unit}, which contributes nothing in one of them",
    guarantee_of_public_text: "NOT PRIVATE. Nothing private was used: the plan declares the training text public, so no \
                               noise was added and no privacy was spent. The authors of that text have no guarantee.",
    public_text: "The training text is public, as the plan declares. This program cannot check that.",
    public_checkpoint: "Training began from the weights of a public checkpoint (SHA-256 of its files' digests {sha256}). No mark \
                        in these files or beside them says that private text made them. That they were made without it is a \
                        declaration of the plan, which no program can check. ε does not cover the text that the checkpoint was made \
                        from.",
    public_tokenizer: "The tokenizer{which} is a public file. No mark in it or beside it says that private text made it. That it was \
                       made without private text is a declaration of the plan, which no program can check.",
    public_prior: "The vocabulary holds pieces of public tokenizers for words that were not released (tokenizer.train.prior; the mark in \
                   tokenizer.json has the SHA-256 of these files). No mark in them or beside them says that private text made them. That \
                   they were made without private text is a declaration of the plan, which no program can check.",
    earlier_public_text: "Earlier stages ({stages}) used text without noise, as public text. Their ledgers and statements keep sketches of \
                          it, which the run compared with the training text: neither holds half of the records or of the runs of 13 words \
                          (20 characters in scripts without blanks) of the other, as far as 256 hashes of each tell. The guarantee \
                          compares training texts for which this holds.",
    chosen_text: "The training text has the digest that the ledger of an earlier stage names. That stage made it from text that was \
                  declared public, and from private records at the ε in the table above. It was not compared with that text and with \
                  public text of which half is the same ({stages}).",
    written_text: "A model of an earlier stage wrote training text (data.made_from). A unit of such text is no person: the people \
                   behind it have the guarantee of that stage, in the table above.",
    written_evaluation: "A model of an earlier stage wrote evaluation text (evaluation.made_from). The figures on such text are \
                         figures on the text of that stage, which has the guarantee in the table above.",
    evaluation_of_stages: "A finished run keeps nothing of its text. So evaluation text was compared with the training text of its own \
                           run alone, not with that of another stage. Figures on evaluation text have no noise: ε does not cover \
                           text that another stage evaluates.",
    declared_units: "The plan declares {units} units. The sampling probability follows from this figure alone, so the guarantee \
                     holds whatever the actual number of units is. That number is private: the run did not check or record it.",
    declared_examples: "The plan declares {examples} examples (windows or records) of {units} units. Of a unit with more than \
                        {examples_per_unit}, so many are used, evenly spaced, and ε is for all examples of a unit together. The sampling \
                        probability follows from the declared number of examples alone, so the guarantee holds whatever the actual \
                        numbers are. They are private: the run did not check or record them.",
    owned_records: "Who owns which record is public: the guarantee compares texts in which the same people own the same records, and only \
                    what the records say differs. The plan declares {units} owners. Records are taken in order, and one is left out if one \
                    of its owners already has {examples_per_unit}. {examples} records remain, which the run checked, and ε is for all of \
                    an owner's records together.",
    exact_units: "The number of units, {units}, is public: the guarantee compares texts of this size only. The run checked it.",
    evaluation: "The evaluation text is public, as the plan declares. The run compared it with the training text by letters and \
                 digits alone (without case, accents, punctuation and white space). At most 1 in 1,000 records of either text \
                 have half of their runs of 13 words (20 characters in scripts without blanks) in the other text or, from {length} \
                 on, are equal to a record of it; at most a quarter of all runs and at most half of all records are in both texts. \
                 So private records of fewer {shorter} may be in the evaluation text. The guarantee compares training texts for which \
                 this holds.",
    every_record: ["8 words or 18 letters", "than 8 words and 18 letters"],
    equal_phrases: ["8 words", "than 8 words, which the plan accepts (evaluation.accept_equal_phrases),"],
    refusals: "The guarantee compares training texts that are not refused. A text is refused, before anything is released, unless \
               {conditions}.",
    user_ids: "The field {field} tells users apart, as the plan declares: nobody has two ids, and no id is that of several people. Ids \
               are compared in one Unicode form (NFC), without white space and invisible characters around them.",
    owner_ids: "The field {field} lists all owners of a record, as the plan declares: no owner is missing, nobody has two ids, and no id is \
                that of several people. Ids are compared in one Unicode form (NFC), without white space and invisible characters around \
                them.",
    unit_of_words: "one piece of at most {words} words (each record is cut into pieces on a fixed grid, and the text around the \
                    piece does not move)",
    hyperparameters: "The plan's figures (learning rate, clip norm, sizes, steps, vocabulary size) were chosen without looking \
                      at this private text. Trials on it are not charged.",
    selected_trial: "A sweep chose this run: it has the lowest perplexity on the public evaluation text among a secret number \
                     of trials, drawn from {distribution} before the text was read. Each trial drew its setting at random. ε is \
                     that of the whole search (Papernot & Steinke 2022, arXiv:2110.03620). All other figures of the plan were \
                     chosen without looking at this private text.",
    published_trial: "This is one of {runs} runs of a sweep, and ε is that of all of them together. All figures of the plan that \
                      the sweep did not vary were chosen without looking at this private text.",
    secret_trials: "The number of trials, the trials that were not chosen, and the time that the sweep took: whoever learns them \
                    learns more than ε allows for.",
    randomness: "To an attacker, the operating system's random generator and ChaCha20 are as good as true randomness.",
    fast_sums: "Sums within a micro-batch are 32-bit floating point. Adding or removing a unit regroups the others, so that \
                rounding can move the sum by more than the clip norm C. In measurements with 1,024 units in micro-batches of 32 \
                it moved by less than 2e-5 C more; the excess grew with the square root of the number of units. No proof bounds \
                this, and ε does not include it. With privacy.arithmetic: \"exact\" there is no such rounding.",
    records: "People with several records: each record is protected, but a person's records together have a weaker guarantee.",
    users: "What users write about one another: only a user's own records are protected.",
    owners: "What is said about people who are not named as owners of a record, and who owns which record: that is public here.",
    words: "People with several pieces, and records longer than one piece: each piece is protected, but several pieces \
            together have a weaker guarantee. Inserting or removing a word moves the rest of its record across pieces, so it \
            counts as changing all of them.",
    population: "Facts about the population: the model is meant to learn them, and they may say something about people whose \
                 text was not used.",
    side_channels: "Side channels such as running time, memory use and power, and anyone who can read this machine's memory or \
                    the training text on its disk.",
    other_releases: "Other releases made from the same text: their ε adds to this one.",
    copies: "Copies of the run folder: steps that were taken in a copy of it on another computer or by another user, or before \
             an older state of it was put back together with the user's state folder (or where there was none), are not on \
             this ledger.",
    public_inputs: "The evaluation text and the plan itself.",
    unprotected_public_text: "Everything: the model may repeat its training text word for word.",
    trusted_hosts: "The machines of all ranks and the network between them are trusted. Over MPI, unencrypted, the ranks exchanged the \
                    key of the random generator, sums of clipped gradients without noise, and from the training text the tokens \
                    of sampled records, the counts of words and labels, and keyed hashes of its parts.",
    stage_on_same_units: "The text behind the stage {name} has the units of the training text, as the plan declares. What that stage spent \
                          is part of ε, so ε covers both together. The conditions on the certificate of that stage hold for it.",
    stage_on_disjoint_units: "The text behind the stage {name} has no unit in common with the training text, as the plan declares. ε is for \
                              units of the training text. A unit of the other text has the guarantee of that stage, in the table above.",
    stage_on_public_text: "The text behind the stage {name} is public, as the plan of that stage declares.",
    exact_noise: "a Gaussian rounded to integers, drawn exactly on the processor and added to integers: its privacy is that of the \
                  ideal Gaussian mechanism",
    sums_of_floats: "32-bit floating point within a micro-batch, rounded once to the grid of the noise, and integers across micro-batches",
    sums_of_integers: "integers: each unit's gradient is rounded toward zero to the grid of the noise, and its norm is checked in exact \
                       arithmetic",
    stopped_early: "its loss on public evaluation text stopped falling, or crashes used up the spare steps. When it stops depends \
                    on released weights, so the steps left out are charged.",
    out_of_spare_steps: "crashes used up the spare steps, and more steps would have cost more than the plan allows.",
};
