// The page's module again, in a worker: what both need is downloaded once. The page names the module and its WASM.
const [script, wasm] = decodeURIComponent(location.hash.slice(1)).split('|')
const { default: start } = await import(script)
await start({ module_or_path: wasm })
