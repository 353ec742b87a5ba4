/** What a unit is: a record, a user, or a piece of a record of at most so many words. */
export type PrivacyUnit = "record" | "user" | { words: number };

/** How words are released. */
export type ReleaseMethod = "sips" | "pooled" | "policy" | "mad2r" | "hoory-2021" | "ponomareva-2022";

/** A release to try on a text. */
export interface PreviewSettings {
  /** Noise multiplier of the whole release, seen as one Gaussian mechanism. */
  noise_multiplier: number;
  /** Probability that any word which only one unit holds is released. */
  threshold_delta: number;
  /** Number of tokens. */
  vocab_size: number;
  /** The JSON field with the text of a record; without it, every line is a record. */
  text_field?: string;
  /** The JSON field with the user. */
  user_field?: string;
  /** The privacy unit; a record unless given. */
  unit?: PrivacyUnit;
  /** What a word is; `by_class` unless given. */
  words?: "by_class" | "as_written";
  /** How words are released; `pooled` unless given. */
  method?: ReleaseMethod;
  /** A sentence to show in tokens; the beginning of the text unless given. */
  sentence?: string;
}

/** Words of similar frequency: the number of units that hold such a word, distinct words, and how many were released. */
export interface Bin { units: number; words: number; released: number; probability?: number }

/** What a release keeps of a text. NOT PRIVATE: it shows raw counts. */
export interface Preview {
  units: number;
  distinct_words: number;
  total_words: number;
  released_words: number;
  coverage: number;
  lost: [string, number][];
  kept: string[];
  survival: Bin[];
  bytes_per_token: number;
  plain_bytes_per_token: number;
  vocab_size: number;
  before: string[];
  after: string[];
  replaced_lines: number;
}
