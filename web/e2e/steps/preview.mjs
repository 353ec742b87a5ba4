// Vocabulary previews.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { accessible, figures, open, paste, save, step } from '../harness.mjs'

const { OUT, TEXT } = process.env
const TEXT_BYTES = process.env.LONG_TEXT ? 199e6 : 50e6
// Times are printed. A step fails only at a time that no busy machine explains.
const MAX_TASK_MS = 2_000

/** A text of this many bytes: lines of the file named by TEXT, or synthetic ones. */
function longText(bytes) {
  const file = join(OUT, 'text.jsonl')
  const words = 'the patient was seen again and felt no pain after one week of rest at home'.split(' ')
  const synthetic = () => Array.from({ length: 4000 }, (_, line) => {
    const text = Array.from({ length: 60 }, (_, at) => words[(line * 7 + at * at) % words.length] + (at % 9 ? '' : (line * at) % 5000)).join(' ')
    return JSON.stringify({ text, user: `u${line % 300}` })
  }).join('\n') + '\n'
  const given = TEXT ? readFileSync(TEXT, 'utf8') : synthetic()
  const times = Math.ceil(bytes / Buffer.byteLength(given))
  const all = Buffer.from(given.repeat(times)).subarray(0, bytes)
  writeFileSync(file, all.subarray(0, all.lastIndexOf(10) + 1))
  return file
}

await step('the page stays responsive during a preview of a long text', async () => {
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
  assert.ok(longest < MAX_TASK_MS, `a task of ${longest} ms`)
  assert.ok((await fresh.locator('#seen').innerText()).includes('Coverage'))
  await fresh.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await fresh.locator('#link').click()
  await fresh.locator('#link', { hasText: 'Link copied' }).waitFor()
  const address = await fresh.evaluate(() => navigator.clipboard.readText())
  assert.ok(!address.includes('text.jsonl') && !(await save(fresh)).text.includes('text.jsonl'), 'nothing of a preview is saved')
  for (const colorScheme of ['light', 'dark']) {
    await fresh.emulateMedia({ colorScheme })
    await accessible(fresh, `preview, ${colorScheme}`)
    await fresh.locator('#preview').screenshot({ path: join(OUT, `preview-${colorScheme}.png`), style: 'header { position: static !important }' })
  }
  await fresh.context().close()
  figures['preview of a text'] = `${(TEXT_BYTES / 1e6).toFixed(0)} MB in ${seconds.toFixed(1)} s, longest task ${longest === 0 ? 'none above 50' : Math.round(longest)} ms`
  return figures['preview of a text']
})

await step('a preview can be stopped, and another one started with pasted text', async () => {
  const fresh = await open()
  await fresh.locator('#upload').setInputFiles(join(OUT, 'text.jsonl'))
  await fresh.locator('#progress progress').waitFor()
  await fresh.locator('#stop').click()
  await fresh.locator('#progress progress').waitFor({ state: 'detached' })
  await paste(fresh, 'paste', 'fever and a cough\n'.repeat(600))
  await fresh.locator('#count').click()
  await fresh.locator('#seen').waitFor({ timeout: 60_000 })
  assert.ok((await fresh.locator('#seen').innerText()).includes('fever'))
  await fresh.context().close()
})

await step('a CSV file is previewed by its columns', async () => {
  const fresh = await open()
  const rows = Array.from({ length: 900 }, (_, row) => `${row},"fever, and a cough"`)
  const table = (header) => ({ name: 'a.csv', mimeType: 'text/csv', buffer: Buffer.from([header, ...rows].join('\n')) })
  await fresh.locator('#upload').setInputFiles(table('id,note'))
  await fresh.locator('#no-preview', { hasText: '"text"' }).waitFor({ timeout: 60_000 })
  await fresh.locator('#upload').setInputFiles(table('id,text'))
  await fresh.locator('#seen', { hasText: 'cough' }).waitFor({ timeout: 60_000 })
  assert.ok((await fresh.locator('#seen').innerText()).includes('900'))
  await fresh.context().close()
})

const unreadable = [
  ['no text', async (fresh) => fresh.locator('#count').click(), 'Paste'],
  ['a binary file', async (fresh) => fresh.locator('#upload').setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from([1, 0, 2, 255, 0, 9]) }), 'zero bytes'],
  ['an empty file', async (fresh) => fresh.locator('#upload').setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.alloc(0) }), 'no record'],
  ['a compressed file that is cut off', async (fresh) => fresh.locator('#upload').setInputFiles({ name: 'a.txt.gz', mimeType: 'application/gzip', buffer: Buffer.from([31, 139]) }), 'cut off'],
]
for (const [name, give, said] of unreadable) {
  await step(`${name} gives an error with its reason instead of a preview`, async () => {
    const fresh = await open()
    await give(fresh)
    await fresh.locator('#no-preview').waitFor()
    assert.ok((await fresh.locator('#no-preview').innerText()).includes(said))
    await accessible(fresh, name)
    await fresh.locator('#preview').screenshot({ path: join(OUT, `no-preview-${name.replaceAll(' ', '-')}.png`) })
    await fresh.locator('#no-preview .quick-fix').click()
    await fresh.context().close()
  })
}
