// Plans and files that are not valid.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { accessible, certified, open, openStart, refused, step, type } from '../harness.mjs'

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

/** Types into a field with the keyboard, in place of what it holds. */
const key = async (page, id, text) => {
  await page.locator(`#${id}`).focus()
  await page.keyboard.press('Control+A')
  await page.keyboard.type(text)
}

for (const [view, start] of [['start view', openStart], ['expert view', open]]) {
  await step(`${view}: no figure, proposal or export stands for a text that cannot be read, typed key by key`, async () => {
    const fresh = await start()
    if (view === 'start view') await fresh.locator('#protect-user').check()
    else {
      await fresh.locator('#solve-epsilon').check()
      await fresh.locator('#clipping').selectOption('adaptive')
      await fresh.locator('#phases').click()
    }
    if (view === 'start view') await key(fresh, 'units', '3000')
    await certified(fresh)
    // Those of the other targets take effect at a button.
    const fields = await fresh.locator('input[type=text][inputmode]:visible:not([readonly]):not([id^=target-]), #target-epsilon:visible:not([readonly])').evaluateAll((all) => all.map(({ id, value }) => [id, value]))
    assert.ok(fields.length >= (view === 'start view' ? 4 : 8), fields.join(' '))
    for (const [id, value] of fields) {
      for (const text of [/epsilon|delta|hours|noise|clip|rate|peak|quantile|share/.test(id) ? '1,000' : '6.000', '7abc', '']) {
        if (id === 'records' && text === '') continue
        await key(fresh, id, text)
        await refused(fresh).catch((cause) => assert.fail(`${id} “${text}”: ${cause}`))
        // An answer about what was typed before arrives by now.
        await fresh.waitForTimeout(150)
        await refused(fresh)
        assert.match(await fresh.locator('#epsilon').innerText(), /^ε –$/, `${id} “${text}”`)
        for (const action of ['#export', '#link', '#report:visible']) {
          for (const found of await fresh.locator(action).all()) assert.equal(await found.isDisabled(), true, `${id} “${text}”: ${action}`)
        }
        assert.equal(await fresh.locator('#proposal-figures, #start-odds').count(), 0, `${id} “${text}”`)
        assert.equal(await fresh.locator(`#${id}`).getAttribute('aria-invalid'), 'true', `${id} “${text}”`)
      }
      await key(fresh, id, '7abc')
      if (!id.startsWith('phase')) {
        await fresh.waitForFunction((id) => sessionStorage.getItem('unread')?.includes(`"${id}":"7abc"`), id)
        await fresh.reload()
        await fresh.locator(`#${id}`).waitFor()
        await refused(fresh)
        assert.equal(await fresh.locator(`#${id}`).inputValue(), '7abc')
      }
      await key(fresh, id, value === '' ? '5000' : value)
      await certified(fresh)
    }
    await fresh.context().close()
    return fields.map(([id]) => id).join(' ')
  })
}

await step('a text that cannot be read goes with the plan to the other view, and an example replaces it', async () => {
  const fresh = await openStart()
  await key(fresh, 'units', '6.000')
  await refused(fresh)
  await fresh.locator('#expert').click()
  await fresh.locator('#inputs').waitFor()
  await refused(fresh)
  assert.equal(await fresh.locator('#units').inputValue(), '6.000')
  await fresh.locator('#start-view').click()
  await fresh.locator('#proposal-title').waitFor()
  await refused(fresh)
  await fresh.locator('#example').selectOption({ index: 2 })
  await certified(fresh)
  assert.notEqual(await fresh.locator('#units').inputValue(), '6.000')
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
