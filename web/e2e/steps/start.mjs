// The start view: a plan is proposed before anything is typed, and follows what is typed.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { accessible, bounds, certified, epsilon, openStart, refused, save, server, step, told, type } from '../harness.mjs'

const { OUT, TRAINER } = process.env
const hasOdds = (page) => page.locator('#start-odds').waitFor({ timeout: 60_000 })
const figure = (page, name) => page.locator(`#proposal-figures dt:text-is("${name}") + dd`).innerText()

await step('the start view proposes a plan before anything is typed, with the ε that the trainer computes', async () => {
  const fresh = await openStart()
  await hasOdds(fresh)
  const shown = await bounds(fresh)
  const { file } = await save(fresh)
  assert.deepEqual(told(TRAINER, 'verify', file).epsilon, shown)
  const advised = told(TRAINER, 'advise', '--plan', file, '--hours', '1')
  assert.deepEqual(advised.epsilon, shown)
  assert.equal(String(advised.steps), (await figure(fresh, 'Steps')).replaceAll('\u202f', ''))
  // The built-in notes begin near their end.
  assert.equal(advised.prediction, undefined)
  assert.match(await figure(fresh, 'Predicted loss'), /^not predicted.*measured at 2\.4 nats a token/)
  assert.ok((await fresh.locator('button, input, select, summary, a[href]').count()) < 32)
  const requested = await fresh.evaluate(() => performance.getEntriesByType('resource').map((entry) => entry.name))
  assert.ok(!requested.some((name) => /\/(expert|parquet|vocabulary)/.test(name)), requested.join())
  await fresh.context().close()
  return `ε ≤ ${shown.upper}`
})

await step('less time gives fewer steps or a smaller batch, and a smaller ε more noise', async () => {
  const fresh = await openStart()
  const steps = await figure(fresh, 'Steps')
  await type(fresh, 'hours', '0,05')
  await fresh.waitForFunction((old) => document.querySelectorAll('#proposal-figures dd')[1].textContent !== old, steps)
  await certified(fresh)
  const noise = Number(await figure(fresh, 'Noise σ'))
  await type(fresh, 'target-epsilon', '1')
  await fresh.waitForFunction((old) => Number(document.querySelectorAll('#proposal-figures dd')[3].textContent) > old, noise)
  assert.ok((await epsilon(fresh)) <= 1)
  await fresh.context().close()
})

await step('protecting users clears the number of units and asks for users', async () => {
  const fresh = await openStart()
  await fresh.locator('#protect-user').check()
  await refused(fresh)
  assert.equal(await fresh.locator('#units').inputValue(), '')
  assert.equal(await fresh.locator('label[for=units]').innerText(), 'Number of users, N')
  assert.match(await fresh.locator('#reason').innerText(), /Enter the number of units/)
  assert.match(await fresh.locator('#epsilon').innerText(), /^ε –$/)
  await type(fresh, 'units', '3k')
  await certified(fresh)
  await type(fresh, 'records', '50 000')
  await fresh.locator('text=17 records per user').waitFor()
  await fresh.context().close()
})

await step('one’s own file has its fields in the plan, and a reload keeps the work', async () => {
  const fresh = await openStart()
  await fresh.locator('#protect-user').check()
  await fresh.locator('#start-source').selectOption('path')
  await type(fresh, 'path', 'chats.jsonl')
  await type(fresh, 'text-field', 'message')
  await type(fresh, 'user-field', 'customer')
  await type(fresh, 'units', '3000')
  await type(fresh, 'target-epsilon', '3')
  await certified(fresh)
  const { file, text } = await save(fresh)
  const { loss, error } = told(TRAINER, 'advise', '--plan', file, '--hours', '1').prediction
  const predicted = await figure(fresh, 'Predicted loss')
  assert.ok(predicted.startsWith(`${loss.toFixed(2)} ± ${(loss * error).toFixed(2)} nats a token`), predicted)
  const { data, privacy } = JSON.parse(text)
  assert.deepEqual([data.text_field, data.user_field, data.units, privacy.unit], ['message', 'customer', 3000, 'user'])
  await fresh.waitForTimeout(400)
  await fresh.reload()
  await certified(fresh)
  assert.equal((await save(fresh)).text, text)
  await fresh.locator('#expert').click()
  await fresh.locator('#inputs').waitFor()
  await certified(fresh)
  assert.equal((await save(fresh)).text, text)
  assert.equal(await fresh.locator('#text-field').inputValue(), 'message')
  await fresh.reload()
  await fresh.locator('#inputs').waitFor()
  await certified(fresh)
  assert.equal((await save(fresh)).text, text)
  await fresh.context().close()
})

