// What the package answers, checked the same way in Node and in a browser. Returns what is wrong.

/** What `action` throws, as `name: message`. */
function thrown(action) {
  try {
    action()
    return 'nothing'
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : `no Error: ${error}`
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
  const circle = { ...settings }
  circle.unit = circle
  const seen = preview('the fever rises\n'.repeat(500) + 'a secret\n', settings)
  same('units', [seen.units, seen.distinct_words, seen.lost], [501, 5, [['▁secret', 1]]])
  same('ids in a list', tokenizer.decode(ids[0]), tokenizer.decode(Uint32Array.from(ids[0])))
  for (const [what, kind, words, action] of [
    ['no JSON', 'SyntaxError', 'tokenizer.json', () => Tokenizer.fromJson('{')],
    ['a file without a model', 'Error', 'model', () => Tokenizer.fromJson('{}')],
    ['a file that is no string', 'TypeError', 'text must be a string', () => Tokenizer.fromJson({})],
    ['a text that is a number', 'TypeError', 'text must be a string', () => tokenizer.encode(7)],
    ['a text that is missing', 'TypeError', 'text must be a string', () => tokenizer.encode()],
    ['texts that are one', 'TypeError', 'texts must be an array', () => tokenizer.encodeBatch('a')],
    ['a batch with a hole', 'TypeError', 'texts must be a string', () => tokenizer.encodeBatch(['a', null])],
    ['ids that are text', 'TypeError', 'an id must be a number', () => tokenizer.decode(['1'])],
    ['an id below 0', 'RangeError', 'an id must be a whole number', () => tokenizer.decode([-1])],
    ['half an id', 'RangeError', 'an id must be a whole number', () => tokenizer.idToToken(0.5)],
    ['an id of text', 'TypeError', 'an id must be a number', () => tokenizer.idToToken('1')],
    ['a token that is a number', 'TypeError', 'token must be a string', () => tokenizer.tokenToId(1)],
    ['an unknown setting', 'TypeError', 'unknown field `noise`', () => preview('a', { ...settings, noise: 1 })],
    ['a missing setting', 'TypeError', 'missing field `noise_multiplier`', () => preview('a', {})],
    ['a wrong unit', 'TypeError', 'unknown variant `person`', () => preview('a', { ...settings, unit: 'person' })],
    ['noise that is none', 'TypeError', 'settings', () => preview('a', { ...settings, noise_multiplier: NaN })],
    ['settings that hold themselves', 'TypeError', 'numbers and strings', () => preview('a', circle)],
    ['settings in a list', 'TypeError', 'numbers and strings', () => preview('a', [settings])],
    ['noise below 0', 'RangeError', 'noise', () => preview('a b', { ...settings, noise_multiplier: -1 })],
    ['a preview of nothing', 'TypeError', 'text must be a string', () => preview(undefined, settings)],
    ['an empty text', 'Error', '', () => preview('', settings)],
  ]) {
    const message = thrown(action)
    if (!message.startsWith(`${kind}: `) || !message.includes(words)) wrong.push(`${what} is answered with: ${message}`)
  }
  return wrong
}
