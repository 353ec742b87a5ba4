// Texts and their ids by Hugging Face tokenizers.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Reads the fixtures of the crate's tests. */
export function sample(folder) {
  const cases = JSON.parse(readFileSync(join(folder, 'unigram_expected.json'), 'utf8')).encode.filter((one) => one.ids.length > 0)
  const json = readFileSync(join(folder, 'unigram.json'), 'utf8')
  return { json, texts: cases.map((one) => one.text), ids: cases.map((one) => one.ids) }
}
