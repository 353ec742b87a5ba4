// What the package answers, checked the same way in Node and in a browser. Returns what is wrong.

/** The message of what `action` throws. */
function thrown(action) {
  try {
    action()
    return 'nothing'
  } catch (error) {
    return error instanceof Error ? error.message : `no Error: ${error}`
  }
}

/** `json` is the text of a tokenizer.json, `texts` are texts, `ids` their ids by Hugging Face tokenizers. */
export function check({ Tokenizer, preview }, { json, texts, ids }) {
  const wrong = []
  const same = (what, got, want) => {
    if (JSON.stringify(got) !== JSON.stringify(want)) wrong.push(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(want)}`)
  }
  const tokenizer = Tokenizer.fromJson(json)
  texts.forEach((text, place) => same(`ids of text ${place}`, Array.from(tokenizer.encode(text)), ids[place]))
  same('a batch', tokenizer.encodeBatch(texts).map((found) => Array.from(found)), ids)
  same('its own file', Array.from(Tokenizer.fromJson(tokenizer.toJson()).encode(texts[0])), ids[0])
  const token = tokenizer.idToToken(ids[0][0])
  same('the id of a token', tokenizer.tokenToId(token), ids[0][0])
  same('an id outside', tokenizer.idToToken(tokenizer.vocabSize), undefined)
  const settings = { noise_multiplier: 1, threshold_delta: 1e-6, vocab_size: 400 }
  const seen = preview('the fever rises\n'.repeat(500) + 'a secret\n', settings)
  same('units', [seen.units, seen.distinct_words, seen.lost], [501, 5, [['▁secret', 1]]])
  for (const [what, message, words] of [
    ['no JSON', thrown(() => Tokenizer.fromJson('{')), 'tokenizer.json'],
    ['an unknown setting', thrown(() => preview('a', { ...settings, noise: 1 })), 'unknown field `noise`'],
    ['a missing setting', thrown(() => preview('a', {})), 'missing field `noise_multiplier`'],
    ['a wrong unit', thrown(() => preview('a', { ...settings, unit: 'person' })), 'unknown variant `person`'],
    ['noise that is none', thrown(() => preview('a', { ...settings, noise_multiplier: NaN })), 'settings'],
    ['an empty text', thrown(() => preview('', settings)), ''],
  ]) {
    if (message === 'nothing' || !message.includes(words)) wrong.push(`${what} is answered with: ${message}`)
  }
  return wrong
}