await step('an example keeps the plan that it is named after, until something of it or a wish is changed', async () => {
  const fresh = await openStart()
  const plan = async () => JSON.parse((await save(fresh)).text)
  assert.equal((await plan()).name, 'proposal')
  await fresh.locator('#example').selectOption('quickstart')
  await fresh.locator('.plan-name:text-is("quickstart")').waitFor()
  await certified(fresh)
  const { training } = await plan()
  assert.deepEqual([training.steps, training.expected_batch_size], [150, 256])
  assert.equal(await figure(fresh, 'Steps'), '150')
  await fresh.locator('#units-slider').waitFor()
  await type(fresh, 'hours', '2')
  await fresh.locator('.plan-name:text-is("proposal")').waitFor()
  await certified(fresh)
  assert.notEqual((await plan()).training.steps, 150)
  await fresh.context().close()
})

await step('a public checkpoint is proposed with its memory, and the plan comes back from it', async () => {
  const fresh = await openStart()
  await certified(fresh)
  const [before, model] = [(await save(fresh)).text, await figure(fresh, 'Model')]
  const gigabytes = async () => {
    const [, count, unit] = (await figure(fresh, 'Memory')).match(/^about ([\d.]+) (MB|GB)$/)
    return unit === 'GB' ? Number(count) : count / 1000
  }
  const memory = {}
  for (const trained of ['lora', 'all']) {
    await fresh.locator('#start-size').selectOption(`gpt2/${trained}`)
    await fresh.locator('#proposal-figures dd:text-is("gpt2")').waitFor({ timeout: 60_000 })
    await certified(fresh)
    const { file, text } = await save(fresh)
    const made = JSON.parse(text)
    assert.deepEqual([made.model.initial.checkpoint, made.tokenizer.public.path, Boolean(made.model.trainable?.lora)], ['gpt2', 'gpt2/tokenizer.json', trained === 'lora'])
    const advised = told(TRAINER, 'advise', '--plan', file, '--hours', '1', '--checkpoint', 'gpt2', '--train', trained)
    assert.deepEqual(advised.epsilon, await bounds(fresh))
    memory[trained] = await gigabytes()
    assert.ok(Math.abs(advised.memory / 1e9 / memory[trained] - 1) < 0.06, `${advised.memory} and ${memory[trained]} GB`)
    assert.match(await figure(fresh, 'Predicted loss'), /not predicted.*3\.38 nats a word/)
  }
  assert.ok(memory.lora < memory.all, JSON.stringify(memory))
  await fresh.locator('#start-size').selectOption('')
  await fresh.locator('#proposal-figures dd:text-is("' + model + '")').waitFor({ timeout: 60_000 })
  await certified(fresh)
  assert.equal((await save(fresh)).text, before)
  await fresh.context().close()
  return `LoRA ${memory.lora} GB, all weights ${memory.all} GB`
})

for (const [width, height, screens] of [[1440, 900, 1], [390, 844, 2]]) {
  await step(`${width} × ${height}: machine, hours, ε and the proposal are within ${screens} screen${screens > 1 ? 's' : ''}`, async () => {
    const fresh = await openStart(server.address, { viewport: { width, height } })
    await hasOdds(fresh)
    for (const place of ['#machine', '#hours', '#epsilon', '#proposal-figures']) {
      const { y, height: high } = await fresh.locator(place).boundingBox()
      assert.ok(y + high <= height * screens, `${place} ends at ${Math.round(y + high)} px`)
    }
    if (process.env.PICTURE && width === 1440) await fresh.screenshot({ path: process.env.PICTURE })
    await fresh.context().close()
  })
}

for (const colorScheme of ['light', 'dark']) {
  for (const width of [1440, 390]) {
    await step(`start view, ${colorScheme}, ${width} px: accessible, and no wider than the window`, async () => {
      const sized = await openStart(server.address, { viewport: { width, height: 900 }, colorScheme })
      await hasOdds(sized)
      await accessible(sized, `start ${colorScheme} ${width}`)
      const wide = await sized.evaluate(() => document.documentElement.scrollWidth)
      assert.ok(wide <= width, `${wide} px wide`)
      await sized.screenshot({ path: join(OUT, `start-${colorScheme}-${width}.png`), fullPage: true })
      await sized.context().close()
    })
  }
}
