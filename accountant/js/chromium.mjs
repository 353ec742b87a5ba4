// Uses the built package in headless Chromium: `node chromium.mjs PACKAGE CHROMIUM E2E`, E2E being the folder of the page's
// end-to-end script; with `measure`, times it instead.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [, , folder, executablePath, modules, task] = process.argv
const { called, inChromium } = await import(pathToFileURL(join(modules, 'package.mjs')))
const checks = readFileSync(new URL('checks.mjs', import.meta.url), 'utf8')

await inChromium(executablePath, folder, async (page) => {
  if (task === 'measure') {
    console.log(JSON.stringify(await called(page, 'accountant', checks, 'measure')))
    return undefined
  }
  const wrong = await called(page, 'accountant', checks, 'check')
  await page.fill('#noise', '2')
  const typed = await page.textContent('#answer')
  await page.fill('#noise', '-1')
  const refused = await page.textContent('#answer')
  // Contour inversion at σ = 2.
  if (!/^0\.\d+ ≤ ε ≤ 0\.\d+ at/.test(typed)) wrong.push(`the example page shows ${typed}`)
  if (!refused.includes('noise_multiplier = -1')) wrong.push(`the example page says ${refused} to noise below 0`)
  return wrong
})
