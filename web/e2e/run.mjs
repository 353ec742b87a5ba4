// Uses the built page as a person does. `cargo xtask web test` sets PAGE, CHROMIUM, TRAINER, ACCOUNTANT and OUT (or takes
// OUT from WEB_SHOTS). TEXT may name a text to count; LONG_TEXT=1 counts 200 MB of it instead of 50.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { brotliBytes, serve } from './serve.mjs'

const { PAGE, CHROMIUM, TRAINER, ACCOUNTANT, OUT, TEXT } = process.env
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const DOWNLOAD_LIMIT = 420_000
const TEXT_BYTES = process.env.LONG_TEXT ? 199e6 : 50e6
// Times are printed; only what no busy machine explains fails.
const PATIENCE = { interactive: 20_000, task: 2_000 }

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
  // The clock of the page itself at its first certified figure.
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      if (document.querySelector('#state.certified')) {
        window.ready = performance.now()
        observer.disconnect()
      }
    }).observe(document, { subtree: true, childList: true, attributes: true })
  })
  await page.goto(address)
  await certified(page)
  page.ready = await page.evaluate(() => window.ready)
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
  const ready = page.ready
  assert.ok(ready > 0 && ready < PATIENCE.interactive, `${ready} ms`)
  return `first certified figure after ${Math.round(ready)} ms`
})

await step('what a first visit downloads stays below the limit', () => {
  const { first, all } = brotliBytes(PAGE)
  assert.ok(first <= DOWNLOAD_LIMIT, `${first} > ${DOWNLOAD_LIMIT}`)
  return `${(first / 1000).toFixed(0)} kB by brotli; ${(all / 1000).toFixed(0)} kB with the worker that looks at text`
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

await step('a steps-only plan has the figure of the accountant on the command line', async () => {
  const fresh = await open()
  await fresh.locator('#tokenizer').selectOption('bytes')
  await type(fresh, 'spare', '0')
  await fresh.locator('#give-noise').check()
  await type(fresh, 'noise-training', '1.5')
  await certified(fresh)
  const plan = JSON.parse((await save(fresh)).text)
  const { steps, expected_batch_size: batch } = plan.training
  const flags = ['--batch-size', batch, '--dataset-size', plan.data.units, '--noise-multiplier', '1.5', '--steps', steps]
  const told = execFileSync(ACCOUNTANT, ['epsilon', ...flags.map(String), '--delta', String(plan.privacy.delta), '--json'], { encoding: 'utf8' })
  assert.equal(JSON.parse(told).epsilon.upper, await epsilon(fresh))
  await fresh.context().close()
})

await step('steps, and a batch, are found from ε and the noise', async () => {
  const fresh = await open()
  const before = Number(await fresh.locator('#steps').inputValue())
  await fresh.locator('#find-steps').check()
  await certified(fresh)
  assert.notEqual(await fresh.locator('#steps').getAttribute('readonly'), null)
  await type(fresh, 'target-epsilon', '12')
  await fresh.waitForFunction((old) => Number(document.getElementById('steps').value) > old, before)
  await certified(fresh)
  const reached = await epsilon(fresh)
  assert.ok(reached <= 12 && reached > 11.9, `ε = ${reached}`)
  const { file } = await save(fresh)
  const figures = JSON.parse(execFileSync(TRAINER, ['verify', file, '--json'], { encoding: 'utf8' }))
  assert.equal(figures.epsilon.upper, reached)
  await fresh.locator('#undo').click()
  await certified(fresh)
  await fresh.locator('#find-batch').check()
  await certified(fresh)
  assert.ok((await epsilon(fresh)) <= 8)
  await fresh.context().close()
})

await step('a batch schedule is made, changed and given up', async () => {
  const fresh = await open()
  await fresh.locator('#phases').click()
  await certified(fresh)
  await fresh.locator('#phase-2-batch').fill('100')
  await fresh.locator('#phase-2-batch').blur()
  await certified(fresh)
  const plan = JSON.parse((await save(fresh)).text)
  assert.equal(plan.training.batch_schedule[1].expected_batch_size, 100)
  await fresh.locator('#add-phase').click()
  await fresh.locator('#phase-3-steps').waitFor()
  await certified(fresh)
  await fresh.locator('#level').click()
  await fresh.locator('#batch').waitFor()
  await certified(fresh)
  await fresh.context().close()
})

await step('a promise may be made as μ or as the rates of an attack', async () => {
  const fresh = await open()
  await fresh.locator('details.words summary').first().click()
  await fresh.locator('#aim-mu').fill('1')
  await fresh.locator('#set-mu').click()
  await fresh.waitForFunction(() => document.getElementById('target-epsilon').value !== '8')
  await certified(fresh)
  await fresh.locator('#mu').waitFor()
  const mu = Number(await fresh.locator('#mu').innerText())
  assert.ok(mu <= 1.0001 && mu > 0.99, `μ = ${mu}`)
  await fresh.locator('#aim-tpr').fill('5')
  await fresh.locator('#set-rates').click()
  await fresh.waitForFunction(() => document.getElementById('target-epsilon').value.startsWith('1.6'))
  await certified(fresh)
  await fresh.context().close()
  return `μ ≤ ${mu}`
})

await step('odds, groups, runs and other accounting are told', async () => {
  await page.waitForFunction(() => document.querySelectorAll('#groups tbody tr').length === 4, undefined, { timeout: 120_000 })
  await page.waitForFunction(() => document.querySelectorAll('#runs tbody tr').length === 4)
  await page.waitForFunction(() => document.querySelectorAll('#methods tbody tr').length === 3)
  return (await page.locator('#odds').innerText()).match(/at most [0-9.]+/)[0]
})

await step('charts are saved as SVG, PNG and CSV', async () => {
  await page.locator('#by-noise details summary').click()
  for (const [kind, sign] of [['svg', '<svg'], ['png', '\x89PNG'], ['csv', 'noise multiplier']]) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.locator(`#by-noise .as-${kind}`).click()])
    assert.equal(download.suggestedFilename(), `by-noise.${kind}`)
    const file = join(OUT, `by-noise.${kind}`)
    await download.saveAs(file)
    assert.ok(readFileSync(file, 'latin1').startsWith(sign), kind)
  }
})

