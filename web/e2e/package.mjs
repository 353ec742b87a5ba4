// A built package in headless Chromium, as a page uses it.
import { chromium } from 'playwright-core'
import { serve } from './serve.mjs'

/**
 * Opens the example page of the package in `folder` and gives it to `look`, which returns what was wrong, or nothing where it
 * only measured. Errors on the page are wrong, too.
 */
export async function inChromium(executablePath, folder, look) {
  const server = await serve(folder)
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
  try {
    const page = await browser.newPage()
    const faults = []
    page.on('pageerror', (error) => faults.push(error.message))
    await page.goto(`${server.address}example.html`)
    const found = await look(page)
    if (found === undefined) return
    const wrong = [...found, ...faults]
    for (const line of wrong) console.error(line)
    console.log(`Chromium ${browser.version()}: ${wrong.length === 0 ? 'all right' : `${wrong.length} wrong`}`)
    process.exitCode = wrong.length === 0 ? 0 : 1
  } finally {
    await browser.close()
    server.stop()
  }
}

/** Calls the function `name` of the script `text` on the page, with the module `web/LIBRARY.js` of the package and `given`. */
export function called(page, library, text, name, given) {
  return page.evaluate(
    async ([library, text, name, given]) => {
      const module = await import(`/web/${library}.js`)
      await module.default()
      const script = await import(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })))
      return script[name](module, given)
    },
    [library, text, name, given],
  )
}
