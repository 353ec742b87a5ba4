// Uses the built page as a person does. `cargo xtask web test` sets PAGE, CHROMIUM, TRAINER and OUT.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { brotliBytes, serve } from './serve.mjs'

const { PAGE, CHROMIUM, TRAINER, OUT } = process.env
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const DOWNLOAD_LIMIT = 400_000

const server = await serve(PAGE)
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
const faults = []
let passed = 0

/** One thing a person does; all of them run, and each failure is named. */
async function step(name, action) {
  try {
    const figure = await action()
    passed += 1
    console.log(`ok    ${name}${figure === undefined ? '' : `: ${figure}`}`)
  } catch (error) {
    faults.push(name)
    console.log(`FAIL  ${name}\n      ${String(error.stack ?? error).split('\n').slice(0, 6).join('\n      ')}`)
  }
}

/** A page of its own that records what it asks of the network and what it complains about. */
async function open(address = server.address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, acceptDownloads: true, ...options })
  const page = await context.newPage()
  page.strangers = []
  page.complaints = []
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(server.address)) page.strangers.push(request.url())
  })
  page.on('console', (message) => message.type() === 'error' && page.complaints.push(message.text()))
  page.on('pageerror', (error) => page.complaints.push(String(error)))
  await page.goto(address)
  await certified(page)
  return page
}

const certified = (page) => page.locator('#state.certified').waitFor({ timeout: 60_000 })
const refused = (page) => page.locator('#state.refused').waitFor({ timeout: 60_000 })
const epsilon = async (page) => Number(await page.locator('#epsilon').getAttribute('data-exact'))
const type = async (page, id, text) => {
  await page.locator(`#${id}`).fill(text)
  await page.locator(`#${id}`).blur()
}

/** Saves the plan and answers with the file and its text. */
async function save(page) {
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#export').click()])
  assert.equal(download.suggestedFilename(), 'plan.json')
  const file = join(OUT, 'plan.json')
  await download.saveAs(file)
  return { file, text: readFileSync(file, 'utf8') }
}

