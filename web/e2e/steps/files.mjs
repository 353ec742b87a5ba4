// Files, links and presets; the page without a network.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { certified, epsilon, open, openStart, page, paste, save, step, type } from '../harness.mjs'

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

await step('work on a plan survives the start view, a link and a damaged file, and can be undone', async () => {
  const fresh = await open()
  await type(fresh, 'steps', '77')
  await certified(fresh)
  let asked = 0
  fresh.on('dialog', async (dialog) => { asked += 1; await (asked === 1 ? dialog.dismiss() : dialog.accept()) })
  // With its noise given, the plan has no target.
  await fresh.locator('#solve-epsilon').check()
  await certified(fresh)
  await fresh.locator('#start-view').click()
  assert.equal(await fresh.locator('#steps').inputValue(), '77')
  await fresh.locator('#start-view').click()
  await fresh.locator('#proposal-figures').waitFor()
  assert.equal(asked, 2)
  // The start view says why a file or link is not opened.
  await fresh.locator('#import').setInputFiles({ name: 'plan.json', mimeType: 'application/json', buffer: Buffer.from('{') })
  await fresh.locator('header #rejected').waitFor()
  await fresh.locator('#rejected .dismiss').click()
  await fresh.evaluate(() => { location.hash = '#plan1=%E0%A4%A' })
  await fresh.locator('header #rejected:has-text("damaged")').waitFor()
  await fresh.locator('#rejected .dismiss').click()
  await certified(fresh)
  await fresh.locator('#expert').click()
  await fresh.locator('#inputs').waitFor()
  await certified(fresh)
  assert.notEqual(await fresh.locator('#steps').inputValue(), '77')
  // The proposal, and the target that it needed.
  for (let change = 0; change < 2; change += 1) await fresh.locator('#undo').click()
  await certified(fresh)
  assert.equal(await fresh.locator('#steps').inputValue(), '77')
  // A link over an edited plan is one undo step, too.
  await fresh.evaluate((text) => { location.hash = `#plan1=${encodeURIComponent(text)}` }, JSON.stringify({ ...JSON.parse((await save(fresh)).text), name: 'other' }))
  await fresh.locator('.plan-name:text-is("other")').waitFor()
  await fresh.locator('#undo').click()
  await fresh.locator('.plan-name:not(:text-is("other"))').waitFor()
  assert.equal(await fresh.locator('#steps').inputValue(), '77')
  await fresh.context().close()
})

await step('an expert view that does not load says so, and a reload opens it', async () => {
  for (const file of ['expert_loader.js', 'expert.js', 'expert_bg.wasm']) {
    const fresh = await openStart(undefined, { serviceWorkers: 'block' })
    await fresh.route(`**/${file}`, (route) => route.abort())
    await fresh.locator('#expert').click()
    await fresh.locator('#not-loaded:has-text("Your plan is kept")').waitFor()
    assert.equal(await fresh.locator('#not-loaded').count(), 1, file)
    // A reload opens the expert view at once, and no view before it.
    await fresh.reload()
    await fresh.locator('#not-loaded:has-text("Your plan is kept")').waitFor()
    await fresh.unroute(`**/${file}`)
    await fresh.locator('#not-loaded button').click()
    await fresh.locator('#inputs').waitFor()
    await fresh.context().close()
  }
})

await step('once loaded, the page works offline and can be reloaded', async () => {
  const fresh = await open()
  const offline = () => fresh.locator('#offline:text("works offline now")').waitFor({ timeout: 60_000 })
  await offline()
  // Caches of another page of this origin stay, and those of an earlier version go.
  await fresh.evaluate(async () => {
    for (const registration of await navigator.serviceWorker.getRegistrations()) await registration.unregister()
    for (const name of await caches.keys()) await caches.delete(name)
    for (const name of ['another page', 'planner-0123456789abcdef']) await (await caches.open(name)).put('./', new Response('old'))
  })
  await fresh.reload()
  await offline()
  const names = await fresh.evaluate(() => caches.keys())
  assert.ok(names.length === 2 && names[0] === 'another page' && names[1].startsWith('planner http'), names.join(', '))
  await fresh.context().setOffline(true)
  await fresh.reload()
  await certified(fresh)
  await type(fresh, 'target-epsilon', '5')
  await certified(fresh)
  assert.ok((await epsilon(fresh)) <= 5)
  await paste(fresh, 'paste', 'fever and a cough\n'.repeat(600))
  await fresh.locator('#count').click()
  await fresh.locator('#seen').waitFor({ timeout: 60_000 })
  await fresh.context().close()
})
