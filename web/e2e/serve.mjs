// A static server on loopback for the built page, and what a first visit would download.
import { createServer } from 'node:http'
import { readFileSync, readdirSync } from 'node:fs'
import { extname, join, normalize } from 'node:path'
import { brotliCompressSync } from 'node:zlib'

const KINDS = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.wasm': 'application/wasm',
}

/** Serves `folder`. Returns the address and a function that stops the server. */
export function serve(folder) {
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname))
    const file = join(folder, path === '/' ? 'index.html' : path)
    try {
      const body = readFileSync(file)
      response.writeHead(200, { 'content-type': KINDS[extname(file)] ?? 'application/octet-stream' }).end(body)
    } catch {
      response.writeHead(404).end()
    }
  })
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve({ address: `http://127.0.0.1:${server.address().port}/`, stop: () => server.close() })
    })
  })
}

/** Bytes of the files after brotli: of the first load, and of all files. */
export function brotliBytes(folder) {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => entry.name)
  const size = (names) => names.reduce((sum, name) => sum + brotliCompressSync(readFileSync(join(folder, name))).length, 0)
  // The expert view and the workers that read texts are loaded when they are first used, or when the page is idle.
  return { first: size(files.filter((name) => !/^(expert|parquet|vocabulary)/.test(name))), all: size(files) }
}
