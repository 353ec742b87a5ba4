// One's own text on the start view: from a drop to a plan that runs on the file.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { accessible, bounds, certified, openStart, randomFrom, save, step, told, type } from '../harness.mjs'

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

/** 2,400 visits of 800 patients, as pyarrow 26.0.1 writes them. */
const TABLE = readFileSync(new URL('../fixtures/visits.parquet', import.meta.url))
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

await step('a table in parquet is read by a module of its own, and its vocabulary is previewed', async () => {
  const fresh = await openStart()
  await certified(fresh)
  const loaded = () => fresh.evaluate(() => performance.getEntriesByType('resource').map((entry) => entry.name).join())
  await drop(fresh, 'visits.parquet', TABLE)
  await counted(fresh)
  assert.deepEqual([await row(fresh, 'Records'), await row(fresh, 'Users')], ['2\u202f400', '800'])
  assert.ok((await loaded()).includes('/parquet_loader.js'))
  assert.equal(await fresh.locator('#own-encoding').count(), 0, 'a table in parquet tells its encoding')
  const plan = await runs(fresh, 'visits.parquet', TABLE)
  assert.deepEqual([plan.data.units, plan.data.text_field, plan.data.user_field, plan.privacy.unit], [800, 'note', 'patient', 'user'])
  await fresh.locator('#own-user-field').selectOption('')
  await fresh.locator('label[for=units]', { hasText: 'records' }).waitFor()
  await certified(fresh)
  const words = JSON.parse((await save(fresh)).text).tokenizer.train
  assert.deepEqual([words.release, words.words], ['pooled', 'pairs'], 'as `init` chooses')
  await fresh.locator('button:text-is("Preview vocabulary")').click()
  await fresh.locator('#seen').waitFor({ timeout: 120_000 })
  assert.match(await fresh.locator('#seen').innerText(), /Units\s+2\u202f400[\s\S]*fever/)
  await fresh.locator('#preview .banner', { hasText: 'not private' }).waitFor()
  await fresh.context().close()
})

await step('Windows-1252 is read where it is chosen, and never guessed', async () => {
  const fresh = await openStart()
  await certified(fresh)
  const table = Buffer.from(`Nummer;Größe\n${Array.from({ length: 917 }, (_, at) => `${at};"fünf ${note(at)}"\n`).join('')}`, 'latin1')
  await drop(fresh, 'befunde.csv', table)
  await fresh.locator('#own-encoding').selectOption('windows-1252')
  await fresh.locator('#own-text-field option[value="Größe"]').waitFor({ state: 'attached' })
  await fresh.locator('#own-text-field').selectOption('Größe')
  await counted(fresh)
  assert.equal(await fresh.locator('#own-text-found th', { hasText: 'invalid bytes' }).count(), 0)
  const plan = await runs(fresh, 'befunde.csv', table)
  assert.deepEqual([plan.data.encoding, plan.data.text_field], ['windows-1252', 'Größe'])
  await fresh.context().close()
})

const PLANS = Number(process.env.PLANS ?? 3)
await step('plans at random for dropped files run on these files', async () => {
  const fresh = await openStart()
  await certified(fresh)
  const random = randomFrom(Number(process.env.SEED ?? 1))
  const one = (all) => all[Math.floor(random() * all.length)]
  const refusals = []
  for (let made = 0; made < PLANS; made += 1) {
    const records = Math.round(300 * 20 ** random())
    const users = Math.max(100, Math.round(records * random()))
    const [text, user] = [one(['text', 'Befund', 'body']), one(['user', 'customer_id', 'Kunde'])]
    const rows = Array.from({ length: records }, (_, at) => ({ id: at, [text]: note(at), [user]: `u${at % users}` }))
    const cell = (value) => `"${String(value).replaceAll('"', '""')}"`
    const table = (separator) => [[`id`, text, user].join(separator), ...rows.map((row) => Object.values(row).map(cell).join(separator))].join('\r\n')
    const [name, bytes] = one([
      () => ['a.jsonl', rows.map((row) => JSON.stringify(row)).join('\n')],
      () => ['a.json', JSON.stringify(rows)],
      () => ['a.csv', table(',')],
      () => ['a.csv', table(';')],
      () => ['a.jsonl.gz', gzipSync(rows.map((row) => JSON.stringify(row)).join('\n'))],
      () => ['a.txt', rows.map((row) => row[text]).join('\n')],
      () => ['a.parquet', TABLE],
    ])()
    await drop(fresh, name, bytes)
    const fields = async (id, wanted) => {
      const list = fresh.locator(`#${id}`)
      if (name !== 'a.parquet' && (await list.inputValue()) !== wanted) await list.selectOption(wanted)
    }
    if (name !== 'a.txt') {
      await fresh.locator('#own-text-field').waitFor()
      await fields('own-text-field', text)
      await counted(fresh)
      await fields('own-user-field', one(['', user]))
    }
    await counted(fresh)
    await type(fresh, 'target-epsilon', String(Number((0.5 * 32 ** random()).toPrecision(3))))
    await type(fresh, 'hours', String(Number((0.02 * 100 ** random()).toPrecision(2))))
    await fresh.locator('#start-size').selectOption(one(['', 'tiny', 'small']))
    // A wish that no plan fulfils is refused with its reason; the next file starts anew.
    await fresh.locator('.headline[aria-busy="false"] #status.verified, #status.refused').waitFor({ timeout: 60_000 })
    if ((await fresh.locator('#status.refused').count()) > 0) {
      refusals.push(await fresh.locator('#reason').innerText())
      assert.ok(refusals.length <= PLANS / 5 && refusals.at(-1), refusals.join('; '))
      await type(fresh, 'hours', '1')
      await fresh.locator('#start-size').selectOption('')
    }
    try {
      await runs(fresh, `${made}-${name}`.replace(/^\d+-a/, 'a'), bytes)
    } catch (error) {
      throw new Error(`plan ${made} for ${records} records of ${users} users in ${name}`, { cause: error })
    }
  }
  await fresh.context().close()
  return `${PLANS} run${refusals.map((reason) => `; at first refused: ${reason}`).join('')}`
})

await step('a reader that does not answer is ended, and the next file is read', async () => {
  const fresh = await openStart()
  await certified(fresh)
  await fresh.evaluate(() => {
    const post = Worker.prototype.postMessage
    Worker.prototype.postMessage = function (...message) {
      if (!window.swallow) return post.apply(this, message)
    }
    window.swallow = true
  })
  const text = Array.from({ length: 3001 }, (_, at) => `${note(at)}\n`).join('')
  await drop(fresh, 'notes.txt', text)
  await fresh.locator('#not-counted').filter({ hasText: 'did not answer for 30 seconds' }).waitFor({ timeout: 60_000 })
  await fresh.evaluate(() => { window.swallow = false })
  await drop(fresh, 'notes.txt', text)
  await counted(fresh)
  assert.equal(await fresh.locator('#not-counted').count(), 0)
  await fresh.context().close()
})

await step('what cannot be counted is said, and the plan stays', async () => {
  const fresh = await openStart()
  await certified(fresh)
  const before = (await save(fresh)).text
  const chats = '{"messages": [{"role": "user", "content": "Hello"}]}\n'
  for (const [name, bytes, said] of [
    ['a.parquet', 'PAR1', /parquet/i],
    ['b.parquet', TABLE.subarray(0, 5000), /parquet/i],
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
