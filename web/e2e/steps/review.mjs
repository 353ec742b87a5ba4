// What a review of the page found, each as it was found.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { certified, epsilon, figures, open, openStart, refused, rested, save, server, step, type } from '../harness.mjs'

const { OUT } = process.env
// Twice the time that an idle machine may take.
const MAX_ANSWER_S = 4

await step('a comma is a decimal sign or a refusal, never dropped', async () => {
  const fresh = await open()
  await fresh.locator('#solve-epsilon').check()
  await certified(fresh)
  await type(fresh, 'noise-training', '0,5')
  await certified(fresh)
  assert.equal(JSON.parse((await save(fresh)).text).privacy.noise_multipliers.training, 0.5)
  await fresh.locator('#units').fill('6.000')
  assert.match(await fresh.locator('#units-errors').innerText(), /6000 or 6\.000/)
  await fresh.context().close()
})

await step('noise and ε beyond what can be bounded in time are refused at once, in a sentence', async () => {
  const fresh = await open()
  for (const value of ['1e-9', '1e5']) {
    await type(fresh, 'target-epsilon', value)
    await refused(fresh)
    assert.match(await fresh.locator('#refusal').innerText(), /ε must be from 1e-6 to 10000; you entered/)
  }
  await type(fresh, 'target-epsilon', '8')
  await certified(fresh)
  await fresh.locator('#solve-epsilon').check()
  await certified(fresh)
  await type(fresh, 'noise-training', '1e-6')
  await refused(fresh)
  await type(fresh, 'delta', '1')
  await type(fresh, 'noise-training', '1')
  await fresh.locator('#refusal').filter({ hasText: 'δ must be between 0 and 1; you entered 1.' }).waitFor()
  await fresh.context().close()
})

await step('figures at their extremes are answered or refused in seconds', async () => {
  const fresh = await open()
  await fresh.locator('#source').selectOption('path')
  await fresh.locator('#solve-epsilon').check()
  await certified(fresh)
  const answered = fresh.locator('.headline[aria-busy="false"] #status.verified, #status.refused')
  let slowest = [0, '']
  const ask = async (id, value) => {
    const begun = Date.now()
    await type(fresh, id, value)
    await fresh.waitForTimeout(20)
    await answered.waitFor({ timeout: 60_000 })
    const seconds = (Date.now() - begun) / 1000
    if (seconds > slowest[0]) slowest = [seconds, `${id} = ${value}`]
  }
  for (const [id, usual, values] of [
    ['noise-training', '1', ['1e-6', '0.05', '0.3', '100', '1e5', '1e9']],
    ['delta', '1e-7', ['1e-300', '1e-30', '0.4', '1']],
    ['units', '6000', ['1', '2', '1e9', '9e15']],
    ['steps', '150', ['1', '1e6', '1e9', '9e15']],
    ['batch', '256', ['1', '6000']],
  ]) {
    for (const value of [...values, usual]) await ask(id, value)
  }
  await fresh.locator('#solve-noise').check()
  for (const value of ['1e-9', '1e-6', '0.001', '1000', '10000', '1e9']) await ask('target-epsilon', value)
  await fresh.context().close()
  figures['slowest answer at extremes'] = `${slowest[0]} s, ${slowest[1]}`
  assert.ok(slowest[0] < MAX_ANSWER_S, figures['slowest answer at extremes'])
  return figures['slowest answer at extremes']
})

await step('a worker that does not answer is replaced, and no ε is shown for its plan', async () => {
  const fresh = await open()
  await fresh.evaluate(() => {
    const post = Worker.prototype.postMessage
    Worker.prototype.postMessage = function (...message) {
      if (!window.swallow) return post.apply(this, message)
    }
    window.swallow = true
  })
  await fresh.locator('#target-epsilon').fill('5')
  await fresh.waitForFunction(() => document.getElementById('epsilon').textContent === 'ε …')
  assert.equal(await fresh.locator('#figures td').first().evaluate((cell) => getComputedStyle(cell).visibility), 'hidden')
  await fresh.evaluate(() => { window.swallow = false })
  await fresh.locator('#status.refused').waitFor({ timeout: 60_000 })
  assert.match(await fresh.locator('#reason').innerText(), /longer than 30 seconds/)
  await fresh.locator('#target-epsilon').fill('4')
  await certified(fresh)
  assert.ok((await epsilon(fresh)) <= 4)
  await fresh.context().close()
})