await step('a report is saved, and opened again it restores the plan', async () => {
  const shown = await epsilon(page)
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#report').click()])
  const file = join(OUT, 'report.html')
  await download.saveAs(file)
  const text = readFileSync(file, 'utf8')
  assert.ok(text.includes('<svg') && text.includes('What is promised'))
  await page.locator('#preset').selectOption('strict-review')
  await certified(page)
  await page.locator('#import').setInputFiles(file)
  await page.waitForFunction((wanted) => document.getElementById('epsilon').dataset.exact === wanted, String(shown))
})

/** A text of so many bytes: lines of the file named by TEXT, else invented ones. */
function longText(bytes) {
  const file = join(OUT, 'text.jsonl')
  const words = 'the patient was seen again and felt no pain after one week of rest at home'.split(' ')
  const invented = () => Array.from({ length: 4000 }, (_, line) => {
    const text = Array.from({ length: 60 }, (_, at) => words[(line * 7 + at * at) % words.length] + (at % 9 ? '' : (line * at) % 5000)).join(' ')
    return JSON.stringify({ text, user: `u${line % 300}` })
  }).join('\n') + '\n'
  const given = TEXT ? readFileSync(TEXT, 'utf8') : invented()
  const times = Math.ceil(bytes / Buffer.byteLength(given))
  const all = Buffer.from(given.repeat(times)).subarray(0, bytes)
  writeFileSync(file, all.subarray(0, all.lastIndexOf(10) + 1))
  return file
}

await step('a long text is counted while the page stays responsive', async () => {
  const fresh = await open()
  const file = longText(TEXT_BYTES)
  await fresh.evaluate(() => {
    window.longest = 0
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => { window.longest = Math.max(window.longest, entry.duration) }))
      .observe({ entryTypes: ['longtask'] })
  })
  const begun = Date.now()
  await fresh.locator('#upload').setInputFiles(file)
  await fresh.locator('#seen').waitFor({ timeout: 500_000 })
  const seconds = (Date.now() - begun) / 1000
  const longest = await fresh.evaluate(() => window.longest)
  assert.ok(longest < PATIENCE.task, `a task of ${longest} ms`)
  assert.ok((await fresh.locator('#seen').innerText()).includes('Coverage'))
  const address = await (async () => { await fresh.locator('#link').click(); return fresh.url() })()
  assert.ok(!address.includes('text.jsonl') && !(await save(fresh)).text.includes('text.jsonl'), 'a preview never leaves')
  await accessible(fresh, 'preview')
  await fresh.screenshot({ path: join(OUT, 'preview.png'), fullPage: true })
  await fresh.context().close()
  return `${(TEXT_BYTES / 1e6).toFixed(0)} MB in ${seconds.toFixed(1)} s, longest task ${Math.round(longest)} ms (0: none above 50)`
})

