// Names, keyboard, screen readers, axe, narrow windows, print.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { accessible, certified, epsilon, open, rested, roundedUp, server, settled, step } from '../harness.mjs'

const { OUT } = process.env

await step('every control has a name, Tab reaches all in order, and the focus is visible', async () => {
  const fresh = await open()
  // Tab begins at the top again.
  await fresh.reload()
  await fresh.locator('#inputs').waitFor()
  await certified(fresh)
  await rested(fresh)
  const devtools = await fresh.context().newCDPSession(fresh)
  const { nodes } = await devtools.send('Accessibility.getFullAXTree')
  const roles = ['button', 'textbox', 'combobox', 'slider', 'radio', 'link', 'image', 'region', 'DisclosureTriangle']
  const nameless = nodes.filter((node) => !node.ignored && roles.includes(node.role?.value) && !node.name?.value?.trim())
  assert.deepEqual(nameless.map((node) => node.role.value), [])
  const wanted = await fresh.evaluate(() => {
    const can = 'a[href], button, input, select, textarea, summary, [tabindex="0"]'
    const all = [...document.querySelectorAll(can)].filter((one) => !one.disabled && one.checkVisibility() && (one.type !== 'radio' || one.checked))
    all.forEach((one, at) => { one.dataset.place = at })
    return all.length
  })
  assert.ok(wanted > 60, `${wanted} places`)
  // Some versions of Chromium go on from where the page was left before it was loaded again.
  await fresh.evaluate(() => {
    document.body.tabIndex = -1
    document.body.focus()
    document.body.removeAttribute('tabindex')
  })
  for (let place = 0; place < wanted; place += 1) {
    await fresh.keyboard.press('Tab')
    const at = await fresh.evaluate(() => {
      const one = document.activeElement
      const seen = one.type === 'file' ? one.nextElementSibling : one
      const style = getComputedStyle(seen)
      return { place: Number(one.dataset.place), shown: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0, what: one.outerHTML.slice(0, 90) }
    })
    assert.equal(at.place, place, at.what)
    assert.ok(at.shown, `no outline: ${at.what}`)
  }
  await fresh.context().close()
  return `${wanted} places`
})

await step('after several changes, the live region announces the new ε once', async () => {
  const fresh = await open()
  assert.equal(await fresh.locator('[aria-live]').count(), 1)
  await fresh.locator('#solve-epsilon').check()
  await certified(fresh)
  await fresh.waitForTimeout(1500)
  await fresh.evaluate(() => {
    window.said = []
    const region = document.querySelector('[aria-live]')
    new MutationObserver(() => window.said.push(region.textContent)).observe(region, { subtree: true, childList: true, characterData: true })
  })
  // All in one task: a slow machine announces a change before it sends the next key.
  await fresh.locator('#noise-training-slider').evaluate((slider) => {
    for (let press = 0; press < 6; press += 1) {
      slider.stepUp()
      slider.dispatchEvent(new Event('input', { bubbles: true }))
    }
  })
  await certified(fresh)
  await fresh.waitForFunction(() => window.said.length > 0)
  await fresh.waitForTimeout(1500)
  const said = await fresh.evaluate(() => window.said)
  assert.deepEqual(said, [`ε is at most ${roundedUp(await epsilon(fresh), 4)}`])
  await fresh.context().close()
  return said[0]
})

for (const scheme of ['light', 'dark']) {
  for (const width of [1440, 1024, 390]) {
    await step(`${scheme}, ${width} px: accessible, and no wider than the window`, async () => {
      const sized = await open(server.address, { viewport: { width, height: 900 }, colorScheme: scheme })
      await sized.locator('#pin').click()
      await settled(sized)
      await accessible(sized, `${scheme} ${width}`)
      const wide = await sized.evaluate(() => document.documentElement.scrollWidth)
      assert.ok(wide <= width, `${wide} px wide`)
      await sized.evaluate(() => window.scrollTo(0, 0))
      await sized.screenshot({ path: join(OUT, `${scheme}-${width}.png`), fullPage: true })
      await sized.context().close()
    })
  }
}

await step('a point of the chart of compute and noise moves the plan there', async () => {
  const fresh = await open()
  await fresh.waitForFunction(() => document.querySelectorAll('#pareto details tbody tr').length >= 13)
  const batch = () => fresh.locator('#batch').inputValue()
  const before = await batch()
  await fresh.locator('#pareto > svg').focus()
  await fresh.keyboard.press('End')
  await fresh.keyboard.press('Enter')
  await fresh.waitForFunction((before) => document.getElementById('batch').value !== before, before)
  assert.ok(Number((await batch()).replaceAll(/\D/g, '')) > Number(before.replaceAll(/\D/g, '')), `${before} → ${await batch()}`)
  await settled(fresh)
  assert.ok(await fresh.locator('#pareto .highlight').count() === 1, 'the chosen point is marked')
  await fresh.context().close()
})

await step('a chart can be read by keyboard', async () => {
  const fresh = await open()
  await fresh.waitForFunction(() => document.querySelectorAll('#by-noise details tbody tr').length >= 21)
  // A chart that is drawn again forgets which point was read.
  await settled(fresh)
  await fresh.locator('.plot svg').first().focus()
  await fresh.keyboard.press('End')
  const said = await fresh.locator('.plot .reading').first().innerText()
  const last = await fresh.locator('#by-noise details tbody tr').last().evaluate((row) => row.children[1].textContent)
  assert.ok(said.includes(last), `${said} / ${last}`)
  await settled(fresh)
  await fresh.emulateMedia({ media: 'print' })
  await fresh.screenshot({ path: join(OUT, 'print.png'), fullPage: true })
  await fresh.pdf({ path: join(OUT, 'print.pdf'), format: 'A4', printBackground: true, margin: { top: '15mm', bottom: '15mm', left: '15mm', right: '15mm' } })
  await fresh.context().close()
})