await step('odds state the average, the largest confidence, and what is found at 1 % and 0.1 % false alarms', async () => {
  const fresh = await open()
  await rested(fresh)
  const odds = await fresh.locator('#odds').innerText()
  assert.match(odds, /On average/)
  // e^8 / (1 + e^8), rounded up.
  assert.match(odds, /up to 99\.967 % sure/)
  assert.match(odds, /With 1 % false alarms.*with 0\.1 %/s)
  assert.equal(await fresh.locator('#status').innerText(), 'Verified')
  assert.equal(await fresh.locator('#strength').innerText(), 'reasonable (ε from 1 to 10)')
  await fresh.context().close()
})

await step('no room for a step names batch and noise, with buttons that help', async () => {
  const fresh = await open()
  await fresh.locator('#solve-steps').check()
  await certified(fresh)
  await type(fresh, 'noise-training', '0.5')
  await type(fresh, 'spare', '0')
  await type(fresh, 'batch', '6000')
  await type(fresh, 'target-epsilon', '4')
  await refused(fresh)
  const fixes = fresh.locator('#refusal .quick-fix')
  const labels = await fixes.allInnerTexts()
  assert.ok(labels.some((label) => label.startsWith('Lower the batch size')) && labels.some((label) => label.startsWith('Raise the training noise')), labels.join())
  await fixes.first().click()
  await certified(fresh)
  await fresh.context().close()
  return labels.join(', ')
})

await step('reserve steps of sampling by passes say what they cost', async () => {
  const fresh = await open()
  await fresh.locator('#solve-epsilon').check()
  await fresh.locator('#sampling').selectOption('balls_in_bins')
  await certified(fresh)
  // Until the new sampling is computed, the cost is that of the former one.
  const cost = fresh.locator('#reserve-cost', { hasText: 'pay for a pass' })
  await cost.waitFor({ timeout: 60_000 })
  const [, without, together] = (await cost.innerText()).match(/ε ≤ ([\d.]+\d); with them ε ≤ ([\d.]+\d)/)
  assert.ok(Number(without) < Number(together))
  await fresh.context().close()
  return `${without} → ${together}`
})

await step('sampling that needs a public N is refused at its field, with buttons', async () => {
  const fresh = await open()
  for (const name of ['fixed_size', 'shuffle', 'truncated_poisson']) {
    await fresh.locator('#sampling').selectOption(name)
    await refused(fresh)
    const field = fresh.locator('.field:has(#sampling)')
    assert.match(await field.innerText(), /Use Poisson sampling/)
    await field.locator('.quick-fix').last().click()
    await certified(fresh)
    await fresh.locator('#relation').selectOption('add')
    await fresh.locator('#sampling').selectOption('poisson')
    await certified(fresh)
  }
  await fresh.context().close()
})

await step('a link pasted into an open tab opens', async () => {
  const fresh = await open(server.address, { permissions: ['clipboard-read', 'clipboard-write'] })
  await type(fresh, 'target-epsilon', '2.5')
  await certified(fresh)
  await fresh.locator('#link').click()
  await fresh.locator('#link', { hasText: 'Link copied' }).waitFor()
  const link = await fresh.evaluate(() => navigator.clipboard.readText())
  await type(fresh, 'target-epsilon', '4')
  await certified(fresh)
  await fresh.evaluate((hash) => { location.hash = hash }, new URL(link).hash)
  await fresh.waitForFunction(() => document.getElementById('target-epsilon').value === '2.5')
  await fresh.context().close()
})

await step('a slider whose value is beyond its end does not fall back to it', async () => {
  const fresh = await open()
  await fresh.locator('#source').selectOption('path')
  await type(fresh, 'units', '2e12')
  await type(fresh, 'delta', '1e-14')
  await fresh.locator('#units-slider').focus()
  await fresh.keyboard.press('ArrowUp')
  assert.ok(Number(await fresh.locator('#units').inputValue()) >= 2e12)
  await fresh.context().close()
})

