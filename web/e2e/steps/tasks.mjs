// Tasks as people have them, on a desktop and on a phone: what they do, and how long it takes.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { certified, figures, openStart, rested, save, server, step } from '../harness.mjs'

const { OUT } = process.env

/** The same actions on both windows. `act` counts each thing that a person does. */
async function task(name, carryOut) {
  for (const [device, viewport] of [['desktop', { width: 1440, height: 900 }], ['phone', { width: 390, height: 844 }]]) {
    await step(`task on a ${device}: ${name}`, async () => {
      const page = await openStart(server.address, { viewport, hasTouch: device === 'phone' })
      await certified(page)
      let actions = 0
      const begun = Date.now()
      const act = (action) => { actions += 1; return action }
      const found = await carryOut(page, act)
      const told = `${actions} actions, ${((Date.now() - begun) / 1000).toFixed(1)} s${found ? `, ${found}` : ''}`
      const wide = await page.evaluate(() => document.documentElement.scrollWidth)
      assert.ok(wide <= viewport.width, `${wide} px wide`)
      await page.context().close()
      figures[`${name} (${device})`] = told
      return told
    })
  }
}

const fill = async (page, id, text) => {
  await page.locator(`#${id}`).fill(text)
  await page.locator(`#${id}`).blur()
}

await task('plan for a CSV file from a German Excel', async (page, act) => {
  const rows = Array.from({ length: 2500 }, (_, at) => `${at};"Befund ${at % 97}: Fieber, ${at % 9} Tage"`)
  const table = Buffer.from(`Nummer;Befund\r\n${rows.join('\r\n')}`)
  await act(page.locator('#own-text').setInputFiles({ name: 'befunde.csv', mimeType: 'text/csv', buffer: table }))
  await page.locator('#own-text-field').waitFor({ timeout: 60_000 })
  await act(page.locator('#own-text-field').selectOption('Befund'))
  await page.locator('#own-text-found table').waitFor({ timeout: 60_000 })
  await certified(page)
  const plan = JSON.parse((await act(save(page))).text)
  assert.deepEqual([plan.data.text_field, plan.data.units], ['Befund', 2500])
})

await task('how many users for ε = 2?', async (page, act) => {
  await act(page.locator('#protect-user').check())
  await act(fill(page, 'units', '500'))
  await act(fill(page, 'target-epsilon', '2'))
  await certified(page)
  const said = await page.locator('.proposal .banner').innerText()
  const [, times] = said.match(/takes (?:about|more than) (\d+) times the units/)
  assert.ok(Number(times) > 1, said)
  return `${times} × 500 users`
})

await task('from a public checkpoint', async (page, act) => {
  await act(page.locator('#start-size').selectOption('gpt2/lora'))
  await page.locator('#proposal-figures dd:text-is("gpt2")').waitFor({ timeout: 60_000 })
  await certified(page)
  const plan = JSON.parse((await act(save(page))).text)
  assert.equal(plan.model.initial.checkpoint, 'gpt2')
  assert.match(await page.locator('.proposal .banner').innerText(), /openai-community\/gpt2/)
})

await task('a statement to sign', async (page, act) => {
  await act(page.locator('button:text-is("One-page statement")').click())
  await page.locator('#author').waitFor()
  await act(page.locator('#author').fill('Ada Example'))
  await act(page.locator('#organisation').fill('Clinic of C'))
  await act(page.locator('#description').fill('Support chats of 2025'))
  await rested(page)
  await page.emulateMedia({ media: 'print' })
  const pdf = await page.pdf({ path: join(OUT, 'to-sign.pdf'), format: 'A4' })
  assert.equal(pdf.toString('latin1').match(/\/Type\s*\/Page\b(?!s)/g).length, 1)
  await page.emulateMedia({ media: 'screen' })
})

await task('last week’s plan, with a smaller ε', async (page, act) => {
  await fill(page, 'target-epsilon', '5')
  await certified(page)
  const { file } = await save(page)
  const fresh = await openStart(server.address, { viewport: page.viewportSize() })
  await act(fresh.locator('#import').setInputFiles(file))
  await fresh.locator('#inputs').waitFor()
  await certified(fresh)
  assert.equal(await fresh.locator('#target-epsilon').inputValue(), '5')
  await act(fill(fresh, 'target-epsilon', '3'))
  await certified(fresh)
  const plan = JSON.parse((await act(save(fresh))).text)
  assert.equal(plan.privacy.epsilon, 3)
  await fresh.context().close()
})
