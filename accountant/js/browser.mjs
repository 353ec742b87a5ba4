// Loads the package for browsers in headless Chromium. `cargo xtask web package` sets PACKAGE, CHROMIUM and MODULES.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'

const { PACKAGE, CHROMIUM, MODULES } = process.env
const { chromium } = createRequire(join(MODULES, 'package.json'))('playwright-core')

const TYPES = { js: 'text/javascript', wasm: 'application/wasm' }
const server = createServer((request, response) => {
  const file = basename(request.url)
  const type = TYPES[file.split('.').pop()]
  if (type === undefined) {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>accountant</title>')
    return
  }
  response.writeHead(200, { 'content-type': type }).end(readFileSync(join(PACKAGE, file)))
})
await new Promise((done) => server.listen(0, '127.0.0.1', done))
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
try {
  const page = await browser.newPage()
  await page.goto(`http://127.0.0.1:${server.address().port}/`)
  const answer = await page.evaluate(async () => {
    const accountant = await import('/accountant.js')
    await accountant.default()
    const event = { type: 'poisson_sampled_gaussian', sampling_probability: 0.01, noise_multiplier: 1 }
    const run = { type: 'self_composed', event, count: 1000 }
    let refusal = ''
    try {
      accountant.epsilon(run, 2, 'add_or_remove_one')
    } catch (error) {
      refusal = error.message
    }
    return { bounds: accountant.epsilon(run, 1e-5, 'add_or_remove_one'), refusal, version: accountant.version() }
  })
  // Query A by contour inversion.
  assert.ok(answer.bounds.lower <= 1.828238 && answer.bounds.upper >= 1.828236, JSON.stringify(answer))
  assert.ok(answer.bounds.upper - answer.bounds.lower <= 2e-3, JSON.stringify(answer))
  assert.match(answer.refusal, /0 < delta < 1/)
  console.log(`browser: ok, ${answer.bounds.lower} to ${answer.bounds.upper}`)
} finally {
  await browser.close()
  server.close()
}