await step('the privacy statement is one printed page with date, author and description', async () => {
  const fresh = await open()
  await rested(fresh)
  await fresh.locator('#author').fill('Ada Example')
  await fresh.locator('#organisation').fill('Clinic of C')
  await fresh.locator('#description').fill('Support chats of 2025')
  await fresh.emulateMedia({ media: 'print' })
  const text = await fresh.locator('.statement').innerText()
  assert.match(text, /Date: \d{4}-\d{2}-\d{2}/)
  assert.match(text, /Privacy unit\s+What is protected as a whole: one record\./)
  const digest = text.match(/[0-9a-f]{64}/)?.[0]
  assert.ok(digest && text.includes('accountant 0.'), 'the full digest and the version are printed')
  await fresh.emulateMedia({ media: 'screen' })
  const [download] = await Promise.all([fresh.waitForEvent('download'), fresh.locator('#report').click()])
  const saved = readFileSync(await download.path(), 'utf8')
  for (const said of ['Ada Example', 'Clinic of C', 'Support chats of 2025', digest, 'What is protected as a whole: one record.', /<td>\d{4}-\d{2}-\d{2}</]) {
    assert.ok(saved.search(said) >= 0, String(said))
  }
  await fresh.emulateMedia({ media: 'print' })
  const pdf = await fresh.pdf({ path: join(OUT, 'statement.pdf'), format: 'A4', margin: { top: '15mm', bottom: '15mm', left: '15mm', right: '15mm' } })
  const pages = pdf.toString('latin1').match(/\/Type\s*\/Page\b(?!s)/g).length
  assert.equal(pages, 1)
  await fresh.screenshot({ path: join(OUT, 'statement.png'), fullPage: true })
  await fresh.context().close()
})

await step('the header covers no focused control, and little of an enlarged page', async () => {
  for (const start of [openStart, open]) {
    const fresh = await start(server.address, { viewport: { width: 1280, height: 720 } })
    await fresh.evaluate(() => window.scrollTo(0, 0))
    const places = await fresh.locator('main').evaluate((main) => main.querySelectorAll('button, input, select, summary').length)
    for (let place = 0; place < Math.min(places, 60); place += 1) {
      await fresh.keyboard.press(place < 30 ? 'Tab' : 'Shift+Tab')
      const hidden = await fresh.evaluate(() => {
        const one = document.activeElement
        if (one.closest('header') || one === document.body) return false
        const header = document.querySelector('header').getBoundingClientRect()
        const sticky = getComputedStyle(document.querySelector('header')).position === 'sticky'
        return sticky && one.getBoundingClientRect().top < header.bottom ? one.outerHTML.slice(0, 80) : false
      })
      assert.equal(hidden, false)
    }
    // 400 % of a window of 1280 × 1024.
    await fresh.setViewportSize({ width: 320, height: 256 })
    await fresh.evaluate(() => window.scrollTo(0, 800))
    const covered = await fresh.evaluate(() => Math.max(0, document.querySelector('header').getBoundingClientRect().bottom))
    assert.ok(covered < 64, `${covered} of 256 px`)
    await fresh.context().close()
  }
})

await step('ε follows a key that is held down on a slow machine', async () => {
  const fresh = await open()
  await fresh.locator('#solve-epsilon').check()
  await rested(fresh)
  const devtools = await fresh.context().newCDPSession(fresh)
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 6 })
  await fresh.locator('#noise-training-slider').focus()
  await fresh.evaluate(() => {
    window.delays = []
    document.addEventListener('keydown', () => {
      const start = performance.now()
      requestAnimationFrame(() => requestAnimationFrame(() => window.delays.push(performance.now() - start)))
    }, true)
  })
  for (let press = 0; press < 40; press += 1) {
    await fresh.keyboard.down('ArrowUp')
    await fresh.waitForTimeout(33)
  }
  await fresh.keyboard.up('ArrowUp')
  await certified(fresh)
  const delays = await fresh.evaluate(() => window.delays.sort((one, other) => one - other))
  const at = (share) => delays[Math.ceil(delays.length * share) - 1].toFixed(0)
  figures['key held down, CPU ÷ 6'] = `two frames after a key: median ${at(0.5)} ms, p95 ${at(0.95)} ms`
  await fresh.context().close()
  return figures['key held down, CPU ÷ 6']
})
