// Uses the built page as a person does. `cargo xtask web test` sets PAGE, CHROMIUM, FIREFOX, TRAINER, ACCOUNTANT, DOWNLOAD_LIMIT and
// OUT (or takes OUT from WEB_SHOTS). PARTS names the parts to run, by default all. TEXT may name a text to preview; LONG_TEXT=1 previews 199 MB of it instead of 50 MB.
// PICTURE is the file of the page's picture in README.md. PLANS is the number of plans at random, 3 by default; SEED makes others.
import assert from 'node:assert/strict'
import { finish, page, step } from './harness.mjs'

for (const part of (process.env.PARTS ?? 'start,own_text,tasks,firefox,figures,settings,files,preview,refusals,review,accessibility').split(',')) await import(`./steps/${part}.mjs`)

await step('the page contacted no other server and logged no error', () => {
  assert.deepEqual(page.strangers, [])
  assert.deepEqual(page.complaints, [])
})

await finish()
