/* tslint:disable */
/* eslint-disable */

/**
 * Text to token ids and back.
 */
export class Tokenizer {
    private constructor();
    free(): void;
    [Symbol.dispose](): void;
    /**
     * The text of ids. Special tokens appear by name, and ids outside the vocabulary are skipped.
     *
     * # Errors
     * Ids that are no array of whole numbers below 2³².
     */
    decode(ids: Uint32Array | number[]): string;
    /**
     * The ids of many texts, in the same order; faster than one by one.
     *
     * # Errors
     * Texts that are no array of strings.
     */
    encodeBatch(texts: string[]): Uint32Array[];
    /**
     * The ids of a text. No token is added at either end.
     *
     * # Errors
     * A text that is no string.
     */
    encode(text: string): Uint32Array;
    /**
     * Reads the text of a tokenizer.json.
     *
     * # Errors
     * A text that is damaged or has a stage that is not supported.
     */
    static fromJson(text: string): Tokenizer;
    /**
     * The token with this id, as written in the vocabulary.
     *
     * # Errors
     * An id that is no whole number below 2³².
     */
    idToToken(id: number): string | undefined;
    /**
     * The text of a tokenizer.json.
     */
    toJson(): string;
    /**
     * The id of a token, as written in the vocabulary.
     *
     * # Errors
     * A token that is no string.
     */
    tokenToId(token: string): number | undefined;
    /**
     * Number of tokens; all ids are below it.
     */
    readonly vocabSize: number;
}

/**
 * NOT PRIVATE: what a release would keep of a text, for its owner. Shows raw counts of the text.
 *
 * # Errors
 * Settings out of range; a text that is empty, binary or of another format; a release without words.
 */
export function preview(text: string, settings: PreviewSettings): Preview;
