// Uses the built package in headless Chromium as a page does: `node chromium.mjs PACKAGE FIXTURES CHROMIUM E2E`, E2E being the
// folder of the page's end-to-end script.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { sample } from './sample.mjs'

const [, , folder, fixtures, executablePath, modules] = process.argv
const { chromium } = createRequire(join(modules, 'package.json'))('playwright-core')
const { serve } = await import(pathToFileURL(join(modules, 'serve.mjs')))

const server = await serve(folder)
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
try {
  const page = await browser.newPage()
  const wrong = []
  page.on('pageerror', (error) => wrong.push(error.message))
  await page.goto(`${server.address}example.html`)
  const checks = readFileSync(new URL('checks.mjs', import.meta.url), 'utf8')
  const expected = sample(fixtures)
  wrong.push(...await page.evaluate(
    async ([text, given]) => {
      const tokenizer = await import('/web/dp_tokenizer.js')
      await tokenizer.default()
      const script = await import(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })))
      return script.check(tokenizer, given)
    },
    [checks, expected],
  ))
  await page.setInputFiles('#file', { name: 'tokenizer.json', mimeType: 'application/json', buffer: Buffer.from(expected.json) })
  await page.fill('#text', expected.texts[0])
  const want = expected.ids[0].join(' ')
  await page.waitForFunction((ids) => document.getElementById('answer').textContent === ids, want, { timeout: 10_000 })
    .catch(async () => wrong.push(`the example page shows ${await page.textContent('#answer')}, not ${want}`))
  for (const line of wrong) console.error(line)
  console.log(`Chromium ${browser.version()}: ${wrong.length === 0 ? 'all right' : `${wrong.length} wrong`}`)
  process.exitCode = wrong.length === 0 ? 0 : 1
} finally {
  await browser.close()
  server.stop()
}
