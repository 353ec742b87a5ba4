// Caches the page's files, so that it works offline. The build fills in their names and their checksum.
const FIRST = [/*FIRST*/]
const REST = [/*REST*/]
// Another page of this origin may have caches, too.
const OWN = `planner ${registration.scope} `
const CACHE = `${OWN}/*STAMP*/`
/** Names of caches of earlier versions: their scope was not in them. */
const EARLIER = /^planner-[0-9a-f]{16}$/

const own = () => caches.open(CACHE)
// Not from the browser's HTTP cache, which may hold files of an earlier version.
const fetched = (file) => new Request(file, { cache: 'reload' })

self.addEventListener('install', (event) => {
  const kept = own().then((cache) => cache.addAll(FIRST.map(fetched))).then(() => self.skipWaiting())
  event.waitUntil(kept)
})
self.addEventListener('activate', (event) => {
  const isOld = (name) => name !== CACHE && (name.startsWith(OWN) || EARLIER.test(name))
  const old = caches.keys().then((names) => Promise.all(names.filter(isOld).map((name) => caches.delete(name))))
  event.waitUntil(old.then(() => self.clients.claim()))
})
// Files that the first load does not need are fetched once the page is idle and sends a message. The answer says that all are there.
self.addEventListener('message', (event) => {
  const keep = async () => {
    const cache = await own()
    const missing = (await Promise.all(REST.map(async (file) => !(await cache.match(file)) && file))).filter(Boolean)
    await cache.addAll(missing.map(fetched))
    event.source.postMessage('all files are kept')
  }
  event.waitUntil(keep())
})
// Kept files serve where the network does not.
self.addEventListener('fetch', (event) => {
  if (event.request.method !== 'GET' || new URL(event.request.url).origin !== location.origin) return
  const kept = async () => (await own()).match(event.request, { ignoreSearch: true, ignoreVary: true })
  const answer = async () => {
    try {
      const current = await fetch(event.request, { cache: 'no-cache' })
      return current.ok ? current : ((await kept()) ?? current)
    } catch (error) {
      const found = await kept()
      if (found) return found
      throw error
    }
  }
  event.respondWith(answer())
})
