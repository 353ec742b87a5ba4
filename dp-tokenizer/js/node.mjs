// Installs the packed package into an empty folder and uses it there: `node node.mjs PACKAGE TARBALL FIXTURES`.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { check } from './checks.mjs'
import { sample } from './sample.mjs'

const [, , folder, tarball, fixtures] = process.argv
const empty = mkdtempSync(join(tmpdir(), 'dp-tokenizer-'))
try {
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: empty, stdio: 'inherit' })
  writeFileSync(join(empty, 'example.mjs'), readFileSync(join(folder, 'example.mjs')))
  const wrong = check(createRequire(join(empty, 'example.mjs'))('dp-tokenizer'), sample(fixtures))
  const readme = readFileSync(join(folder, 'README.md'), 'utf8')
  for (const name of ['example.mjs', 'example.html']) {
    if (!readme.includes(readFileSync(join(folder, name), 'utf8').trim())) wrong.push(`README.md does not show ${name} as it is`)
  }
  const shown = execFileSync(process.execPath, [join(empty, 'example.mjs')], { encoding: 'utf8' }).trim().split('\n')
  const promised = readFileSync(join(folder, 'example.mjs'), 'utf8').match(/(?<=^console.* \/\/ ).*$/gm)
  if (shown.join('|') !== promised.join('|')) wrong.push(`the example shows ${shown.join(' | ')}, not ${promised.join(' | ')}`)
  for (const line of wrong) console.error(line)
  console.log(`Node ${process.version}: ${wrong.length === 0 ? 'all right' : `${wrong.length} wrong`}`)
  process.exitCode = wrong.length === 0 ? 0 : 1
} finally {
  rmSync(empty, { recursive: true })
}
