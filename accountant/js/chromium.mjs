// Uses the built package in headless Chromium as a page does: `node chromium.mjs PACKAGE CHROMIUM E2E`, E2E being the
// folder of the page's end-to-end script; with `measure`, times it instead.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [, , folder, executablePath, modules, task] = process.argv
const { chromium } = createRequire(join(modules, 'package.json'))('playwright-core')
const { serve } = await import(pathToFileURL(join(modules, 'serve.mjs')))

const server = await serve(folder)
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
try {
  const page = await browser.newPage()
  const faults = []
  page.on('pageerror', (error) => faults.push(error.message))
  await page.goto(`${server.address}example.html`)
  const checks = readFileSync(new URL('checks.mjs', import.meta.url), 'utf8')
  const asked = await page.evaluate(
    async ([text, what]) => {
      const accountant = await import('/web/accountant.js')
      await accountant.default()
      const script = await import(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })))
      return script[what](accountant)
    },
    [checks, task === 'measure' ? 'measure' : 'check'],
  )
  if (task === 'measure') {
    console.log(JSON.stringify(asked))
  } else {
    await page.fill('#noise', '2')
    const typed = await page.textContent('#answer')
    await page.fill('#noise', '-1')
    const refused = await page.textContent('#answer')
    // Contour inversion at σ = 2.
    if (!/^0\.\d+ ≤ ε ≤ 0\.\d+ at/.test(typed)) faults.push(`the example page shows ${typed}`)
    if (!refused.includes('noise_multiplier = -1')) faults.push(`the example page says ${refused} to noise below 0`)
    const wrong = [...asked, ...faults]
    for (const line of wrong) console.error(line)
    console.log(`Chromium ${browser.version()}: ${wrong.length === 0 ? 'all right' : `${wrong.length} wrong`}`)
    process.exitCode = wrong.length === 0 ? 0 : 1
  }
} finally {
  await browser.close()
  server.stop()
}
