// Uses the built package in headless Chromium: `node chromium.mjs PACKAGE FIXTURES CHROMIUM E2E`, E2E being the folder of the
// page's end-to-end script.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { sample } from './sample.mjs'

const [, , folder, fixtures, executablePath, modules] = process.argv
const { called, inChromium } = await import(pathToFileURL(join(modules, 'package.mjs')))
const checks = readFileSync(new URL('checks.mjs', import.meta.url), 'utf8')
const expected = sample(fixtures)

await inChromium(executablePath, folder, async (page) => {
  const wrong = await called(page, 'dp_tokenizer', checks, 'check', expected)
  await page.setInputFiles('#file', { name: 'tokenizer.json', mimeType: 'application/json', buffer: Buffer.from(expected.json) })
  await page.fill('#text', expected.texts[0])
  const want = expected.ids[0].join(' ')
  await page.waitForFunction((ids) => document.getElementById('answer').textContent === ids, want, { timeout: 10_000 })
    .catch(async () => wrong.push(`the example page shows ${await page.textContent('#answer')}, not ${want}`))
  return wrong
})
