// Starts the page's module in a worker, so that shared code is downloaded once. The worker's name has the addresses of the
// module and of its WASM file.
const [script, wasm] = self.name.split('|')
const { default: start } = await import(script)
await start({ module_or_path: wasm })
