import { Tokenizer, preview } from 'dp-tokenizer'

// The text of a tokenizer.json, here with two words and the bytes of the space and of "!".
const tokens = ['<unk>', '▁the', '▁fever', '▁', 't', 'h', 'e']
const tokenizer = Tokenizer.fromJson(JSON.stringify({
  model: { type: 'Unigram', unk_id: 0, vocab: tokens.map((token, place) => [token, -place]), byte_fallback: false },
  pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
  decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
  added_tokens: [],
}))
console.log(Array.from(tokenizer.encode('the fever'))) // [ 1, 2 ]
console.log(tokenizer.decode(tokenizer.encode('the fever'))) // the fever

// NOT PRIVATE: for the owner of the text. Which words would a release keep?
const text = 'the fever rises\n'.repeat(500) + 'a secret\n'
const seen = preview(text, { noise_multiplier: 1, threshold_delta: 1e-6, vocab_size: 400 })
console.log(seen.units, seen.lost[0]) // 501 [ '▁secret', 1 ]
