// Files, links and presets; the page without a network.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { certified, epsilon, open, page, save, step, type } from '../harness.mjs'

const { OUT } = process.env

await step('charts can be saved as SVG, PNG and CSV', async () => {
  await page.locator('#by-noise details summary').click()
  for (const [kind, sign] of [['svg', '<svg'], ['png', '\x89PNG'], ['csv', 'noise multiplier']]) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.locator(`#by-noise .as-${kind}`).click()])
    assert.equal(download.suggestedFilename(), `by-noise.${kind}`)
    const file = join(OUT, `by-noise.${kind}`)
    await download.saveAs(file)
    assert.ok(readFileSync(file, 'latin1').startsWith(sign), kind)
  }
})

await step('a saved report can be opened again and restores the plan', async () => {
  const shown = await epsilon(page)
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#report').click()])
  const file = join(OUT, 'report.html')
  await download.saveAs(file)
  const text = readFileSync(file, 'utf8')
  assert.ok(text.includes('<svg') && text.includes('What is guaranteed'))
  await page.locator('#preset').selectOption('strict-review')
  await certified(page)
  await page.locator('#import').setInputFiles(file)
  await page.waitForFunction((wanted) => document.getElementById('epsilon').dataset.exact === wanted, String(shown))
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

await step('a link opens the same plan elsewhere and contains no file name', async () => {
  await page.locator('#source').selectOption('path')
  await type(page, 'path', 'secret-project.jsonl')
  await certified(page)
  const shown = await epsilon(page)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.locator('#link').click()
  await page.locator('#link', { hasText: 'Link copied' }).waitFor()
  const address = await page.evaluate(() => navigator.clipboard.readText())
  assert.ok(address.includes('#plan1=') && !address.includes('secret'), address)
  const other = await open(address)
  await other.waitForFunction((wanted) => document.getElementById('epsilon').dataset.exact === wanted, String(shown))
  await other.context().close()
})

await step('every preset can be certified', async () => {
  const names = await page.locator('#preset option').evaluateAll((options) => options.map((option) => option.value))
  const all = []
  for (const name of names) {
    await page.locator('#preset').selectOption(name)
    await certified(page)
    all.push(`${name} ${(await epsilon(page)).toFixed(3)}`)
  }
  return all.join(', ')
})

await step('once loaded, the page works offline and can be reloaded', async () => {
  const fresh = await open()
  await fresh.evaluate(() => navigator.serviceWorker.ready)
  // The worker for previews is cached once the page is idle.
  const kept = () => fresh.evaluate(async () => {
    const requests = await Promise.all((await caches.keys()).map(async (name) => (await caches.open(name)).keys()))
    return requests.flat().some((request) => request.url.includes('vocabulary') && request.url.endsWith('.wasm'))
  })
  for (let second = 0; !(await kept()); second += 1) {
    assert.ok(second < 60, 'the page is not cached')
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
