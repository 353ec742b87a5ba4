// One's own text on the start view: from a drop to a plan that runs on the file.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { accessible, bounds, certified, openStart, save, step, told, type } from '../harness.mjs'

const { OUT, TRAINER } = process.env
const FOLDER = join(OUT, 'own-text')
mkdirSync(FOLDER, { recursive: true })

/** Drops a file on the page, beside the place for it if `at` says so. */
async function drop(page, name, bytes, at = '#drop') {
  const data = await page.evaluateHandle(([name, bytes]) => {
    const transfer = new DataTransfer()
    transfer.items.add(new File([new Uint8Array(bytes)], name))
    return transfer
  }, [name, [...Buffer.from(bytes)]])
  await page.dispatchEvent(at, 'dragover', { dataTransfer: data })
  await page.dispatchEvent(at, 'drop', { dataTransfer: data })
}

const counted = (page) => page.locator('#own-text-found table').waitFor({ timeout: 60_000 })
const row = (page, name) => page.locator(`#own-text-found th:text-is("${name}") + td`).innerText()

/** Saves the plan beside the file, checks that the trainer computes the ε that is shown, and makes a dry run on the file. */
async function runs(page, name, bytes) {
  await certified(page)
  const shown = await bounds(page)
  const { text } = await save(page)
  writeFileSync(join(FOLDER, name), bytes)
  const plan = join(FOLDER, `${name}.plan.json`)
  writeFileSync(plan, text)
  assert.deepEqual(told(TRAINER, 'verify', plan).epsilon, shown)
  execFileSync(TRAINER, ['--plan', plan, '--dry-run'], { stdio: 'pipe' })
  return JSON.parse(text)
}

const note = (at) => `Visit ${at}: fever for ${at % 9} days, seen on ward ${at % 13}`

await step('a dropped text is counted, its users are protected, and its plan runs on the file', async () => {
  const fresh = await openStart()
  await certified(fresh)
  const before = (await save(fresh)).text
  const lines = Array.from({ length: 6013 }, (_, at) => `${JSON.stringify({ id: at, note: note(at), patient: { id: `p${at % 2517}` }, author: `a${at % 2517}` })}\n`).join('')
  await drop(fresh, 'visits-secret-name.jsonl', lines, 'footer')
  await counted(fresh)
  assert.deepEqual([await row(fresh, 'Records'), await row(fresh, 'Users')], ['6\u202f013', '2\u202f517'])
  assert.match(await row(fresh, 'Records of a user'), /^half have at most 2, nine in ten at most 3, one has 3$/)
  assert.match(await fresh.locator('#own-text-found').innerText(), /For you alone[\s\S]*The plan says N = 2\u202f500/)
  const plan = await runs(fresh, 'visits-secret-name.jsonl', lines)
  assert.deepEqual([plan.data.units, plan.data.text_field, plan.data.user_field, plan.privacy.unit, plan.name], [2500, 'note', 'author', 'user', 'jsonl-text'])
  assert.ok(!plan.evaluation && !JSON.stringify(plan).match(/6013|2517/), 'counts stay on the page')
  await fresh.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await fresh.locator('#link').click()
  await fresh.locator('#link', { hasText: 'Link copied' }).waitFor()
  assert.ok(!(await fresh.evaluate(() => navigator.clipboard.readText())).includes('secret'))
  for (const colorScheme of ['light', 'dark']) {
    await fresh.emulateMedia({ colorScheme })
    await accessible(fresh, `own text, ${colorScheme}`)
    await fresh.screenshot({ path: join(OUT, `own-text-${colorScheme}.png`), fullPage: true })
  }
  await fresh.setViewportSize({ width: 390, height: 844 })
  assert.ok((await fresh.evaluate(() => document.documentElement.scrollWidth)) <= 390)
  await fresh.screenshot({ path: join(OUT, 'own-text-390.png'), fullPage: true })
  await fresh.locator('#own-user-field').selectOption('')
  await fresh.locator('label[for=units]', { hasText: 'records' }).waitFor()
  await certified(fresh)
  assert.equal(await fresh.locator('#units').inputValue(), '6000')
  await type(fresh, 'units', '60000')
  await fresh.locator('#misfit').waitFor()
  await fresh.locator('#expert').click()
  await fresh.locator('#inputs').waitFor()
  for (let at = 0; at < 8 && (await fresh.locator('#undo').isEnabled()); at += 1) await fresh.locator('#undo').click()
  await certified(fresh)
  assert.equal((await save(fresh)).text, before, 'each step can be undone')
  await fresh.context().close()
})

await step('tables of a German Excel and compressed texts have their fields, and small ones get bytes', async () => {
  const fresh = await openStart()
  await certified(fresh)
  const table = `Nummer;Befund\n${Array.from({ length: 917 }, (_, at) => `${at};"${note(at)}; gez. Müller"\n`).join('')}`
  await drop(fresh, 'befunde.csv', table)
  await fresh.locator('#own-text-field').waitFor()
  assert.equal(await fresh.locator('#own-text-found table').count(), 0)
  await fresh.locator('#own-text-field').selectOption('Befund')
  await counted(fresh)
  const plan = await runs(fresh, 'befunde.csv', table)
  assert.deepEqual([plan.data.units, plan.data.text_field, plan.tokenizer, plan.privacy.unit], [910, 'Befund', 'bytes', 'record'])
  const text = gzipSync(Array.from({ length: 3001 }, (_, at) => `${note(at)}\n`).join(''))
  await drop(fresh, 'notes.txt.gz', text)
  await fresh.locator('#own-text-found td', { hasText: '3\u202f001' }).waitFor()
  assert.equal((await runs(fresh, 'notes.txt.gz', text)).data.units, 3000)
  await fresh.context().close()
})

await step('what cannot be counted is said, and the plan stays', async () => {
  const fresh = await openStart()
  await certified(fresh)
  const before = (await save(fresh)).text
  const chats = '{"messages": [{"role": "user", "content": "Hello"}]}\n'
  for (const [name, bytes, said] of [
    ['a.parquet', 'PAR1', /trainer-native init/],
    ['a.pdf', '%PDF', /convert it first/],
    ['a.jsonl', 'Secret line\n', /not JSON/],
    ['a.txt', '', /no record found/],
    ['a.csv', 'text\n"Secret\n', /never closed/],
  ]) {
    await drop(fresh, name, bytes)
    await fresh.locator('#not-counted').filter({ hasText: said }).waitFor()
    assert.ok(!(await fresh.locator('#drop').locator('..').innerText()).includes('Secret line'))
  }
  await drop(fresh, 'chats.jsonl', chats)
  await fresh.locator('.banner', { hasText: 'conversations' }).waitFor()
  assert.equal((await save(fresh)).text, before)
  await fresh.context().close()
})