await step('a count can be stopped, and begun again with pasted text', async () => {
  const fresh = await open()
  await fresh.locator('#upload').setInputFiles(join(OUT, 'text.jsonl'))
  await fresh.locator('#progress progress').waitFor()
  await fresh.locator('#stop').click()
  await fresh.locator('#progress progress').waitFor({ state: 'detached' })
  await fresh.locator('#paste').fill('fever and a cough\n'.repeat(600))
  await fresh.locator('#count').click()
  await fresh.locator('#seen').waitFor({ timeout: 60_000 })
  assert.ok((await fresh.locator('#seen').innerText()).includes('fever'))
  await fresh.context().close()
})

const unreadable = [
  ['no text at all', async (fresh) => fresh.locator('#count').click(), 'paste'],
  ['a binary file', async (fresh) => fresh.locator('#upload').setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from([1, 0, 2, 255, 0, 9]) }), 'zero bytes'],
  ['an empty file', async (fresh) => fresh.locator('#upload').setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.alloc(0) }), 'no record'],
  ['a packed file', async (fresh) => fresh.locator('#upload').setInputFiles({ name: 'a.txt.gz', mimeType: 'application/gzip', buffer: Buffer.from([31, 139]) }), 'unpack'],
]
for (const [name, give, said] of unreadable) {
  await step(`${name} gives no preview, and the reason`, async () => {
    const fresh = await open()
    await give(fresh)
    await fresh.locator('#no-preview').waitFor()
    assert.ok((await fresh.locator('#no-preview').innerText()).includes(said))
    await accessible(fresh, name)
    await fresh.locator('#preview').screenshot({ path: join(OUT, `no-preview-${name.replaceAll(' ', '-')}.png`) })
    await fresh.locator('#no-preview .remedy').click()
    await fresh.context().close()
  })
}

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
  ['no noise', 'noise-training', '0', 'privacy.noise_multipliers.training', '#give-noise'],
  ['a batch larger than N', 'batch', '1M', 'training.expected_batch_size'],
  ['δ of at least 1/N', 'delta', '0.5', 'privacy.delta'],
  ['no units', 'units', '0', null],
  ['ε of zero', 'target-epsilon', '0', 'privacy.epsilon'],
  ['a warm-up longer than training', 'warmup', '9999', 'training.learning_rate.warmup_steps'],
]
for (const [name, id, text, place, first] of wrong) {
  await step(`${name} is refused with its cause, and a button repairs it where one can`, async () => {
    const fresh = await open()
    if (first) {
      await fresh.locator(first).check()
      await certified(fresh)
    }
    await type(fresh, id, text)
    await refused(fresh)
    assert.equal(await fresh.locator('#figures.stale').count(), 1, 'earlier figures are visibly stale')
    assert.ok(await fresh.locator('.outdated').first().isVisible())
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

await step('no network is needed once loaded, not even to open the page again', async () => {
  const fresh = await open()
  await fresh.evaluate(() => navigator.serviceWorker.ready)
  // The worker that looks at text is kept once the page is idle.
  const kept = () => fresh.evaluate(async () => {
    const requests = await Promise.all((await caches.keys()).map(async (name) => (await caches.open(name)).keys()))
    return requests.flat().some((request) => request.url.includes('vocabulary') && request.url.endsWith('.wasm'))
  })
  for (let second = 0; !(await kept()); second += 1) {
    assert.ok(second < 60, 'the page is not kept')
    await fresh.waitForTimeout(1000)
  }
  await fresh.context().setOffline(true)
  await fresh.reload()
  await certified(fresh)
  await type(fresh, 'target-epsilon', '5')
  await certified(fresh)
  assert.ok((await epsilon(fresh)) <= 5)
  await fresh.locator('#paste').fill('fever and a cough\n'.repeat(600))
  await fresh.locator('#count').click()
  await fresh.locator('#seen').waitFor({ timeout: 60_000 })
  await fresh.context().close()
})

for (const scheme of ['light', 'dark']) {
  for (const width of [1440, 1024, 390]) {
    await step(`${scheme}, ${width} px: accessible and no wider than the window`, async () => {
      const sized = await open(server.address, { viewport: { width, height: 900 }, colorScheme: scheme })
      await sized.locator('#pin').click()
      await sized.waitForFunction(() => document.querySelectorAll('#by-noise details tbody tr').length >= 21)
      await sized.waitForFunction(() => document.querySelectorAll('#by-steps details tbody tr').length >= 15)
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
  await fresh.waitForFunction(() => document.querySelectorAll('#by-noise details tbody tr').length >= 21)
  await fresh.locator('.plot svg').first().focus()
  await fresh.keyboard.press('End')
  const said = await fresh.locator('.plot .reading').first().innerText()
  const last = await fresh.locator('#by-noise details tbody tr').last().evaluate((row) => row.children[1].textContent)
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
