// Plans and files that are not valid.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { accessible, certified, open, refused, step, type } from '../harness.mjs'

const { OUT } = process.env

const wrong = [
  ['no noise', 'noise-training', '0', 'privacy.noise_multipliers.training', '#solve-epsilon'],
  ['a batch larger than N', 'batch', '1M', 'training.expected_batch_size'],
  ['δ of at least 1/N', 'delta', '0.5', 'privacy.delta'],
  ['no units', 'units', '0', null],
  ['ε of zero', 'target-epsilon', '0', 'privacy.epsilon'],
  ['a warm-up longer than training', 'warmup', '9999', 'training.learning_rate.warmup_steps'],
]
for (const [name, id, text, place, first] of wrong) {
  await step(`${name} is refused with its reason, and with a quick fix where there is one`, async () => {
    const fresh = await open()
    // Everything in the screenshot is there; the papers below it may come later.
    await fresh.waitForFunction(() => document.querySelectorAll('#runs tbody tr').length === 4)
    if (first) {
      await fresh.locator(first).check()
      await certified(fresh)
    }
    await type(fresh, id, text)
    await refused(fresh)
    // Figures of the earlier plan are visibly outdated.
    await fresh.locator('#figures.stale').waitFor()
    assert.ok(await fresh.locator('.outdated').first().isVisible())
    assert.equal(await fresh.locator('#export').isDisabled(), true)
    const said = await fresh.locator('#refusal').innerText()
    if (place) assert.ok(said.includes(place), said)
    await accessible(fresh, name)
    await fresh.evaluate(() => window.scrollTo(0, 0))
    await fresh.screenshot({ path: join(OUT, `refused-${id}.png`) })
    if (place) {
      await fresh.locator('#refusal .quick-fix').first().click()
      await certified(fresh)
    }
    await fresh.context().close()
  })
}

await step('text in a number field is refused at the field', async () => {
  const fresh = await open()
  await fresh.locator('#steps').fill('many')
  await fresh.locator('#steps-errors .input-error').waitFor()
  assert.equal(await fresh.locator('#steps').getAttribute('aria-invalid'), 'true')
  await fresh.context().close()
})

await step('a plan of a later version, a binary file and an empty file are refused', async () => {
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
