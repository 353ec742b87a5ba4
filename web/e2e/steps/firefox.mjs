// The same page in Firefox: figures, keys, files and previews. Playwright drives its own build of Firefox only, so this part uses
// Puppeteer.
import assert from 'node:assert/strict'
import puppeteer from 'puppeteer-core'
import { bounds, certified, openStart, server, step } from '../harness.mjs'

const browser = await puppeteer.launch({ browser: 'firefox', executablePath: process.env.FIREFOX, headless: true })
const WAIT = { timeout: 60_000 }
const verified = (page) => page.waitForSelector('.headline[aria-busy="false"] #status.verified', WAIT)
const exact = (page) => page.$eval('#epsilon', ({ dataset }) => ({ lower: Number(dataset.lower), upper: Number(dataset.exact) }))

await step('Firefox shows the ε of Chromium, to the last bit, and follows the keyboard', async () => {
  const complaints = []
  const page = await browser.newPage()
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.goto(server.address)
  await verified(page)
  const chromium = await openStart()
  await certified(chromium)
  assert.deepEqual(await exact(page), await bounds(chromium))
  await chromium.context().close()
  await page.click('#expert')
  await page.waitForSelector('#inputs', WAIT)
  await verified(page)
  await page.click('#solve-epsilon')
  await verified(page)
  const before = await exact(page)
  await page.focus('#noise-training-slider')
  for (let press = 0; press < 5; press += 1) await page.keyboard.press('ArrowUp')
  // A selector, since the page's content policy forbids the code that `waitForFunction` makes from a string.
  await page.waitForSelector(`#epsilon[data-exact]:not([data-exact="${before.upper}"])`, WAIT)
  await verified(page)
  assert.ok((await exact(page)).upper < before.upper)
  await page.click('#units', { count: 3 })
  await page.keyboard.type('6.000')
  await page.waitForSelector('#status.refused', WAIT)
  assert.equal(await page.$eval('#export', ({ disabled }) => disabled), true)
  await page.click('#units', { count: 3 })
  await page.keyboard.type('6000')
  await verified(page)
  await page.type('#paste', 'fever and a cough\n'.repeat(40))
  await page.click('#count')
  await page.waitForSelector('#seen, #no-preview', WAIT)
  assert.deepEqual(complaints, [])
  return `ε ≤ ${(await exact(page)).upper}`
})

await browser.close()