async function accessible(page, where) {
  await page.evaluate(AXE)
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }))
  const told = violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).slice(0, 3).join(', ')}`)
  assert.deepEqual(told, [], where)
}

const page = await open()

await step('the page is interactive soon after it is opened', async () => {
  const ready = await page.evaluate(() => performance.now())
  return `first figure within ${Math.round(ready)} ms, ${brotliBytes(PAGE)} bytes by brotli`
})

await step('what a first visit downloads stays below the limit', () => {
  assert.ok(brotliBytes(PAGE) <= DOWNLOAD_LIMIT, `${brotliBytes(PAGE)} > ${DOWNLOAD_LIMIT}`)
})

await step('a typed budget is kept and nearly used', async () => {
  await type(page, 'target-epsilon', '3')
  await certified(page)
  const reached = await epsilon(page)
  assert.ok(reached <= 3 && reached > 2.99, `ε = ${reached}`)
  return reached
})

await step('a slider moved by keyboard changes ε, and one undo takes the whole move back', async () => {
  await page.locator('#give-noise').check()
  await certified(page)
  const before = await epsilon(page)
  await page.locator('#noise-training-slider').focus()
  for (let press = 0; press < 5; press += 1) await page.keyboard.press('ArrowUp')
  await certified(page)
  const after = await epsilon(page)
  assert.ok(after < before, `${before} → ${after}`)
  await page.keyboard.press('Control+z')
  await certified(page)
  assert.equal(await epsilon(page), before)
  await page.keyboard.press('Control+Shift+z')
  await certified(page)
  assert.equal(await epsilon(page), after)
})

await step('the figure follows the slider', async () => {
  await page.locator('#noise-training-slider').focus()
  const times = []
  for (let press = 0; press < 40; press += 1) {
    times.push(await page.evaluate(() => new Promise((resolve) => {
      const shown = document.getElementById('epsilon')
      const start = performance.now()
      const observer = new MutationObserver(() => {
        if (document.getElementById('state').classList.contains('certified')) {
          observer.disconnect()
          resolve(performance.now() - start)
        }
      })
      observer.observe(shown.parentElement, { subtree: true, childList: true, characterData: true, attributes: true })
      const key = new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true, cancelable: true })
      document.getElementById('noise-training-slider').dispatchEvent(key)
    })))
  }
  times.sort((one, other) => one - other)
  return `median ${times[20].toFixed(1)} ms, p95 ${times[37].toFixed(1)} ms`
})

await step('the saved plan.json has the same ε for the trainer, to the last bit', async () => {
  await certified(page)
  const shown = await epsilon(page)
  const { file } = await save(page)
  const figures = JSON.parse(execFileSync(TRAINER, ['verify', file, '--json'], { encoding: 'utf8' }))
  assert.equal(figures.epsilon.upper, shown)
  return shown
})

await step('the saved plan can be opened again', async () => {
  const { file, text } = await save(page)
  const shown = await epsilon(page)
  await page.locator('#preset').selectOption('strict-review')
  await certified(page)
  assert.notEqual(await epsilon(page), shown)
  await page.locator('#import').setInputFiles(file)
  await page.waitForFunction((wanted) => document.getElementById('epsilon').dataset.exact === wanted, String(shown))
  assert.equal((await save(page)).text, text)
})

await step('a link opens the same plan elsewhere and holds no file name', async () => {
  await page.locator('#source').selectOption('path')
  await type(page, 'path', 'secret-project.jsonl')
  await certified(page)
  const shown = await epsilon(page)
  await page.locator('#link').click()
  const address = page.url()
  assert.ok(address.includes('#plan1=') && !address.includes('secret'), address)
  const other = await open(address)
  await other.waitForFunction((wanted) => document.getElementById('epsilon').dataset.exact === wanted, String(shown))
  await other.context().close()
})

await step('every preset is certified', async () => {
  const names = await page.locator('#preset option').evaluateAll((options) => options.map((option) => option.value))
  const figures = []
  for (const name of names) {
    await page.locator('#preset').selectOption(name)
    await certified(page)
    figures.push(`${name} ${(await epsilon(page)).toFixed(3)}`)
  }
  return figures.join(', ')
})

const wrong = [
  ['a batch larger than N', 'batch', '1M', 'training.expected_batch_size'],
  ['δ of at least 1/N', 'delta', '0.5', 'privacy.delta'],
  ['no units', 'units', '0', null],
  ['ε of zero', 'target-epsilon', '0', 'privacy.epsilon'],
  ['a warm-up longer than training', 'warmup', '9999', 'training.learning_rate.warmup_steps'],
]
for (const [name, id, text, place] of wrong) {
  await step(`${name} is refused with its cause, and a button repairs it where one can`, async () => {
    const fresh = await open()
    await type(fresh, id, text)
    await refused(fresh)
    assert.equal(await fresh.locator('#export').isDisabled(), true)
    const said = await fresh.locator('#refusal').innerText()
    if (place) assert.ok(said.includes(place), said)
    await accessible(fresh, name)
    await fresh.screenshot({ path: join(OUT, `refused-${id}.png`) })
    if (place) {
      await fresh.locator('#refusal .remedy').first().click()
      await certified(fresh)
    }
    await fresh.context().close()
  })
}

await step('words where a number belongs are refused at the field', async () => {
  const fresh = await open()
  await fresh.locator('#steps').fill('many')
  await fresh.locator('#steps-wrong .slip').waitFor()
  assert.equal(await fresh.locator('#steps').getAttribute('aria-invalid'), 'true')
  await fresh.context().close()
})

await step('a plan from the future, a binary file and an empty one are refused', async () => {
  const fresh = await open()
  const files = {
    'future.json': Buffer.from('{"version": 2}'),
    'binary.json': Buffer.from([0, 159, 146, 150, 255, 0, 1]),
    'empty.json': Buffer.alloc(0),
  }
  for (const [name, buffer] of Object.entries(files)) {
    await fresh.locator('#import').setInputFiles({ name, mimeType: 'application/json', buffer })
    await fresh.locator('#rejected').waitFor()
    const said = await fresh.locator('#rejected').innerText()
    assert.ok(said.length > 20, `${name}: ${said}`)
    await fresh.screenshot({ path: join(OUT, `refused-${name}.png`) })
    await fresh.locator('#rejected .dismiss').click()
    await certified(fresh)
  }
  await fresh.context().close()
})

await step('no network is needed once loaded', async () => {
  await page.context().setOffline(true)
  await page.locator('#preset').selectOption('quickstart')
  await certified(page)
  await type(page, 'target-epsilon', '5')
  await certified(page)
  assert.ok((await epsilon(page)) <= 5)
  await page.context().setOffline(false)
})

for (const scheme of ['light', 'dark']) {
  for (const width of [1440, 1024, 390]) {
    await step(`${scheme}, ${width} px: accessible and no wider than the window`, async () => {
      const sized = await open(server.address, { viewport: { width, height: 900 }, colorScheme: scheme })
      await sized.locator('#pin').click()
      await sized.waitForFunction(() => document.querySelectorAll('#by-noise-title ~ details tbody tr').length >= 21)
      await sized.waitForFunction(() => document.querySelectorAll('#by-steps-title ~ details tbody tr').length >= 15)
      await accessible(sized, `${scheme} ${width}`)
      const wide = await sized.evaluate(() => document.documentElement.scrollWidth)
      assert.ok(wide <= width, `${wide} px wide`)
      await sized.screenshot({ path: join(OUT, `${scheme}-${width}.png`), fullPage: true })
      await sized.context().close()
    })
  }
}

await step('a chart is read by keyboard', async () => {
  const fresh = await open()
  await fresh.waitForFunction(() => document.querySelectorAll('#by-noise-title ~ details tbody tr').length >= 21)
  await fresh.locator('.plot svg').first().focus()
  await fresh.keyboard.press('End')
  const said = await fresh.locator('.plot .reading').first().innerText()
  const last = await fresh.locator('#by-noise-title ~ details tbody tr').last().evaluate((row) => row.children[1].textContent)
  assert.ok(said.includes(last), `${said} / ${last}`)
  await fresh.emulateMedia({ media: 'print' })
  await fresh.screenshot({ path: join(OUT, 'print.png'), fullPage: true })
  await fresh.context().close()
})

await step('nothing was asked of any other place, and nothing went wrong unseen', () => {
  assert.deepEqual(page.strangers, [])
  assert.deepEqual(page.complaints, [])
})

await browser.close()
server.stop()
writeFileSync(join(OUT, 'result.json'), JSON.stringify({ passed, failed: faults }))
console.log(`${passed} passed, ${faults.length} failed`)
process.exit(faults.length === 0 ? 0 : 1)
