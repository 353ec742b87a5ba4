// The harness of the end-to-end script: a server, a browser, and pages that record errors and requests to other servers.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { serve } from './serve.mjs'

const { PAGE, CHROMIUM, OUT } = process.env
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export const server = await serve(PAGE)
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
const faults = []
/** Measurements, printed at the end. */
export const figures = {}
let passed = 0

/** Runs one step. A failed step is reported, and the next one runs. */
export async function step(name, action) {
  try {
    const figure = await action()
    passed += 1
    console.log(`ok    ${name}${figure === undefined ? '' : `: ${figure}`}`)
  } catch (error) {
    faults.push(name)
    console.log(`FAIL  ${name}\n      ${String(error.stack ?? error).split('\n').slice(0, 6).join('\n      ')}`)
    if (error.cause) console.log(`      because of ${error.cause}`)
  }
}

/** Opens the start view in a context of its own. It records requests to other servers and logged errors. */
export async function openStart(address = server.address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, acceptDownloads: true, ...options })
  // On a busy machine, actions take ten times as long.
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  page.strangers = []
  page.complaints = []
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(server.address)) page.strangers.push(request.url())
  })
  page.on('console', (message) => message.type() === 'error' && page.complaints.push(message.text()))
  page.on('pageerror', (error) => page.complaints.push(String(error)))
  // Time of the first certified figure, on the clock of the page.
  await page.addInitScript((certified) => {
    new MutationObserver((_, observer) => {
      if (document.querySelector(certified)) {
        window.ready = performance.now()
        observer.disconnect()
      }
    }).observe(document, { subtree: true, childList: true, attributes: true })
  }, CERTIFIED)
  await page.goto(address)
  await certified(page)
  page.ready = await page.evaluate(() => window.ready)
  return page
}

/** Opens the expert view. */
export async function open(address, options) {
  const page = await openStart(address, options)
  // A link opens it by itself.
  if (!address?.includes('#plan1=')) await page.locator('#expert').click()
  await page.locator('#inputs').waitFor().catch(async (cause) => {
    // What was asked for and how long it took: it says whether the click, the script or its module is missing.
    const asked = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name, startTime, duration }) => [name.split('/').pop(), startTime, duration].join(' ')))
    throw new Error(`the expert view did not open; asked for: ${asked.join(', ')}; logged: ${page.complaints.join(', ')}`, { cause })
  })
  await certified(page)
  return page
}

// `aria-busy` says whether the figures belong to the current plan, before they are dimmed.
const CERTIFIED = '.headline[aria-busy="false"] #status.verified'
export const certified = (page) => page.locator(CERTIFIED).waitFor({ timeout: 60_000 })
/** Waits until odds and μ belong to the current plan. */
export const rested = async (page) => {
  await page.waitForFunction(() => document.querySelector('.mu:not(.stale)')?.textContent && document.getElementById('mu'), undefined, { timeout: 60_000 })
}
/** Waits until nothing is being computed any more. The papers' plans come last. */
export const settled = (page) => page.waitForFunction(() => {
  const verified = [...document.querySelectorAll('#papers .verified')]
  return verified.every((cell) => cell.textContent !== '…') && !document.querySelector('.stale')
}, undefined, { timeout: 120_000 })
export const refused = (page) => page.locator('#status.refused').waitFor({ timeout: 60_000 })
export const epsilon = async (page) => Number(await page.locator('#epsilon').getAttribute('data-exact'))
/** The certified lower and upper ε, to the last bit. */
export const bounds = async (page) => ({ lower: Number(await page.locator('#epsilon').getAttribute('data-lower')), upper: await epsilon(page) })
/** The JSON output of one of the project's programs. */
export const told = (program, ...words) => JSON.parse(execFileSync(program, [...words.map(String), '--json'], { encoding: 'utf8' }))
/** `value` with `digits` significant digits, rounded up, from decimal digits as the page does. */
export function roundedUp(value, digits) {
  const nearest = Number(value.toPrecision(digits))
  const place = 10 ** (digits - 1 - Math.floor(Math.log10(value)))
  return (nearest >= value ? nearest : (Math.round(nearest * place) + 1) / place).toPrecision(digits)
}
export const type = async (page, id, text) => {
  await page.locator(`#${id}`).fill(text)
  await page.locator(`#${id}`).blur()
}
/** Pastes a text, as one input. `fill` makes Chromium insert it line by line, which takes seconds. */
export const paste = (page, id, text) => page.locator(`#${id}`).evaluate((field, text) => {
  field.value = text
  field.dispatchEvent(new Event('input', { bubbles: true }))
}, text)

/** A generator of numbers from 0 to 1, the same for the same seed (mulberry32). */
export function randomFrom(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Saves the plan. Returns the file and its text. */
export async function save(page) {
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#export').click()])
  assert.equal(download.suggestedFilename(), 'plan.json')
  const file = join(OUT, 'plan.json')
  await download.saveAs(file)
  return { file, text: readFileSync(file, 'utf8') }
}

export async function accessible(page, where) {
  // Folded details are part of the page.
  const folded = (open) => page.evaluate((open) => document.querySelectorAll('details').forEach((part) => { part.open = open }), open)
  await folded(true)
  await page.evaluate(AXE)
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }))
  await folded(false)
  const told = violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).slice(0, 3).join(', ')}`)
  assert.deepEqual(told, [], where)
}

/** Closes the browser and the server, and prints the result. */
export async function finish() {
  await browser.close()
  server.stop()
  writeFileSync(join(OUT, 'result.json'), JSON.stringify({ passed, failed: faults, figures }))
  for (const [name, figure] of Object.entries(figures)) console.log(`      ${name}: ${figure}`)
  console.log(`${passed} passed, ${faults.length} failed`)
  process.exit(faults.length === 0 ? 0 : 1)
}

/** The page that most steps share. */
export const page = await open()
