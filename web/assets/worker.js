// The page's module again, in a worker: what both need is downloaded once. Its name tells the module and its WASM.
const [script, wasm] = self.name.split('|')
const { default: start } = await import(script)
await start({ module_or_path: wasm })
