// Uses the built package in Node as a program does: `node node.mjs PACKAGE`; with `measure`, times it instead.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { check, measure } from './checks.mjs'

const [, , folder, task] = process.argv
const accountant = createRequire(join(folder, 'example.mjs'))('accountant')
if (task === 'measure') {
  console.log(JSON.stringify(measure(accountant)))
} else {
  const wrong = check(accountant)
  const version = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version
  if (accountant.version() !== version) wrong.push(`the package says ${version}, the module ${accountant.version()}`)
  const readme = readFileSync(join(folder, 'README.md'), 'utf8')
  for (const name of ['example.mjs', 'example.html']) {
    if (!readme.includes(readFileSync(join(folder, name), 'utf8').trim())) wrong.push(`README.md does not show ${name} as it is`)
  }
  // An import by the package's name, as another package would.
  const shown = execFileSync(process.execPath, [join(folder, 'example.mjs')], { encoding: 'utf8' }).split('\n')
  const promised = readFileSync(join(folder, 'example.mjs'), 'utf8').match(/(?<=\/\/ ).*$/gm).slice(1)
  if (promised.some((line, at) => line !== shown[at]) || !shown[2].includes('clinical note')) wrong.push(`the example shows ${shown.join(' | ')}, not ${promised.join(' | ')}`)
  for (const line of wrong) console.error(line)
  console.log(`Node ${process.version}: ${wrong.length === 0 ? 'all right' : `${wrong.length} wrong`}`)
  process.exitCode = wrong.length === 0 ? 0 : 1
}
